"""Agents from files: the best weights of a run, or one file that an agent was saved to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hotloop.core.errors import CheckpointError, RunError, SettingsError
from hotloop.core.given import give, is_given, require_given
from hotloop.core.graphs import GraphSpec
from hotloop.core.settings import as_tree, build
from hotloop.core.terminal import say
from hotloop.core.types import Array, BoxActions, DiscreteActions
from hotloop.core.vocabulary import upgraded
from hotloop.envs.observations import RawObs, raw_obs_from_data
from hotloop.learners.action_map import layout_of
from hotloop.learners.derived import resolve
from hotloop.loop.agents import ActorAgent, Agent, GraphAgent, misfits_named
from hotloop.loop.sac_agent import SACAgent
from hotloop.loop.sizes import require_weights
from hotloop.loop.spec_data import actions_as_data, actions_from_data, spec_as_data, spec_from_data, torso_change
from hotloop.nets.actor_critic import build_actor_critic
from hotloop.nets.build import build_q_network
from hotloop.presets.dqn_settings import DQNSettings
from hotloop.presets.ppo_settings import PPOSettings
from hotloop.presets.registry import RunSettings, class_of
from hotloop.presets.sac_settings import SACSettings
from hotloop.runs import checkpoint
from hotloop.runs.checkpoint_files import newest_first
from hotloop.runs.directory import Run
from hotloop.runs.files import make_folder, parse_strict, read_file, write_file
from hotloop.runs.tensors import decode, encode

ABOUT, WEIGHTS, SCHEMA = "about", "weights", 1
MAX_AGENT_BYTES = 2**34


def load_agent(run: Run, settings: RunSettings, checkpoint: str = "") -> Agent | ActorAgent | GraphAgent:
    """The best weights by periodic evaluation up to the newest good checkpoint, or up to the one of that name."""
    with _best_weights(run, settings, checkpoint) as (values, obs_spec, action_spec, raw_obs):
        return agent_with(values, settings, obs_spec, action_spec, raw_obs)


def weights_of(run: Run, settings: RunSettings) -> Array:
    """Those of `load_agent`, as the vector that a session loads."""
    with _best_weights(run, settings) as found:
        return found[0]


@contextmanager
def _best_weights(run: Run, settings: RunSettings, name: str = "") -> Iterator[tuple[Array, Any, Any, RawObs | None]]:
    path, state, meta = _checkpoint(run, name)
    if words := torso_change(meta, settings):
        say(f"{words}: the agent may act in another way than it was trained to")
    with misfits_named(path):
        best, current = state["best"]["parameters"], state["learner"]
        values = best if len(best) else current["weights" if "weights" in current else "online"]
        if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype != np.float32:
            raise ValueError("its weights are no vector of float32")
        obs_spec, action_spec = spec_from_data(meta["obs_spec"]), actions_from_data(meta)
        require_weights(len(values), settings, obs_spec, action_spec)  # before anything of that size is built
        raw_obs = raw_obs_from_data(meta["raw_obs"], obs_spec) if "raw_obs" in meta else None
        yield values, obs_spec, action_spec, raw_obs


def _checkpoint(run: Run, name: str) -> tuple[Path, Any, dict[str, Any]]:
    """The newest good one, or the one of that name."""
    if name:
        kept = [path for path in newest_first(run.checkpoints) if path.name.lstrip("0") == name.lstrip("0")]
        if not kept:
            names = ", ".join(path.name for path in newest_first(run.checkpoints)[:5])
            raise RunError(f"{run.path} has no checkpoint `{name}`", f"it has {names or 'none yet'}")
        return kept[0], *checkpoint.load(kept[0])
    found = checkpoint.newest(run.checkpoints, warn=say)
    if found is None:
        raise RunError(f"{run.path} has no checkpoint yet", "`hotloop resume` continues the run")
    return found


def save_agent(agent: Agent | ActorAgent | GraphAgent, path: Path) -> Path:
    """One file of plain data: the weights, and what says how to build and feed the network."""
    actions = DiscreteActions(agent.num_actions, agent.first_action) if isinstance(agent, Agent) else agent.action_spec
    raw_obs = getattr(agent, "raw_obs", None)
    about = {
        "schema": SCHEMA,
        "settings": as_tree(agent.settings),
        "obs_spec": spec_as_data(agent.obs_spec),
        **actions_as_data(actions),
        **({} if raw_obs is None else {"raw_obs": raw_obs.as_data()}),
    }
    text = np.frombuffer(json.dumps(about, allow_nan=False).encode(), np.uint8)
    make_folder(path.absolute().parent)
    write_file(path, b"".join(encode({WEIGHTS: agent.weights(), ABOUT: text})))
    return path


def load_agent_file(path: Path, trust: bool = False, network: Any = None) -> Agent | ActorAgent | GraphAgent:
    """What `save_agent` wrote; runs no code unless its torso is a file and `trust` allows it."""
    about, values = read_agent_file(path)
    tree = upgraded(about["settings"], str(path))
    settings = build(class_of(tree), {**tree, "trust": trust}, source=str(path))
    give_network(settings, network)
    with misfits_named(path):
        obs_spec, action_spec = spec_from_data(about["obs_spec"]), actions_from_data(about)
        require_weights(len(values), settings, obs_spec, action_spec)
        raw_obs = raw_obs_from_data(about["raw_obs"], obs_spec) if "raw_obs" in about else None
        return agent_with(values, settings, obs_spec, action_spec, raw_obs)


def read_agent_file(path: Path) -> tuple[dict[str, Any], Array]:
    """What says how to build and feed the network, and its weights."""
    try:
        arrays = decode(read_file(path, MAX_AGENT_BYTES))
        about, values = parse_strict(arrays[ABOUT].tobytes()), arrays[WEIGHTS]
        if about["schema"] != SCHEMA or values.dtype != np.float32 or values.ndim != 1:
            raise ValueError("another schema, or weights that are no vector of float32")
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(
            f"{path} is no agent that `agent.save` wrote: {error}", "`hotloop.load` takes runs too"
        ) from None
    return about, values


def give_network(settings: RunSettings, network: Any) -> None:
    """The network that settings name, where it was given as a Python object; refuses one that they do not ask for."""
    torso = settings.network.torso
    if network is None:
        require_given("network", torso)
    elif not is_given(torso):
        raise SettingsError(f"`network` is given, but the run has one of its own (`{torso}`)", "leave `network` out")
    else:
        give("network", network, torso)


def agent_with(
    values: Array, settings: RunSettings, obs_spec: Any, action_spec: Any, raw_obs: RawObs | None = None
) -> Agent | ActorAgent | GraphAgent:
    """An agent with these weights, copied; `raw_obs` encodes what the env itself gives, where it sees that encoded."""
    load: Any = {"dqn": _load_q_agent, "ppo": _load_actor, "sac": _load_sac_agent}[settings.algorithm]
    agent: Any = load(resolve(settings, obs_spec), values, obs_spec, action_spec)
    if raw_obs is not None:
        agent.raw_obs = raw_obs
    return agent


def _load_q_agent(settings: DQNSettings, values: Array, obs_spec: Any, action_spec: Any) -> Agent:
    if not isinstance(action_spec, DiscreteActions) or isinstance(obs_spec, GraphSpec):
        raise ValueError("DQN has discrete actions and observations that are arrays")
    network = build_q_network(settings.network, obs_spec, action_spec.count, seed=0)
    agent = Agent(network, settings, obs_spec, action_spec.count, action_spec.first)
    _require_size(values, agent.num_weights)
    agent.load_weights(values)
    return agent


def _load_sac_agent(settings: SACSettings, values: Array, obs_spec: Any, action_spec: Any) -> SACAgent:
    if not isinstance(action_spec, BoxActions) or isinstance(obs_spec, GraphSpec):
        raise ValueError("SAC has actions that are numbers and observations that are arrays")
    agent = SACAgent(settings, obs_spec, action_spec)
    _require_size(values, agent.num_weights)
    agent.load_weights(values)
    return agent


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
