"""Trained agents that act: greedy Q-networks, actors, and actors over graphs.

They take one observation or a batch of them, as a user gives it; `agent_files` loads and saves them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from hotloop.core.errors import CheckpointError, EnvError
from hotloop.core.graphs import Graphs, GraphSpec
from hotloop.core.rng import derive_seed
from hotloop.core.types import (
    Action,
    ActionSpec,
    Array,
    ArraySpec,
    BoxActions,
    DiscreteActions,
    GraphActionSpec,
    HybridActions,
    MultiDiscreteActions,
    NodeActions,
    Obs,
    ObsSpec,
    VecEnv,
    map_obs,
)
from hotloop.envs.foreign import BadValueError
from hotloop.envs.observations import RawObs
from hotloop.lanes.graph_objective import GraphOutputs
from hotloop.learners.action_map import ActionMap
from hotloop.learners.graph_policies import GraphActionMap
from hotloop.learners.normalizer import ObsNormalizer
from hotloop.learners.policy_kernels import draw_masked_exploration
from hotloop.learners.ppo import build_graph_network
from hotloop.maths import td
from hotloop.nets.actor_critic import ActorCritic
from hotloop.nets.given_network import SharedActorCritic
from hotloop.nets.graphs.attention import to_tensors
from hotloop.presets.dqn_settings import DQNSettings
from hotloop.presets.ppo_settings import PPOSettings


class TrainedAgent:
    """What every agent offers beside `act`."""

    settings: Any
    network: Any
    obs_spec: Any
    normalizer: ObsNormalizer | None = None
    """What observations go through before the network, where the run had one."""

    @property
    def num_weights(self) -> int:
        own = sum(parameter.numel() for parameter in self.network.parameters())
        return own + (self.normalizer.num_weights if self.normalizer else 0)

    def weights(self) -> Array:
        """The parameters, then what observations are normalized by."""
        own = nn.utils.parameters_to_vector(self.network.parameters()).detach().numpy()
        return own if self.normalizer is None else np.concatenate([own, self.normalizer.weights()])

    def load_weights(self, values: Array) -> None:
        """Of `weights`."""
        if self.normalizer is not None:
            self.normalizer.load_weights(values[-self.normalizer.num_weights :])
            values = values[: -self.normalizer.num_weights]
        torch.nn.utils.vector_to_parameters(torch.from_numpy(values.copy()), self.network.parameters())

    def act(self, obs: Any, action_mask: Any = None, deterministic: bool = True, *, mask: Any = None) -> Any:
        """Of one observation or a batch; `mask` is another name for `action_mask`. An env with masks wants one: without
        it every action counts as allowed."""
        raise NotImplementedError

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Any, Any]:
        """The action as an array, and `state`, as Stable-Baselines3 answers; nothing is remembered between calls."""
        return np.asarray(self.act(observation, deterministic=deterministic)), state

    def save(self, path: str | Path) -> Path:
        """Write the agent to one file, which `hotloop.load` reads: plain data, no code."""
        from hotloop.loop.agent_files import save_agent

        return save_agent(self, Path(path))  # type: ignore[arg-type]

    def __repr__(self) -> str:
        count = sum(parameter.numel() for parameter in self.network.parameters())
        env = self.settings.env.id.rpartition("/")[2]
        return f"<{self.settings.algorithm.upper()} agent for {env}, {count:,} parameters>"

    def _next_seed(self) -> Array:
        """The state of the generator that actions are drawn with, advanced by whoever draws."""
        if not hasattr(self, "_rng"):
            self._rng = np.array([derive_seed(self.settings.seed, "agent")], np.uint64)
        return self._rng


class GraphAgent(TrainedAgent):
    """`act` on a batch of graphs; `network` is an ordinary `nn.Module`."""

    def __init__(self, settings: PPOSettings, obs_spec: GraphSpec, action_spec: GraphActionSpec) -> None:
        self.settings = settings
        self.obs_spec, self.action_spec = obs_spec, action_spec
        self.actions = GraphActionMap(action_spec)
        self.network = build_graph_network(settings, obs_spec, self.actions, seed=0)

    def as_policy(self) -> GraphAgent:
        return self

    @torch.no_grad()
    def outputs(self, graphs: Graphs) -> GraphOutputs:
        """Of each graph the distribution of its action and its values, one for each part of the reward."""
        outcome = self.network(to_tensors(graphs, torch.device("cpu")))
        fields = (outcome.mean, outcome.log_std, outcome.value, outcome.node_logits)
        return GraphOutputs._make(None if field is None else field.numpy() for field in fields)

    def act(self, obs: Any, action_mask: Any = None, deterministic: bool = True, *, mask: Any = None) -> Action:
        """The likeliest action of each graph, as the env takes it; drawn from the policy unless `deterministic`."""
        if not isinstance(obs, Graphs) or obs.nodes.shape[1] != self.obs_spec.node_features:
            raise EnvError(
                f"the observation is {type(obs).__name__}, the agent was trained on graphs with "
                f"{self.obs_spec.node_features} numbers per node",
                "give `hotloop.core.graphs.Graphs`, as the env does",
            )
        outputs = self.outputs(obs)
        if deterministic:
            return self.actions.to_env(*self.actions.best(outputs))
        return self.actions.to_env(*self.actions.draw(self._next_seed(), obs, outputs))


def as_batch(obs: Any, obs_spec: ObsSpec, raw_obs: RawObs | None = None) -> tuple[Obs, bool]:
    """A batch, and whether only one was given; `raw_obs` encodes what the env itself gives."""
    if raw_obs is not None and raw_obs.is_raw(obs):
        try:
            return raw_obs.encode(obs)
        except BadValueError as error:
            raise EnvError(
                f"an observation was given {error}", "give what the env gives, or a batch with a leading axis in it"
            ) from error
    if not isinstance(obs_spec, dict):
        return _checked(obs, obs_spec)
    if not isinstance(obs, dict) or obs.keys() != obs_spec.keys():
        raise EnvError(f"the observation must be a dict of {', '.join(obs_spec)}")
    parts = {name: _checked(obs[name], spec) for name, spec in obs_spec.items()}
    return {name: batch for name, (batch, _) in parts.items()}, all(single for _, single in parts.values())


def _checked(obs: Any, spec: ArraySpec) -> tuple[Array, bool]:
    array = np.asarray(obs, dtype=spec.dtype)
    if array.shape == spec.shape:
        return array[None], True
    if array.shape[1:] == spec.shape:
        return array, False
    raise EnvError(
        f"the observation has shape {array.shape}, the agent was trained on {spec.shape}",
        "give one observation, or a batch with one more leading axis",
    )


class ActorAgent(TrainedAgent):
    """`act` on one observation or on a batch of them; `network` is an ordinary `nn.Module`.

    The network takes observations as `normalizer` leaves them, where the run had one.
    """

    raw_obs: RawObs | None = None

    def __init__(
        self,
        network: ActorCritic | SharedActorCritic,
        settings: PPOSettings,
        specs: tuple[ObsSpec, ActionSpec],
        from_zero: bool = False,
    ) -> None:
        self.network = network
        self.settings = settings
        self.obs_spec, self.action_spec = specs
        self.actions = ActionMap(self.action_spec, settings.network.squashed)
        limit = settings.normalize.limit
        self.normalizer = ObsNormalizer(self.obs_spec, limit) if settings.normalize.obs else None
        self._from_zero = from_zero

    def as_policy(self) -> ActorAgent:
        """The same agent with choices numbered from 0, as our envs take them."""
        twin = ActorAgent(self.network, self.settings, (self.obs_spec, self.action_spec), from_zero=True)
        twin.normalizer = self.normalizer
        return twin

    @torch.no_grad()
    def outputs_and_values(self, obs: Obs) -> tuple[Array, Array]:
        """What makes the policy's distribution [N, O], and the values [N], of a batch of observations."""
        seen = obs if self.normalizer is None else self.normalizer.apply(obs)
        outputs, values = self.network(map_obs(torch.from_numpy, seen))
        return outputs.numpy(), values.numpy()

    def act(self, obs: Any, action_mask: Any = None, deterministic: bool = True, *, mask: Any = None) -> Any:
        """The likeliest action as the env numbers it: one for one observation, an array of them for a batch.

        Drawn from the policy, as in training, unless `deterministic`.
        """
        batch, single = as_batch(obs, self.obs_spec, self.raw_obs)
        outputs, _ = self.outputs_and_values(batch)
        action_mask = mask if action_mask is None else action_mask
        mask = None if action_mask is None else np.atleast_2d(np.asarray(action_mask, np.bool_))
        log_std = self.network.log_std.detach().numpy()
        if deterministic:
            chosen = self.actions.best(outputs, log_std, mask)
        else:
            chosen = self.actions.draw(self._next_seed(), outputs, log_std, mask)
        action = self.actions.to_env(chosen)
        if not self._from_zero:
            action = _as_numbered(action, self.action_spec)
        if not single:
            return action
        return int(action[0]) if isinstance(self.action_spec, DiscreteActions) else action[0]


def _as_numbered(action: Array, spec: ActionSpec) -> Array:
    """Choices counted as the env counts them."""
    if isinstance(spec, HybridActions):
        count = len(spec.choices.counts)
        return np.concatenate([_as_numbered(action[:, :count], spec.choices), action[:, count:]], axis=1)
    if isinstance(spec, BoxActions) or not spec.first:
        return action
    return action + np.array(spec.first, action.dtype)


MISFITS = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, RuntimeError)
"""What code that expects a state of its own raises when it is given another."""


class Agent(TrainedAgent):
    """`act` on one observation or on a batch of them; `network` is an ordinary `nn.Module`."""

    raw_obs: RawObs | None = None
    """How the env's own observations are encoded; None where they are taken as they are."""

    def __init__(
        self, network: nn.Module, settings: DQNSettings, obs_spec: ObsSpec, num_actions: int, first_action: int = 0
    ) -> None:
        self.network = network
        self.num_actions = num_actions
        self.settings = settings
        self.obs_spec = obs_spec
        self.first_action = first_action
        limit = settings.normalize.limit
        self.normalizer = ObsNormalizer(obs_spec, limit) if settings.normalize.obs else None

    def as_policy(self) -> Agent:
        """The same agent with actions numbered from 0, as our envs take them."""
        twin = Agent(self.network, self.settings, self.obs_spec, self.num_actions)
        twin.raw_obs, twin.normalizer = self.raw_obs, self.normalizer
        return twin

    @torch.no_grad()
    def q_values(self, obs: Obs) -> Array:
        """Q [N, A] of a batch of observations."""
        seen = obs if self.normalizer is None else self.normalizer.apply(obs)
        q = self.network(map_obs(torch.from_numpy, seen))
        network = self.settings.network
        if network.atoms > 1:
            q = td.expected_q(q, td.make_support(network.v_min, network.v_max, network.atoms))
        return q.numpy()

    def act(self, obs: Any, action_mask: Any = None, deterministic: bool = True, *, mask: Any = None) -> Any:
        """The best action as the env numbers it: an int for one observation, an array [N] for a batch.

        Unless `deterministic`, at random as often as at the end of training (`exploration.end`).
        """
        batch, single = as_batch(obs, self.obs_spec, self.raw_obs)
        q = torch.from_numpy(self.q_values(batch))
        action_mask = mask if action_mask is None else action_mask
        mask = None if action_mask is None else torch.as_tensor(np.atleast_2d(action_mask), dtype=torch.bool)
        action = td.mask_actions(q, mask).argmax(-1).numpy()
        if not deterministic:
            action = self._explored(action, np.ones(q.shape, np.bool_) if mask is None else mask.numpy())
        action = action + self.first_action
        return int(action[0]) if single else action

    def _explored(self, best: Array, mask: Array) -> Array:
        schedule = self.settings.exploration
        epsilon = schedule.start if schedule.kind == "constant" else schedule.end
        drawn = np.empty(len(best), np.int64)
        draw_masked_exploration(self._next_seed(), epsilon, np.ascontiguousarray(mask), drawn)
        return np.where(drawn < 0, best, drawn)


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
