"""What an agent saw and did, as data that a checkpoint keeps and a loaded agent is built from."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.graphs import GraphSpec
from hotloop.core.types import (
    ActionSpec,
    ArraySpec,
    BoxActions,
    DiscreteActions,
    HybridActions,
    MultiDiscreteActions,
    NodeActions,
    ObsSpec,
    VecEnv,
)


def specs_as_data(envs: VecEnv) -> dict[str, Any]:
    """What a network is built from."""
    return {"obs_spec": spec_as_data(envs.obs_spec), **actions_as_data(envs.action_spec)}


def spec_as_data(spec: ObsSpec | GraphSpec) -> Any:
    if isinstance(spec, GraphSpec):
        return {"graph": [spec.node_features, spec.edge_features, spec.graph_features]}
    if isinstance(spec, dict):
        return {"parts": {name: spec_as_data(part) for name, part in spec.items()}}
    return {"shape": list(spec.shape), "dtype": spec.dtype.name}


def spec_from_data(data: Any) -> Any:
    if "graph" in data:
        return GraphSpec(*data["graph"])
    if "parts" in data:
        return {name: ArraySpec(tuple(part["shape"]), np.dtype(part["dtype"])) for name, part in data["parts"].items()}
    return ArraySpec(tuple(data["shape"]), np.dtype(data["dtype"]))


def actions_as_data(spec: ActionSpec | NodeActions) -> dict[str, Any]:
    if isinstance(spec, DiscreteActions):
        return {"num_actions": spec.count, "first_action": spec.first}
    if isinstance(spec, MultiDiscreteActions):
        return {"choices": list(spec.counts), "first_choices": list(spec.first)}
    if isinstance(spec, HybridActions):
        return actions_as_data(spec.choices) | actions_as_data(spec.numbers)
    if isinstance(spec, NodeActions):
        return {"node_choices": spec.count} | actions_as_data(spec.numbers)
    bounds = [[str(bound) for bound in bounds] for bounds in (spec.low, spec.high)]  # JSON has no infinity
    return {"action_low": bounds[0], "action_high": bounds[1], "action_shape": list(spec.shape)}


def actions_from_data(data: dict[str, Any]) -> Any:
    choices, numbers = None, None
    if "choices" in data:
        choices = MultiDiscreteActions(tuple(data["choices"]), tuple(data["first_choices"]))
    if "action_shape" in data:
        low, high = (tuple(float(bound) for bound in data[name]) for name in ("action_low", "action_high"))
        numbers = BoxActions(low, high, tuple(data["action_shape"]))
    if numbers and "node_choices" in data:
        return NodeActions(data["node_choices"], numbers)
    if choices and numbers:
        return HybridActions(choices, numbers)
    return choices or numbers or DiscreteActions(data["num_actions"], data.get("first_action", 0))
