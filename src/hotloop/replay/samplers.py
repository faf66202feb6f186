"""Which transitions are drawn: uniformly, the newest too, or by priority through a sum tree."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from hotloop.core.errors import CheckpointError, NonFiniteError
from hotloop.core.types import Array, Batch
from hotloop.presets.replay_settings import ReplaySettings
from hotloop.replay.sampler_kernels import draw_prioritized, draw_uniform, fill_range, set_leaves, set_priorities

FAN_OUT = 8
CACHE_LINE = 64  # bytes: eight float64 children


def level_starts(capacity: int) -> tuple[list[int], int]:
    """Where each level starts in the node array, leaves first, root last; and the number of nodes."""
    starts: list[int] = []
    end, width = 0, capacity
    while width > 1 or not starts:
        starts.append(end)
        padded = -(-width // FAN_OUT) * FAN_OUT
        end += padded
        width = padded // FAN_OUT
    return [*starts, end], end + FAN_OUT


def tree_bytes(capacity: int) -> int:
    return level_starts(capacity)[1] * 8


class SumTree:
    """Non-negative float64 values for `capacity` leaves, and their sums; all zero at first."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        starts, num_nodes = level_starts(capacity)
        self.levels = np.array(starts, dtype=np.int64)
        self.nodes = _aligned_zeros(num_nodes)

    @property
    def total(self) -> float:
        return float(self.nodes[self.levels[-1]])

    @property
    def leaves(self) -> Array:
        """A view [capacity]; write through `set` only."""
        return self.nodes[: self.capacity]

    @property
    def num_bytes(self) -> int:
        return self.nodes.nbytes

    def set(self, index: Array, value: Array) -> None:
        """Set leaves `index` [M] to `value` [M]; of equal indices the last wins."""
        set_leaves(self.nodes, self.levels, index, value)

    def fill(self, first: int, count: int, value: float) -> None:
        """Set `count` leaves from `first` on, wrapping at the capacity."""
        fill_range(self.nodes, self.levels, first, count, self.capacity, value)


def _aligned_zeros(count: int) -> Array:
    """Zeros whose first element starts a cache line, so that siblings share one."""
    spare = CACHE_LINE // 8
    array = np.zeros(count + spare, dtype=np.float64)
    skip = (-array.ctypes.data % CACHE_LINE) // 8
    return array[skip : skip + count]


MANY_BATCHES = 1 << 30


class Sampler(Protocol):
    max_batches: int
    """Batches that may be drawn before priorities are due."""

    def added(self, position: int, count: int) -> None:
        """`count` rows were written from `position` on, wrapping."""
        ...

    def draw(self, batch: Batch, repeat: int, size: int, newest: int, beta: float) -> None:
        """Fill `index` and `weight` of `batch` from the `size` rows stored, `newest` being the last written."""
        ...

    def update(self, index: Array, td_error: Array) -> None: ...

    def reseed(self, seed: int) -> None:
        """Draw from another stream from here on."""
        ...

    @property
    def num_bytes(self) -> int: ...

    def state(self) -> dict[str, Any]: ...

    def load_state(self, state: dict[str, Any], size: int) -> None:
        """Of a replay with `size` rows."""
        ...


def make_sampler(settings: ReplaySettings, seed: int) -> Sampler:
    return Prioritized(settings, seed) if settings.prioritized else Uniform(settings, seed)


def _generator(seed: int) -> Array:
    return np.array([seed % 2**64], dtype=np.uint64)


class Uniform:
    """Every stored row alike, with replacement; weights stay one."""

    max_batches = MANY_BATCHES
    num_bytes = 8

    def __init__(self, settings: ReplaySettings, seed: int) -> None:
        self._combined = settings.combined
        self._generator = _generator(seed)

    def added(self, position: int, count: int) -> None:
        """Nothing to keep: every row is drawn with the same probability."""

    def draw(self, batch: Batch, repeat: int, size: int, newest: int, beta: float) -> None:
        draw_uniform(self._generator, batch.index, repeat, size, newest if self._combined else -1)

    def update(self, index: Array, td_error: Array) -> None:
        """Nothing to keep: draws do not depend on TD errors."""

    def reseed(self, seed: int) -> None:
        self._generator[:] = seed

    def state(self) -> dict[str, Any]:
        return {"generator": self._generator.copy()}

    def load_state(self, state: dict[str, Any], size: int) -> None:
        self._generator[:] = state["generator"]


class Prioritized:
    """Stratified proportional draws (Schaul et al. 2015); new rows get the largest priority seen so far."""

    def __init__(self, settings: ReplaySettings, seed: int) -> None:
        self.max_batches = settings.prioritized_batches
        self.tree = SumTree(settings.buffer_size)
        self._settings = settings
        self._generator = _generator(seed)
        self._filled = 0
        self._largest = 1.0

    @property
    def num_bytes(self) -> int:
        return self.tree.num_bytes

    def added(self, position: int, count: int) -> None:
        if count:
            self._filled = min(self.tree.capacity, max(self._filled, position + count))
            self.tree.fill(position, count, self._largest)

    def draw(self, batch: Batch, repeat: int, size: int, newest: int, beta: float) -> None:
        settings, tree = self._settings, self.tree
        last_row = newest if settings.combined else -1
        draw_prioritized(self._generator, tree.nodes, tree.levels, batch.index, batch.weight, repeat, last_row, beta)

    def update(self, index: Array, td_error: Array) -> None:
        settings, tree = self._settings, self.tree
        index = np.ascontiguousarray(index, dtype=np.int64)
        td_error = np.ascontiguousarray(td_error, dtype=np.float32)
        if index.shape != td_error.shape:
            raise ValueError(f"index has shape {index.shape}, td_error {td_error.shape}")
        alpha, epsilon = settings.alpha, settings.priority_epsilon
        largest = set_priorities(tree.nodes, tree.levels, index, td_error, self._filled, alpha, epsilon, self._largest)
        if math.isnan(largest):
            raise _bad_update(td_error)
        self._largest = largest

    def reseed(self, seed: int) -> None:
        self._generator[:] = seed

    def state(self) -> dict[str, Any]:
        """Leaves as a view, not a copy; the sums above them follow from the leaves."""
        leaves = self.tree.leaves[: self._filled]
        return {"generator": self._generator.copy(), "leaves": leaves, "largest": self._largest}

    def load_state(self, state: dict[str, Any], size: int) -> None:
        leaves = np.array(state["leaves"], dtype=np.float64)  # a copy: it may be a view of our own tree
        if leaves.shape != (size,) or size > self.tree.capacity:
            raise CheckpointError(
                f"saved priorities have shape {leaves.shape}, expected {size} of them",
                "resume with the `replay.buffer_size` that the run was started with",
            )
        largest = float(state["largest"])
        if not (np.isfinite(leaves).all() and (leaves > 0).all() and 0 < largest < np.inf):
            raise CheckpointError("a saved priority is no number above 0")
        self._generator[:] = state["generator"]
        self._filled = leaves.size
        self._largest = largest
        self.tree.fill(0, self.tree.capacity, 0.0)
        self.tree.set(np.arange(leaves.size, dtype=np.int64), leaves)


def _bad_update(td_error: Array) -> Exception:
    if np.isfinite(td_error).all():
        return IndexError("update_priorities was given a row that the replay does not hold")
    bad = int(np.count_nonzero(~np.isfinite(td_error)))
    return NonFiniteError(
        f"{bad} of {td_error.size} TD errors are NaN or Inf", "lower the learning rate or clip gradients"
    )
