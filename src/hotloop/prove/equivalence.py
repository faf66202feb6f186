"""Whether two programs compute the same: values, gradients, and what becomes of the state over a whole sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Snapshot = Mapping[str, Any]
"""Named arrays, tensors or numbers."""

SEQUENCE = 50
"""Updates made from the same start; rounding grows with each, so the tolerance belongs to this number."""


class Side(NamedTuple):
    """One of two programs: `step(j)` makes its j-th step and hands out what it computed, `state` what has become."""

    step: Callable[[int], Snapshot]
    state: Callable[[], Snapshot]


@dataclass(frozen=True)
class Equality:
    """The largest difference found, and where."""

    max_error: float
    where: str

    def within(self, tolerance: float) -> bool:
        return self.max_error <= tolerance


def relative_error(fast: Any, reference: Any) -> float:
    """max |fast - reference| over max |reference|: an array's small entries are judged by the scale of its large ones.

    Different shapes and anything not finite count as infinitely wrong.
    """
    mine, theirs = np.asarray(fast, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    if mine.shape != theirs.shape or not (np.isfinite(mine).all() and np.isfinite(theirs).all()):
        return float("inf")
    if mine.size == 0:
        return 0.0
    difference = float(np.abs(mine - theirs).max())
    return difference / (float(np.abs(theirs).max()) or 1.0)


def compare(found: Iterable[tuple[str, Any, Any]]) -> Equality:
    """The worst of (what, fast, reference)."""
    errors = [(relative_error(fast, reference), what) for what, fast, reference in found]
    return Equality(*max(errors, key=lambda error: error[0], default=(0.0, "")))


def compare_snapshots(fast: Snapshot, reference: Snapshot, when: str) -> Equality:
    if fast.keys() != reference.keys():
        return Equality(float("inf"), f"{sorted(fast)} against {sorted(reference)} {when}")
    return compare((f"{name} {when}", fast[name], reference[name]) for name in fast)


def worst(equalities: Iterable[Equality]) -> Equality:
    return max(equalities, key=lambda equality: equality.max_error)


def compare_sequences(fast: Side, reference: Side, length: int = SEQUENCE) -> Equality:
    """Step both side by side: every step's values are compared, and the state after the first and the last."""
    found = []
    for j in range(length):
        when = f"at step {j + 1}"
        found.append(compare_snapshots(fast.step(j), reference.step(j), when))
        if j in (0, length - 1):
            found.append(compare_snapshots(fast.state(), reference.state(), when.replace("at", "after")))
    return worst(found)
