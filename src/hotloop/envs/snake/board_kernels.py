"""A board as bits of machine words.

Cell (x, y) is bit `y * stride + x`. Boards of up to 10 x 10 lie packed in two words with one empty column between
rows (stride size + 1), so that a shift by one never carries a cell into the next row; larger ones take a word per
row (stride 64). Reading order is bit order in both.
"""

from __future__ import annotations

import numpy as np

from hotloop.core.types import Array
from hotloop.envs.lean_kernels import lean_kernel

LARGEST_PACKED = 10  # 10 rows of 11 bits fit into 128; 11 rows of 12 do not


@lean_kernel
def count_bits(word: np.uint64) -> np.int64:
    """How many bits are set (LLVM makes one instruction of this)."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@lean_kernel
def has_bit(words: Array, row: int, bit: int) -> bool:
    """Whether `bit` of words[row] is set."""
    return (words[row, bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1) != np.uint64(0)


@lean_kernel
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
