"""What the pool and a worker say to each other: single bytes while stepping, JSON for everything else.

A line is a stream socket. An order is one byte and so is its answer; `FAILED` is followed by a message. Numbers of the
run never pass through here: they lie in shared memory.

Memory that the pool and its workers share: anonymous, so that nothing is left of it once all of them are gone.

There are two slabs, written in turn. While a worker writes one of them, the other still holds what the policy saw
last; that is what an episode ends with when its worker dies in the middle of a step.
"""

from __future__ import annotations

import json
import mmap
import os
import socket
import struct
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotloop.core.errors import EnvError, HotloopError, MissingExtraError, SettingsError
from hotloop.core.types import (
    ActionSpec,
    Array,
    ArraySpec,
    BoxActions,
    DiscreteActions,
    HybridActions,
    MultiDiscreteActions,
    Obs,
    ObsSpec,
    map_obs,
)
from hotloop.envs.observations import RawObs, raw_obs_from_data

ALIGNMENT = 64  # a cache line
SLABS = 2


@dataclass(frozen=True)
class BufferPlan:
    """All that decides where an array lies."""

    num_envs: int
    obs_spec: ObsSpec
    action_spec: ActionSpec
    has_action_mask: bool
    raw_obs: RawObs | None = None


@dataclass
class Slab:
    """One step of all envs, or of some: `final` is what `step` returned, `next` counts in groups where one ended."""

    action: Array  # [N, ...]
    reward: Array  # [N] float32
    terminated: Array  # [N] bool
    truncated: Array  # [N] bool
    final_obs: Obs  # [N, ...]
    next_obs: Obs  # [N, ...]
    final_mask: Array | None  # [N, A] bool
    next_mask: Array | None  # [N, A] bool

    def rows(self, rows: slice) -> Slab:
        cut = lambda value: None if value is None else map_obs(lambda part: part[rows], value)  # noqa: E731
        views: dict[str, Any] = {name: cut(value) for name, value in vars(self).items()}
        return Slab(**views)


def anonymous_file(name: str) -> int:
    """A descriptor of memory without a path; where the system has none, of a file that is already unlinked."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def new_memory(plan: BufferPlan) -> int:
    """A descriptor of zeroed memory that is large enough for `slabs_in`."""
    descriptor = anonymous_file("hotloop-envs")
    try:
        os.truncate(descriptor, SLABS * _slab_bytes(plan))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def slabs_in(descriptor: int, plan: BufferPlan) -> list[Slab]:
    """The slabs, as views that keep the mapping alive; the descriptor may be closed."""
    size = _slab_bytes(plan)
    memory = mmap.mmap(descriptor, SLABS * size)
    return [_slab_at(memory, number * size, plan) for number in range(SLABS)]


def action_dtype(spec: ActionSpec) -> np.dtype:
    return np.dtype(np.float32 if isinstance(spec, BoxActions | HybridActions) else np.int64)


def _slab_at(memory: mmap.mmap, offset: int, plan: BufferPlan) -> Slab:
    arrays: dict[tuple[str, str], Array] = {}
    for key, shape, dtype in _fields(plan):
        count = int(np.prod(shape, dtype=np.int64))
        arrays[key] = np.frombuffer(memory, dtype, count, offset).reshape(shape)
        offset += _aligned(count * dtype.itemsize)
    values: dict[str, Any] = {name: array for (name, part), array in arrays.items() if not part}
    for name, part in arrays:
        if part:
            values.setdefault(name, {})[part[1:]] = arrays[name, part]
    return Slab(**({"final_mask": None, "next_mask": None} | values))


def _fields(plan: BufferPlan) -> list[tuple[tuple[str, str], tuple[int, ...], np.dtype]]:
    """Name and part (`.name`, or nothing) of every array, its shape and dtype, in the order they lie in."""
    count = plan.num_envs
    flag = np.dtype(np.bool_)
    fields = [
        (("action", ""), (count, *plan.action_spec.shape), action_dtype(plan.action_spec)),
        (("reward", ""), (count,), np.dtype(np.float32)),
        (("terminated", ""), (count,), flag),
        (("truncated", ""), (count,), flag),
    ]
    spec = plan.obs_spec
    parts = {f".{name}": part for name, part in spec.items()} if isinstance(spec, dict) else {"": spec}
    for name in ("final_obs", "next_obs"):
        fields += [((name, part), (count, *array.shape), array.dtype) for part, array in parts.items()]
    if plan.has_action_mask:
        fields += [((name, ""), (count, plan.action_spec.mask_width), flag) for name in ("final_mask", "next_mask")]
    return fields


def _slab_bytes(plan: BufferPlan) -> int:
    sizes = (int(np.prod(shape, dtype=np.int64)) * dtype.itemsize for _, shape, dtype in _fields(plan))
    return sum(_aligned(size) for size in sizes)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


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


def plan_as_data(plan: BufferPlan) -> dict[str, Any]:
    obs = plan.obs_spec
    parts = {"": obs} if isinstance(obs, ArraySpec) else obs
    return {
        "num_envs": plan.num_envs,
        "one_array": isinstance(obs, ArraySpec),
        "obs": [[name, list(part.shape), part.dtype.str] for name, part in parts.items()],
        "action": _action_as_data(plan.action_spec),
        "has_action_mask": plan.has_action_mask,
        "raw_obs": None if plan.raw_obs is None else plan.raw_obs.as_data(),
    }


def plan_from_data(data: dict[str, Any]) -> BufferPlan:
    parts = {name: ArraySpec(tuple(shape), np.dtype(dtype)) for name, shape, dtype in data["obs"]}
    obs = parts[""] if data["one_array"] else parts
    raw_obs = None if data["raw_obs"] is None else raw_obs_from_data(data["raw_obs"], obs)
    return BufferPlan(data["num_envs"], obs, _action_from_data(data["action"]), data["has_action_mask"], raw_obs)


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
