"""What goes with exported weights: what they see, what their outputs mean, where they come from. No paths.

An agent's parameters by name as safetensors, with everything needed to build the network again as JSON.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from hotloop.core.errors import NonFiniteError
from hotloop.core.program import hotloop_version
from hotloop.core.settings import as_tree
from hotloop.core.types import Array, BoxActions, DiscreteActions, HybridActions, MultiDiscreteActions
from hotloop.envs.registry import is_file
from hotloop.export.wrapped import normalizer_vectors
from hotloop.loop.agents import ActorAgent, Agent, GraphAgent
from hotloop.loop.spec_data import actions_as_data, spec_as_data
from hotloop.runs.files import make_folder, write_file

AnyAgent = Agent | ActorAgent | GraphAgent


def describe(agent: AnyAgent) -> dict[str, Any]:
    return {
        "hotloop": hotloop_version(),
        "algorithm": agent.settings.algorithm,
        "env": env_name(agent.settings.env.id),
        "observation": spec_as_data(agent.obs_spec),
        "actions": _actions(agent),
        "action_meaning": action_meaning(agent),
        "normaliser": agent.normalizer is not None,
    }


def _settings(agent: AnyAgent) -> dict[str, Any]:
    """All settings but where the run lay."""
    tree = as_tree(agent.settings)
    tree["env"]["id"], tree["network"]["torso"] = map(env_name, (tree["env"]["id"], tree["network"]["torso"]))
    return {name: value for name, value in tree.items() if name not in ("run_dir", "trust")}


def env_name(env_id: str) -> str:
    """Of an env (or a torso) in a file, the file without its folders."""
    if not is_file(env_id):
        return env_id
    path, _, name = env_id.rpartition(":")
    return f"{Path(path).name}:{name}"


def action_meaning(agent: AnyAgent) -> str:
    if isinstance(agent, Agent):
        return _choice(agent.num_actions, agent.first_action)
    spec: Any = agent.action_spec
    if isinstance(spec, DiscreteActions):
        return _choice(spec.count, spec.first)
    if isinstance(spec, MultiDiscreteActions):
        return f"int64 row of {len(spec.counts)} choices, as the env numbers them"
    if isinstance(spec, BoxActions):
        return f"float32 of shape {list(spec.shape)}, in the env's units and within its bounds"
    if isinstance(spec, HybridActions):
        return (
            f"float32 row: {len(spec.choices.counts)} choices, then {len(spec.numbers.low)} numbers in the env's units"
        )
    return "a choice for each node and numbers for the graph"


def _choice(count: int, first: int) -> str:
    return f"int64 from {first} to {first + count - 1}, as the env numbers its {count} actions"


def _actions(agent: AnyAgent) -> dict[str, Any]:
    if isinstance(agent, Agent):
        return actions_as_data(DiscreteActions(agent.num_actions, agent.first_action))
    return actions_as_data(agent.action_spec)


def export_torch(agent: AnyAgent, file: Path) -> dict[str, Any]:
    """One file: `network.NAME` as `network.state_dict()` calls them, `normalizer.PART.shift` and `.scale`; the JSON is
    in its header, under `hotloop`."""
    arrays = parameters(agent)
    about = describe(agent) | {"settings": _settings(agent)}
    content = save(arrays, metadata={"format": "pt", "hotloop": json.dumps(about)})
    back = load(content)
    if any(not np.array_equal(array, back[name]) for name, array in arrays.items()):
        raise NonFiniteError(f"{file} would not hold what the agent has", "please report it")
    make_folder(file.parent)
    write_file(file, content)
    count = sum(array.size for array in arrays.values())
    return {"file": str(file), "bytes": len(content), "tensors": len(arrays), "parameters": count, **about}


def parameters(agent: AnyAgent) -> dict[str, Array]:
    arrays = {f"network.{name}": value.detach().numpy() for name, value in agent.network.state_dict().items()}
    if agent.normalizer is not None:
        for name, (shift, scale) in normalizer_vectors(agent.normalizer, agent.obs_spec).items():
            arrays |= {f"normalizer.{name}.shift": shift, f"normalizer.{name}.scale": scale}
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}
