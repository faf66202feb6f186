"""What an entry's errors are measured by: the size of the numbers that it stands with, without marks among them.

A mark is a number that somebody put there to be seen or to win every comparison: the -1e9 of an illegal action, the
smallest number of a dtype, an infinity. It says nothing of how exact the others are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

MARKS_FROM = 1e4
"""No smaller number is taken for a mark: beside it, others are still told apart."""
FAR = 1e3
"""How many times larger than the others a mark is at least."""
LIMITS = np.array([65504.0, 3.3895313892515355e38, 3.4028234663852886e38, 1.7976931348623157e308])
"""Largest numbers of 16, brain 16, 32 and 64 bits; their halves are marks too."""
NOISE = 1e-9
"""Share of the others, or so many roundings of them, that a row or column may have left where it cancels to zero."""
NOISE_ROUNDINGS = 64
SMALL = 1e-2
"""What cancels is no larger, or a multiple of the last digit of the numbers that cancelled."""
REACH = 1e3
"""Rounding of larger numbers reaches those up to so many times smaller; what is smaller still has nothing of them."""
FEW = 4
"""Fewer numbers do not tell how large those of a row are."""
OUTLIER = 1e4
"""Times the median: further off, a number does not count for the size of its list."""


class Scales(NamedTuple):
    """Of each entry: what a tolerance is a share of, and what is rounded."""

    local: np.ndarray
    rounded: np.ndarray


def root_mean_square(values: np.ndarray) -> float:
    """Of those that are finite; measured by the largest, whose square may be too large for a number."""
    sizes = np.abs(values[np.isfinite(values)]).astype(np.float64)
    largest = sizes.max(initial=0.0)
    return float(largest * np.sqrt(np.mean((sizes / largest) ** 2))) if largest > 0 else 0.0


def are_marks(values: np.ndarray, eps: float) -> np.ndarray:
    """Which entries are set apart: infinite ones and NaN; numbers of a form that people choose, or that come again and
    again, and that are far larger than all the others."""
    sizes = np.abs(values).astype(np.float64)
    marks = np.asarray(~np.isfinite(sizes))
    may_be = np.asarray((sizes >= MARKS_FROM) & ~marks)
    if not may_be.any():
        return marks
    chosen = may_be.copy()
    chosen[may_be] = look_chosen(sizes[may_be])
    found = _far_ones(sizes, chosen, ~marks)
    if not found.any():
        repeated = may_be.copy()
        repeated[may_be] = _come_again(values[may_be])
        found = _far_ones(sizes, repeated, ~marks)
        if _is_noise(sizes[~(found | marks)], root_mean_square(sizes[found]), eps):
            found &= False
    return marks | found


def _far_ones(sizes: np.ndarray, candidates: np.ndarray, finite: np.ndarray) -> np.ndarray:
    others = sizes[finite & ~candidates]
    return np.asarray(candidates & (sizes >= FAR * root_mean_square(others)) & (others.size > 0))


def look_chosen(sizes: np.ndarray) -> np.ndarray:
    """One digit and zeros, next to a power of ten (9999), a power of two, or the limit of a dtype."""
    digits = 10.0 ** (np.log10(sizes) % 1.0)
    twos = np.log2(sizes)
    limits = np.concatenate([LIMITS, LIMITS / 2])
    found = np.abs(digits - np.round(digits)) <= 1e-6 * digits
    found |= (digits >= 10.0 * (1 - 2e-4)) | (digits <= 1 + 2e-4)
    found |= np.abs(twos - np.round(twos)) <= 1e-7
    return np.asarray(found | (np.abs(sizes[:, None] / limits - 1.0) <= 1e-6).any(axis=1))


def _come_again(values: np.ndarray) -> np.ndarray:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray(counts[place.reshape(-1)] > 1)


def scales_in(values: np.ndarray, eps: float, floor: float = 0.0) -> Scales:
    """Of an array of floats, whose numbers are rounded by `eps`. An entry is measured by its row and its column,
    whichever is smaller; one whose row or column cancels to zero, by the whole array and by `floor`, the size of what
    else was computed with it."""
    sizes = np.abs(values).astype(np.float64)
    counted = ~are_marks(values, eps)
    wide = max(root_mean_square(sizes[counted]), floor)
    local, around = _around(sizes, counted)
    is_small = counted & (local <= max(NOISE, NOISE_ROUNDINGS * eps) * wide)
    cancels = is_small & (local < SMALL)
    if _is_noise(sizes[is_small & ~cancels], wide, eps):
        cancels = is_small
    shared = np.where(cancels, wide, local)
    rounded = np.where(cancels, wide, np.minimum(np.maximum(wide, around), REACH * local))
    own = np.where(np.isfinite(sizes), sizes, 0.0)
    return Scales(np.where(counted, np.maximum(shared, own), own), np.where(counted, rounded, own))


def _around(sizes: np.ndarray, counted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each entry: the size of its row or its column, whichever is smaller, and whichever is larger."""
    if sum(size > 1 for size in sizes.shape) < 2:
        found = np.full(sizes.shape, typical_size(sizes[counted]))
        return found, found
    rest, first = tuple(range(1, sizes.ndim)), tuple(range(sizes.ndim - 1))
    both = np.stack(np.broadcast_arrays(_mean_size(sizes, counted, rest), _mean_size(sizes, counted, first)))
    both = np.where(np.isnan(both).all(axis=0), typical_size(sizes[counted]), both)
    shape = sizes.shape
    return np.broadcast_to(np.nanmin(both, axis=0), shape), np.broadcast_to(np.nanmax(both, axis=0), shape)


def _mean_size(sizes: np.ndarray, counted: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Root mean square of what counts along some axes; NaN where that is too little to tell."""
    kept = np.where(counted, sizes, 0.0)
    largest = kept.max(axis=axes, keepdims=True, initial=0.0)
    squares = ((kept / np.where(largest > 0, largest, 1.0)) ** 2).sum(axis=axes, keepdims=True)
    counts = counted.sum(axis=axes, keepdims=True)
    return np.where(counts >= FEW, largest * np.sqrt(squares / np.maximum(counts, 1)), np.nan)


def typical_size(values: np.ndarray) -> float:
    """Root mean square of a list, without what is far larger than most of it."""
    sizes = np.abs(values[np.isfinite(values)])
    median = float(np.median(sizes[sizes > 0])) if (sizes > 0).any() else 0.0
    return root_mean_square(sizes[sizes <= OUTLIER * median])


def _is_noise(sizes: np.ndarray, wide: float, eps: float) -> bool:
    """Whether they may be all that is left where numbers as large as `wide` cancel: multiples of a thousandth of their
    last digit, and not the same few again and again, as flags are."""
    found = sizes[sizes > 0]
    if not found.size or not eps * wide > 0 or found.max() > max(NOISE, NOISE_ROUNDINGS * eps) * wide:
        return False
    parts = found / 2.0 ** (np.floor(np.log2(eps * wide)) - 10)
    are_multiples = np.abs(parts - np.round(parts)) < 1e-6
    return bool(are_multiples.all() and 2 * np.unique(found).size > found.size)
