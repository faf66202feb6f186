"""A trained agent, loaded from its run: plain data in, an ordinary network out, no code of the run's executed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hotloop.algos.action_map import layout_of
from hotloop.algos.dqn_settings import DQNSettings
from hotloop.algos.ppo_settings import PPOSettings
from hotloop.algos.registry import RunSettings
from hotloop.core.errors import CheckpointError, EnvError, RunError
from hotloop.core.graphs import GraphSpec
from hotloop.core.terminal import say
from hotloop.core.types import (
    Array,
    BoxActions,
    DiscreteActions,
    MultiDiscreteActions,
    NodeActions,
    Obs,
    ObsSpec,
    VecEnv,
    map_obs,
)
from hotloop.loop.actor_agent import ActorAgent
from hotloop.loop.agent_obs import as_batch
from hotloop.loop.graph_agent import GraphAgent
from hotloop.loop.sizes import require_weights
from hotloop.loop.spec_data import actions_from_data, spec_from_data
from hotloop.maths import categorical, td
from hotloop.nets.actor_critic import build_actor_critic
from hotloop.nets.build import QNetwork, build_q_network
from hotloop.runs import checkpoint
from hotloop.runs.directory import Run

MISFITS = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, RuntimeError)
"""What code that expects a state of its own raises when it is given another."""


class Agent:
    """`act` on one observation or on a batch of them; `network` is an ordinary `nn.Module`."""

    def __init__(self, network: QNetwork, settings: DQNSettings, obs_spec: ObsSpec, first_action: int = 0) -> None:
        self.network = network
        self.settings = settings
        self.obs_spec = obs_spec
        self.first_action = first_action

    @property
    def num_actions(self) -> int:
        return int(self.network.head.shape[0])  # type: ignore[index]

    def as_policy(self) -> Agent:
        """The same agent with actions numbered from 0, as our envs take them."""
        return Agent(self.network, self.settings, self.obs_spec)

    @torch.no_grad()
    def q_values(self, obs: Obs) -> Array:
        """Q [N, A] of a batch of observations."""
        q = self.network(map_obs(torch.from_numpy, obs))
        network = self.settings.network
        if network.atoms > 1:
            q = categorical.expected_q(q, categorical.make_support(network.v_min, network.v_max, network.atoms))
        return q.numpy()

    def act(self, obs: Any, action_mask: Any = None) -> Any:
        """The best action as the env numbers it: an int for one observation, an array [N] for a batch."""
        batch, single = as_batch(obs, self.obs_spec)
        q = torch.from_numpy(self.q_values(batch))
        mask = None if action_mask is None else torch.as_tensor(np.atleast_2d(action_mask), dtype=torch.bool)
        action = td.mask_actions(q, mask).argmax(-1).numpy() + self.first_action
        return int(action[0]) if single else action


def load_agent(run: Run, settings: RunSettings) -> Agent | ActorAgent | GraphAgent:
    """The best weights by periodic evaluation up to the newest good checkpoint."""
    found = checkpoint.newest(run.checkpoints, warn=say)
    if found is None:
        raise RunError(f"{run.path} has no checkpoint yet", "`hotloop resume` continues the run")
    path, state, meta = found
    with misfits_named(path):
        best, current = state["best"]["parameters"], "weights" if isinstance(settings, PPOSettings) else "online"
        values = best if len(best) else state["learner"][current]
        if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype != np.float32:
            raise ValueError("its weights are no vector of float32")
        obs_spec, action_spec = spec_from_data(meta["obs_spec"]), actions_from_data(meta)
        require_weights(len(values), settings, obs_spec, action_spec)  # before anything of that size is built
        if isinstance(settings, PPOSettings):
            return _load_actor(settings, values, obs_spec, action_spec)
        return _load_q_agent(settings, values, obs_spec, action_spec)


@contextmanager
def misfits_named(path: Path) -> Iterator[None]:
    """A checkpoint whose every byte is as it was saved, and yet is not of a run with these settings."""
    try:
        yield
    except MISFITS as error:
        reason = f"{type(error).__name__}: {str(error)[:300]}"
        raise CheckpointError(
            f"checkpoint {path.name} is whole, but not of a run with these settings ({reason})",
            "its settings.toml or its files were changed by hand; `hotloop train` begins anew",
        ) from error


def require_same_actions(agent: Agent | ActorAgent | GraphAgent, envs: VecEnv, env_id: str) -> None:
    """Refuse an agent that would answer with actions that the env has not."""
    spec = DiscreteActions(agent.num_actions) if isinstance(agent, Agent) else agent.action_spec
    found, wanted = _kind(spec), _kind(envs.action_spec)
    if found != wanted:
        raise EnvError(
            f"the agent was trained on other actions than `{env_id}` has: {found} where there are {wanted}",
            "its settings.toml was changed, or its env is another one now",
        )


def _kind(spec: Any) -> str:
    """Of actions, without where they begin and between which bounds they lie."""
    if isinstance(spec, DiscreteActions):
        return f"{spec.count} choices"
    if isinstance(spec, MultiDiscreteActions):
        return f"choices among {', '.join(map(str, spec.counts))}"
    if isinstance(spec, BoxActions):
        return f"numbers of shape {list(spec.shape)}"
    if isinstance(spec, NodeActions):
        return f"{spec.count} choices for each node and {_kind(spec.numbers)}"
    return f"{_kind(spec.choices)} and {_kind(spec.numbers)}"


def _load_q_agent(settings: DQNSettings, values: Array, obs_spec: Any, action_spec: Any) -> Agent:
    if not isinstance(action_spec, DiscreteActions) or isinstance(obs_spec, GraphSpec):
        raise ValueError("DQN has discrete actions and observations that are arrays")
    network = build_q_network(settings.network, obs_spec, action_spec.count, seed=0)
    _require_size(values, sum(parameter.numel() for parameter in network.parameters()))
    torch.nn.utils.vector_to_parameters(torch.from_numpy(values.copy()), network.parameters())
    return Agent(network, settings, obs_spec, action_spec.first)


def _load_actor(settings: PPOSettings, values: Array, obs_spec: Any, action_spec: Any) -> ActorAgent | GraphAgent:
    agent: ActorAgent | GraphAgent
    if isinstance(obs_spec, GraphSpec):
        agent = GraphAgent(settings, obs_spec, action_spec)
    else:
        network = build_actor_critic(settings.network, obs_spec, layout_of(action_spec, settings.network.squashed), 0)
        agent = ActorAgent(network, settings, (obs_spec, action_spec))
    _require_size(values, agent.num_weights)
    agent.load_weights(values)
    return agent


def _require_size(values: Array, expected: int) -> None:
    if len(values) != expected:
        raise CheckpointError(f"the checkpoint has {len(values)} parameters, the network of its settings {expected}")
