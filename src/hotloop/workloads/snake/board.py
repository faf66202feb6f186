"""Boards between arrays and bits, and flood fill for whoever has many boards."""

from __future__ import annotations

import numpy as np

from hotloop.core.errors import EnvError
from hotloop.core.types import Array
from hotloop.workloads.snake.fill_kernels import LARGEST_PACKED, fill_many


def stride_of(size: int) -> int:
    return size + 1 if size <= LARGEST_PACKED else 64


def num_words(size: int) -> int:
    return 2 if size <= LARGEST_PACKED else size


def pack(cells: Array) -> Array:
    """Boards [M, size, size] of true and false (rows are y) as bits [M, words] uint64."""
    count, size, _ = cells.shape
    bits = np.zeros((count, num_words(size) * 64), np.bool_)
    for y in range(size):
        first = y * stride_of(size)
        bits[:, first : first + size] = cells[:, y]
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint64)


def unpack(words: Array, size: int) -> Array:
    """The boards [M, size, size] of `pack`."""
    bits = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1, bitorder="little").astype(np.bool_)
    rows = [bits[:, y * stride_of(size) : y * stride_of(size) + size] for y in range(size)]
    return np.stack(rows, axis=1)


def board_of(size: int) -> Array:
    """Every cell of an empty board set [words]."""
    return pack(np.ones((1, size, size), np.bool_))[0]


def reachable(blocked: Array, start: Array) -> tuple[Array, Array]:
    """Flood fill on M boards `blocked` [M, size, size], from cell `start` [M, 2] (x, y), which counts in any case.

    The number of cells [M], and which [M, size, size].
    """
    count, size, width = blocked.shape
    if size != width or start.shape != (count, 2) or np.any((start < 0) | (start >= size)):
        raise EnvError(
            f"cannot fill boards of shape {blocked.shape} from cells of shape {start.shape}",
            "expected square boards [M, size, size] and one (x, y) on the board for each, [M, 2]",
        )
    if size > 64:
        raise EnvError(f"a board is {size} cells wide", "64 is the largest")
    occupied = pack(blocked.astype(np.bool_))
    reached, counts = np.empty_like(occupied), np.empty(count, np.int64)
    bits = (start[:, 1] * stride_of(size) + start[:, 0]).astype(np.int64)
    fill_many(board_of(size), occupied, stride_of(size), bits, reached, counts)
    return counts, unpack(reached, size)
