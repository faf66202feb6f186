"""Flood fill, bit-parallel and exact: which cells can be reached from one, and how many.

A packed board grows by a column and a row to each side at once until it stops: about ten rounds of some twenty
instructions on an open 10 x 10 board. Larger boards are swept row by row, down and up; a row that gains a cell gains
the whole run of free cells around it at once, so that even a maze needs as many sweeps as a path turns back.

A board as bits of machine words.

Cell (x, y) is bit `y * stride + x`. Boards of up to 10 x 10 lie packed in two words with one empty column between
rows (stride size + 1), so that a shift by one never carries a cell into the next row; larger ones take a word per
row (stride 64). Reading order is bit order in both.
"""

from __future__ import annotations

import numpy as np

from hotloop.core.kernels import lean_inline_kernel, lean_kernel
from hotloop.core.types import Array

LARGEST_PACKED = 10  # 10 rows of 11 bits fit into 128; 11 rows of 12 do not


@lean_inline_kernel
def count_bits(word: np.uint64) -> np.int64:
    """How many bits are set (LLVM makes one instruction of this)."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@lean_inline_kernel
def has_bit(words: Array, row: int, bit: int) -> bool:
    """Whether `bit` of words[row] is set."""
    return (words[row, bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1) != np.uint64(0)


@lean_inline_kernel
def flip_bit(words: Array, row: int, bit: int) -> None:
    words[row, bit >> 6] ^= np.uint64(1) << np.uint64(bit & 63)


@lean_kernel
def nth_free_bit(board: Array, occupied: Array, row: int, nth: int) -> int:
    """The bit of the nth free cell in reading order, from 0; there must be one."""
    at = 0
    word = board[0] & ~occupied[row, 0]
    count = count_bits(word)
    while nth >= count:
        nth -= count
        at += 1
        word = board[at] & ~occupied[row, at]
        count = count_bits(word)
    for _ in range(nth):
        word &= word - np.uint64(1)  # clears the lowest bit
    lowest = word & (~word + np.uint64(1))
    return at * 64 + count_bits(lowest - np.uint64(1))


@lean_kernel
def fill(board: Array, occupied: Array, row: int, stride: int, start: int, reached: Array, into: int) -> int:
    """Mark in reached[into] what can be reached from bit `start` through cells of `board` free in occupied[row].

    `start` itself counts, even where it is occupied. Returns the number of cells.
    """
    if stride < 64:
        return fill_packed(board, occupied, row, stride, start, reached, into)
    return fill_rows(board, occupied, row, start, reached, into)


@lean_inline_kernel
def fill_packed(board: Array, occupied: Array, row: int, stride: int, start: int, reached: Array, into: int) -> int:
    one, down, rest, top = np.uint64(1), np.uint64(stride), np.uint64(64 - stride), np.uint64(63)
    at = one << np.uint64(start & 63)
    low = at if start < 64 else np.uint64(0)
    high = np.uint64(0) if start < 64 else at
    free_low, free_high = board[0] & ~occupied[row, 0] | low, board[1] & ~occupied[row, 1] | high
    while True:
        wide_low = (low | (low << one) | (low >> one) | (high << top)) & free_low
        wide_high = (high | (high << one) | (high >> one) | (low >> top)) & free_high
        tall_low = (wide_low | (wide_low << down) | (wide_low >> down) | (wide_high << rest)) & free_low
        tall_high = (wide_high | (wide_high << down) | (wide_high >> down) | (wide_low >> rest)) & free_high
        if tall_low == low and tall_high == high:
            break
        low, high = tall_low, tall_high
    reached[into, 0], reached[into, 1] = low, high
    return count_bits(low) + count_bits(high)


@lean_inline_kernel
def fill_rows(board: Array, occupied: Array, row: int, start: int, reached: Array, into: int) -> int:
    size, first = board.shape[0], start >> 6
    for y in range(size):
        reached[into, y] = np.uint64(0)
    seed = np.uint64(1) << np.uint64(start & 63)
    reached[into, first] = whole_runs(seed, board[first] & ~occupied[row, first] | seed)
    growing = True
    while growing:
        growing = False
        for y in range(1, size):
            gained = gain(board[y] & ~occupied[row, y], reached[into, y], reached[into, y - 1])
            growing |= gained != reached[into, y]
            reached[into, y] = gained
        for y in range(size - 2, -1, -1):
            gained = gain(board[y] & ~occupied[row, y], reached[into, y], reached[into, y + 1])
            growing |= gained != reached[into, y]
            reached[into, y] = gained
    count = 0
    for y in range(size):
        count += count_bits(reached[into, y])
    return count


@lean_inline_kernel
def gain(free: np.uint64, reached: np.uint64, beside: np.uint64) -> np.uint64:
    """What of a row is reached, given the row beside it."""
    gained = beside & free & ~reached
    return reached if gained == np.uint64(0) else reached | whole_runs(gained, free)


@lean_inline_kernel
def whole_runs(seed: np.uint64, free: np.uint64) -> np.uint64:
    """The runs of `free` bits that hold a bit of `seed` (which must be free).

    Upwards by the carry of an addition, which ripples from a seed to the end of its run; carries do not go down, so
    downwards by doubling (Kogge-Stone).
    """
    run = (((free + seed) ^ free) | seed) & free
    way = free
    run |= way & (run >> np.uint64(1))
    way &= way >> np.uint64(1)
    run |= way & (run >> np.uint64(2))
    way &= way >> np.uint64(2)
    run |= way & (run >> np.uint64(4))
    way &= way >> np.uint64(4)
    run |= way & (run >> np.uint64(8))
    way &= way >> np.uint64(8)
    run |= way & (run >> np.uint64(16))
    way &= way >> np.uint64(16)
    return run | (way & (run >> np.uint64(32)))


@lean_inline_kernel
def widen(board: Array, occupied: Array, row: int, stride: int, reached: Array, into: int) -> bool:
    """Grow what is marked in reached[into] by one cell to each of four sides; False where nothing was gained."""
    one, down, top = np.uint64(1), np.uint64(stride & 63), np.uint64(63)
    rest, packed = np.uint64((64 - stride) & 63), stride < 64
    before, growing = np.uint64(0), False
    for word in range(board.shape[0]):
        here = reached[into, word]
        after = reached[into, word + 1] if word + 1 < board.shape[0] else np.uint64(0)
        beside = (here << one) | (here >> one)
        if packed:
            beside |= (here << down) | (after << top) | (after << rest)
            beside |= (here >> down) | (before >> top) | (before >> rest)
        else:
            beside |= before | after
        grown = here | (beside & board[word] & ~occupied[row, word])
        growing |= grown != here
        reached[into, word] = grown
        before = here
    return growing


@lean_kernel
def fill_many(board: Array, occupied: Array, stride: int, start: Array, reached: Array, count: Array) -> None:
    """`fill` for M boards: `occupied` and `reached` [M, words], `start` (a bit) and `count` [M]."""
    for index in range(start.shape[0]):
        count[index] = fill(board, occupied, index, stride, start[index], reached, index)
