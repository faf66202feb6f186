"""What the pool and a worker say to each other: single bytes while stepping, JSON for everything else.

A line is a stream socket. An order is one byte and so is its answer; `FAILED` is followed by a message. Numbers of the
run never pass through here: they lie in shared memory.
"""

from __future__ import annotations

import json
import socket
import struct
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from hotloop.core.errors import EnvError, HotloopError, MissingExtraError, SettingsError
from hotloop.core.types import ActionSpec, ArraySpec, BoxActions, DiscreteActions, HybridActions, MultiDiscreteActions
from hotloop.envs.workers.memory import Plan

STEP = (b"s", b"S")  # into slab 0, into slab 1
RESET = (b"r", b"R")
LEAVE = b"q"
MEMORY = b"m"  # comes with the descriptor of the shared memory

DONE = b"k"
DONE_WITH_ENDINGS = b"d"  # episodes ended: `next_obs` and `next_mask` count
FAILED = b"e"

_LENGTH = struct.Struct("!Q")
_ERRORS: dict[str, type[HotloopError]] = {kind.__name__: kind for kind in (EnvError, MissingExtraError, SettingsError)}


def send_message(line: socket.socket, data: Any) -> None:
    text = json.dumps(data).encode()
    line.sendall(_LENGTH.pack(len(text)) + text)


def read_message(receive: Callable[[int], bytes]) -> Any:
    """`receive(count)` gives exactly `count` bytes."""
    (length,) = _LENGTH.unpack(receive(_LENGTH.size))
    return json.loads(receive(length))


def error_as_data(error: BaseException) -> dict[str, str]:
    kind = type(error).__name__
    words = {"error": "EnvError", "message": f"a worker failed: {kind}: {error}", "hint": ""}
    if isinstance(error, HotloopError):
        words = {"error": kind if kind in _ERRORS else "EnvError", "message": error.message, "hint": error.hint}
    return words | {"traceback": "".join(traceback.format_exception(error))}


def error_from_data(data: dict[str, str]) -> HotloopError:
    """The worker's own traceback is a note, which only a printed traceback shows."""
    error = _ERRORS[data["error"]](data["message"], data["hint"])
    error.add_note(f"\nin the worker process:\n{data['traceback']}")
    return error


def plan_as_data(plan: Plan) -> dict[str, Any]:
    obs = plan.obs_spec
    parts = {"": obs} if isinstance(obs, ArraySpec) else obs
    return {
        "num_envs": plan.num_envs,
        "one_array": isinstance(obs, ArraySpec),
        "obs": [[name, list(part.shape), part.dtype.str] for name, part in parts.items()],
        "action": _action_as_data(plan.action_spec),
        "has_action_mask": plan.has_action_mask,
    }


def plan_from_data(data: dict[str, Any]) -> Plan:
    parts = {name: ArraySpec(tuple(shape), np.dtype(dtype)) for name, shape, dtype in data["obs"]}
    obs = parts[""] if data["one_array"] else parts
    return Plan(data["num_envs"], obs, _action_from_data(data["action"]), data["has_action_mask"])


def _action_as_data(spec: ActionSpec) -> list[Any]:
    if isinstance(spec, DiscreteActions):
        return ["discrete", spec.count, spec.first]
    if isinstance(spec, MultiDiscreteActions):
        return ["choices", spec.counts, spec.first]
    if isinstance(spec, BoxActions):
        return ["numbers", spec.low, spec.high, spec.shape, spec.masked]
    return ["both", _action_as_data(spec.choices), _action_as_data(spec.numbers)]


def _action_from_data(data: list[Any]) -> Any:
    kind, *values = data
    if kind == "discrete":
        return DiscreteActions(*values)
    if kind == "choices":
        return MultiDiscreteActions(*(tuple(value) for value in values))
    if kind == "numbers":
        low, high, shape, masked = values
        return BoxActions(tuple(low), tuple(high), tuple(shape), masked)
    return HybridActions(*(_action_from_data(value) for value in values))
