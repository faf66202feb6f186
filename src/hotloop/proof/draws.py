"""Whether two envs part because they draw their random numbers in another order, or because one of them is wrong.

Both are brought to the place where they part, and go on from there many times, each time with the same other random
numbers in both. A number that never changes is not drawn: where such a one differs, an env is wrong. A number that
changes, and comes out the same in both every time, is drawn alike: then whatever else differs is wrong too. Only where
all that differs is drawn, and nothing is drawn alike, do they draw in another order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

CHANCE = 1e-3
"""Below which agreement every time is no accident."""


def draw_differently(plain: Sequence[np.ndarray], fast: Sequence[np.ndarray]) -> bool:
    """Of one array as both gave it each time; the first time is the one at which they parted."""
    if len({one.shape for one in (*plain, *fast)}) > 1:  # as many numbers as were drawn, say
        return any(one.shape != plain[0].shape or not _same(one, plain[0]).all() for one in plain[1:])
    mine, theirs = np.stack(plain).reshape(len(plain), -1), np.stack(fast).reshape(len(fast), -1)
    changes_in_plain = ~_same(mine, mine[:1]).all(axis=0)
    is_drawn = changes_in_plain | ~_same(theirs, theirs[:1]).all(axis=0)
    agree = _same(mine, theirs)
    if not changes_in_plain.any() or (~agree.all(axis=0) & ~is_drawn).any():
        return False
    alike = np.flatnonzero(agree.all(axis=0) & is_drawn)
    return not any(_accident(mine[:, place], theirs[:, place]) < CHANCE for place in alike)


def _same(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    if one.dtype.kind != "f" and other.dtype.kind != "f":
        return np.asarray(one == other)
    return np.isclose(one, other, rtol=1e-6, atol=1e-9, equal_nan=True)


def _accident(mine: np.ndarray, theirs: np.ndarray) -> float:
    """The chance that two columns agree in all rows although they were drawn apart: from how often each value came."""
    values, place = np.unique(np.concatenate([mine, theirs]).astype(np.float64), return_inverse=True)
    shares = [np.bincount(half, minlength=len(values)) / len(mine) for half in (place[: len(mine)], place[len(mine) :])]
    return float(np.dot(*shares)) ** len(mine)
