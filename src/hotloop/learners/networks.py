"""From a run's settings to its network, whatever its family."""

from __future__ import annotations

from typing import Any

from torch import nn

from hotloop.core.graphs import GraphSpec
from hotloop.envs.foreign import require_bounded, require_discrete
from hotloop.learners.action_map import layout_of
from hotloop.learners.graph_policies import GraphActionMap
from hotloop.learners.ppo import build_graph_network
from hotloop.learners.sac import build_networks
from hotloop.nets.actor_critic import build_actor_critic
from hotloop.nets.build import build_q_network
from hotloop.presets.dqn_settings import DQNSettings
from hotloop.presets.sac_settings import SACSettings


def build_network(settings: Any, obs_spec: Any, action_spec: Any, seed: int = 0) -> nn.Module:
    """With parameters drawn by `seed`; an EnvError where the family has no such actions."""
    if isinstance(settings, DQNSettings):
        return build_q_network(settings.network, obs_spec, require_discrete(settings.env.id, action_spec).count, seed)
    if isinstance(settings, SACSettings):
        return build_networks(settings, obs_spec, len(require_bounded(settings.env.id, action_spec).low), seed)
    if isinstance(obs_spec, GraphSpec):
        return build_graph_network(settings, obs_spec, GraphActionMap(action_spec), seed)
    return build_actor_critic(settings.network, obs_spec, layout_of(action_spec, settings.network.squashed), seed)
