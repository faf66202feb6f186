"""What an agent saw and did, as data that a checkpoint keeps and a loaded agent is built from."""

from __future__ import annotations

import math
from collections.abc import Mapping
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
from hotloop.core.user_files import is_file, run_digest, split_file
from hotloop.envs.observations import RawObs
from hotloop.runs.tensors import DTYPES

TORSO_DIGEST = "torso_sha256"
LARGEST = 2**40
"""Numbers in an observation, or choices: beyond it is no spec of an env's, and sizes would overflow."""


def specs_as_data(envs: VecEnv) -> dict[str, Any]:
    """What a network is built from, and how it takes what an env of Gymnasium's gives."""
    raw_obs: RawObs | None = getattr(envs, "raw_obs", None)
    own = {} if raw_obs is None else {"raw_obs": raw_obs.as_data()}
    return {"obs_spec": spec_as_data(envs.obs_spec), **actions_as_data(envs.action_spec), **own}


def torso_as_data(settings: Any) -> dict[str, str]:
    """What the file of a torso of the user's own held when the run was started."""
    torso = settings.network.torso
    return {TORSO_DIGEST: run_digest(torso)} if is_file(torso) else {}


def torso_change(meta: Mapping[str, Any], settings: Any) -> str:
    """Words about such a file that is another one now; empty where it is not."""
    saved, torso = meta.get(TORSO_DIGEST), settings.network.torso
    if saved is None or not is_file(torso) or saved == run_digest(torso):
        return ""
    return f"{split_file(torso)[0]}, the file of `network.torso`, was changed since the checkpoint was saved"


def spec_as_data(spec: ObsSpec | GraphSpec) -> Any:
    if isinstance(spec, GraphSpec):
        return {"graph": [spec.node_features, spec.edge_features, spec.graph_features]}
    if isinstance(spec, dict):
        return {"parts": {name: spec_as_data(part) for name, part in spec.items()}}
    return {"shape": list(spec.shape), "dtype": spec.dtype.name}


def spec_from_data(data: Any) -> Any:
    """Raises ValueError, TypeError, KeyError or AttributeError where it is none."""
    if "graph" in data:
        return GraphSpec(*_counts(data["graph"]))
    if "parts" in data:
        return {name: _array_spec(part) for name, part in data["parts"].items()}
    return _array_spec(data)


def _array_spec(data: Any) -> ArraySpec:
    shape = _counts(data["shape"])
    if data["dtype"] not in DTYPES or math.prod(shape) > LARGEST:
        raise ValueError(f"no observation has shape {shape} and dtype {data['dtype']!r:.40}")
    return ArraySpec(shape, np.dtype(data["dtype"]))


def _counts(values: Any, least: int = 0) -> tuple[int, ...]:
    """Whole numbers that something can be counted by."""
    if not isinstance(values, list) or len(values) > 10_000:
        raise ValueError("a list of counts was expected")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST:
            raise ValueError(f"{value!r:.40} is no count")
    return tuple(values)


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
    """Raises ValueError, TypeError or KeyError where they are none."""
    choices, numbers = None, None
    if "choices" in data:
        counts, firsts = _counts(data["choices"], 1), _counts(data["first_choices"], -LARGEST)
        if firsts and len(firsts) != len(counts):
            raise ValueError("choices and their first numbers differ in length")
        choices = MultiDiscreteActions(counts, firsts)
    if "action_shape" in data:
        low, high = (tuple(float(bound) for bound in data[name]) for name in ("action_low", "action_high"))
        shape = _counts(data["action_shape"])
        if not len(low) == len(high) == math.prod(shape) or any(math.isnan(bound) for bound in (*low, *high)):
            raise ValueError("the bounds of the actions do not fit their shape")
        numbers = BoxActions(low, high, shape)
    if numbers and "node_choices" in data:
        (count,) = _counts([data["node_choices"]], 1)
        return NodeActions(count, numbers)
    if choices and numbers:
        return HybridActions(choices, numbers)
    if choices or numbers:
        return choices or numbers
    return DiscreteActions(*_counts([data["num_actions"]], 1), *_counts([data.get("first_action", 0)], -LARGEST))
