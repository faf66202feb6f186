"""A sum tree over the rows of the replay: proportional draws and priority changes in logarithmic time, in batches."""

from __future__ import annotations

import numpy as np

from hotloop.core.types import Array
from hotloop.replay.sum_tree_kernels import fill_range, set_leaves

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
