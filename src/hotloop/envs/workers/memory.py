"""Memory that the pool and its workers share: anonymous, so that nothing is left of it once all of them are gone.

There are two slabs, written in turn. While a worker writes one of them, the other still holds what the policy saw
last; that is what an episode ends with when its worker dies in the middle of a step.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotloop.core.types import ActionSpec, Array, BoxActions, HybridActions, Obs, ObsSpec, map_obs

ALIGNMENT = 64  # a cache line
SLABS = 2


@dataclass(frozen=True)
class Plan:
    """All that decides where an array lies."""

    num_envs: int
    obs_spec: ObsSpec
    action_spec: ActionSpec
    has_action_mask: bool


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


def new_memory(plan: Plan) -> int:
    """A descriptor of zeroed memory that is large enough for `slabs_in`."""
    descriptor = anonymous_file("hotloop-envs")
    try:
        os.truncate(descriptor, SLABS * _slab_bytes(plan))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def slabs_in(descriptor: int, plan: Plan) -> list[Slab]:
    """The slabs, as views that keep the mapping alive; the descriptor may be closed."""
    size = _slab_bytes(plan)
    memory = mmap.mmap(descriptor, SLABS * size)
    return [_slab_at(memory, number * size, plan) for number in range(SLABS)]


def action_dtype(spec: ActionSpec) -> np.dtype:
    return np.dtype(np.float32 if isinstance(spec, BoxActions | HybridActions) else np.int64)


def _slab_at(memory: mmap.mmap, offset: int, plan: Plan) -> Slab:
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


def _fields(plan: Plan) -> list[tuple[tuple[str, str], tuple[int, ...], np.dtype]]:
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


def _slab_bytes(plan: Plan) -> int:
    sizes = (int(np.prod(shape, dtype=np.int64)) * dtype.itemsize for _, shape, dtype in _fields(plan))
    return sum(_aligned(size) for size in sizes)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
