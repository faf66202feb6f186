"""Agents that learned nothing, of every kind of network."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop import api
from hotloop.core.types import ActionSpec, ObsSpec
from hotloop.learners.action_map import layout_of
from hotloop.loop.agents import ActorAgent, Agent
from hotloop.nets.actor_critic import build_actor_critic
from hotloop.nets.build import build_q_network


def q_agent(obs_spec: ObsSpec, actions: int = 3, first: int = 0, **network: Any) -> Agent:
    settings = api.preset("cartpole-dqn", network={"hidden": [8], **network})
    assert isinstance(settings, api.DQNSettings)
    return Agent(build_q_network(settings.network, obs_spec, actions, seed=1), settings, obs_spec, actions, first)


def actor(obs_spec: ObsSpec, actions: ActionSpec, normalize: bool = False, **network: Any) -> ActorAgent:
    tree = {"hidden": [8], **network}
    settings = api.preset("cartpole-ppo", network=tree, normalize={"obs": normalize, "limit": 2.0})
    assert isinstance(settings, api.PPOSettings)
    net = build_actor_critic(settings.network, obs_spec, layout_of(actions, settings.network.squashed), 1)
    agent = ActorAgent(net, settings, (obs_spec, actions))
    agent.load_weights(np.random.default_rng(0).normal(0.2, 0.5, agent.num_weights).astype(np.float32))
    return agent
