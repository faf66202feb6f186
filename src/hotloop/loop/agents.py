"""Trained agents that act: greedy Q-networks, actors, and actors over graphs.

Loaded from a run: plain data in, an ordinary network out, no code of the run's executed. They take one observation or
a batch of them, as a user gives it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hotloop.algos.action_map import ActionMap, layout_of
from hotloop.algos.derived import settled
from hotloop.algos.dqn_settings import DQNSettings
from hotloop.algos.graph_policies import GraphActionMap
from hotloop.algos.normaliser import ObsNormaliser
from hotloop.algos.ppo import build_graph_network
from hotloop.algos.ppo_settings import PPOSettings
from hotloop.algos.registry import RunSettings
from hotloop.core.errors import CheckpointError, EnvError, RunError
from hotloop.core.graphs import Graphs, GraphSpec
from hotloop.core.terminal import say
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
from hotloop.envs.observations import RawObs, raw_obs_from_data
from hotloop.lanes.graph_objective import GraphOutputs
from hotloop.loop.sizes import require_weights
from hotloop.loop.spec_data import actions_from_data, spec_from_data
from hotloop.maths import td
from hotloop.nets.actor_critic import ActorCritic, build_actor_critic
from hotloop.nets.build import QNetwork, build_q_network
from hotloop.nets.graphs.attention import to_tensors
from hotloop.runs import checkpoint
from hotloop.runs.directory import Run


class GraphAgent:
    """`act` on a batch of graphs; `network` is an ordinary `nn.Module`."""

    def __init__(self, settings: PPOSettings, obs_spec: GraphSpec, action_spec: GraphActionSpec) -> None:
        self.settings = settings
        self.obs_spec, self.action_spec = obs_spec, action_spec
        self.actions = GraphActionMap(action_spec)
        self.network = build_graph_network(settings, obs_spec, self.actions, seed=0)

    @property
    def num_weights(self) -> int:
        return sum(parameter.numel() for parameter in self.network.parameters())

    def load_weights(self, values: Array) -> None:
        torch.nn.utils.vector_to_parameters(torch.from_numpy(values.copy()), self.network.parameters())

    def as_policy(self) -> GraphAgent:
        return self

    @torch.no_grad()
    def outputs(self, graphs: Graphs) -> GraphOutputs:
        """Of each graph the distribution of its action and its values, one for each part of the reward."""
        outcome = self.network(to_tensors(graphs, torch.device("cpu")))
        fields = (outcome.mean, outcome.log_std, outcome.value, outcome.node_logits)
        return GraphOutputs._make(None if field is None else field.numpy() for field in fields)

    def act(self, obs: Any, action_mask: Any = None) -> Action:
        """The likeliest action of each graph, as the env takes it."""
        if not isinstance(obs, Graphs) or obs.nodes.shape[1] != self.obs_spec.node_features:
            raise EnvError(
                f"the observation is {type(obs).__name__}, the agent was trained on graphs with "
                f"{self.obs_spec.node_features} numbers per node",
                "give `hotloop.core.graphs.Graphs`, as the env does",
            )
        return self.actions.to_env(*self.actions.best(self.outputs(obs)))


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


class ActorAgent:
    """`act` on one observation or on a batch of them; `network` is an ordinary `nn.Module`.

    The network takes observations as `normaliser` leaves them, where the run had one.
    """

    raw_obs: RawObs | None = None

    def __init__(
        self, network: ActorCritic, settings: PPOSettings, specs: tuple[ObsSpec, ActionSpec], from_zero: bool = False
    ) -> None:
        self.network = network
        self.settings = settings
        self.obs_spec, self.action_spec = specs
        self.actions = ActionMap(self.action_spec, settings.network.squashed)
        limit = settings.normalise.limit
        self.normaliser = ObsNormaliser(self.obs_spec, limit) if settings.normalise.obs else None
        self._from_zero = from_zero

    @property
    def num_weights(self) -> int:
        own = sum(parameter.numel() for parameter in self.network.parameters())
        return own + (self.normaliser.num_weights if self.normaliser else 0)

    def load_weights(self, values: Array) -> None:
        """The parameters, then what observations are normalised by."""
        if self.normaliser is not None:
            self.normaliser.load_weights(values[-self.normaliser.num_weights :])
            values = values[: -self.normaliser.num_weights]
        torch.nn.utils.vector_to_parameters(torch.from_numpy(values.copy()), self.network.parameters())

    def as_policy(self) -> ActorAgent:
        """The same agent with choices numbered from 0, as our envs take them."""
        twin = ActorAgent(self.network, self.settings, (self.obs_spec, self.action_spec), from_zero=True)
        twin.normaliser = self.normaliser
        return twin

    @torch.no_grad()
    def outputs_and_values(self, obs: Obs) -> tuple[Array, Array]:
        """What makes the policy's distribution [N, O], and the values [N], of a batch of observations."""
        seen = obs if self.normaliser is None else self.normaliser.apply(obs)
        outputs, values = self.network(map_obs(torch.from_numpy, seen))
        return outputs.numpy(), values.numpy()

    def act(self, obs: Any, action_mask: Any = None) -> Any:
        """The likeliest action as the env numbers it: one for one observation, an array of them for a batch."""
        batch, single = as_batch(obs, self.obs_spec, self.raw_obs)
        outputs, _ = self.outputs_and_values(batch)
        mask = None if action_mask is None else np.atleast_2d(np.asarray(action_mask, np.bool_))
        log_std = self.network.log_std.detach().numpy()
        action = self.actions.to_env(self.actions.best(outputs, log_std, mask))
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


class Agent:
    """`act` on one observation or on a batch of them; `network` is an ordinary `nn.Module`."""

    raw_obs: RawObs | None = None
    """How the env's own observations are encoded; None where they are taken as they are."""

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
            q = td.expected_q(q, td.make_support(network.v_min, network.v_max, network.atoms))
        return q.numpy()

    def act(self, obs: Any, action_mask: Any = None) -> Any:
        """The best action as the env numbers it: an int for one observation, an array [N] for a batch."""
        batch, single = as_batch(obs, self.obs_spec, self.raw_obs)
        q = torch.from_numpy(self.q_values(batch))
        mask = None if action_mask is None else torch.as_tensor(np.atleast_2d(action_mask), dtype=torch.bool)
        action = td.mask_actions(q, mask).argmax(-1).numpy() + self.first_action
        return int(action[0]) if single else action


def load_agent(run: Run, settings: RunSettings) -> Agent | ActorAgent | GraphAgent:
    """The best weights by periodic evaluation up to the newest good checkpoint."""
    with _best_weights(run, settings) as (values, obs_spec, action_spec, raw_obs):
        return agent_with(values, settings, obs_spec, action_spec, raw_obs)


def weights_of(run: Run, settings: RunSettings) -> Array:
    """Those of `load_agent`, as the vector that a session loads."""
    with _best_weights(run, settings) as found:
        return found[0]


@contextmanager
def _best_weights(run: Run, settings: RunSettings) -> Iterator[tuple[Array, Any, Any, RawObs | None]]:
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
        raw_obs = raw_obs_from_data(meta["raw_obs"], obs_spec) if "raw_obs" in meta else None
        yield values, obs_spec, action_spec, raw_obs


def agent_with(
    values: Array, settings: RunSettings, obs_spec: Any, action_spec: Any, raw_obs: RawObs | None = None
) -> Agent | ActorAgent | GraphAgent:
    """An agent with these weights, copied; `raw_obs` encodes what the env itself gives, where it sees that encoded."""
    load: Any = _load_actor if isinstance(settings, PPOSettings) else _load_q_agent
    agent: Any = load(settled(settings, obs_spec), values, obs_spec, action_spec)
    if raw_obs is not None:
        agent.raw_obs = raw_obs
    return agent


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
