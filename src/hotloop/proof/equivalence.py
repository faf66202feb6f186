"""Whether two programs compute the same: values, gradients, and what becomes of the state over a whole sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotloop.core.errors import ArgumentError
from hotloop.proof.scales import are_marks
from hotloop.proof.values import as_array, is_array, is_number, leaves_of

Snapshot = Mapping[str, Any]
"""Named arrays, tensors or numbers."""

EPS = float(np.finfo(np.float32).eps)
"""Networks compute with 32 bits."""
SEQUENCE = 50
"""Steps made from the same start."""


Step = Callable[[int], Snapshot]
"""One of two programs: makes its j-th step, from 1, and hands out what it computed and what has become."""


@dataclass(frozen=True)
class Equality:
    """The largest difference found, and where."""

    max_error: float
    where: str

    def within(self, tolerance: float) -> bool:
        return self.max_error <= tolerance


def relative_error(fast: Any, reference: Any) -> float:
    """|fast - reference| / |reference| in Euclidean length; different shapes and anything not finite count as infinite.

    Marks (-1e9 in the place of what is not allowed) have a length of their own, that the others are not measured by.

    Length rather than the worst entry: Adam divides a gradient by its own size, so that the rounding of an all but
    vanishing one can move its parameter as far as a true difference would. One wrong entry among n of equal size still
    counts 1 / sqrt(n).
    """
    mine, theirs = np.asarray(fast, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    if mine.shape != theirs.shape or not (np.isfinite(mine).all() and np.isfinite(theirs).all()):
        return float("inf")
    marks = are_marks(theirs, EPS)
    return max(_error(mine[part], theirs[part]) for part in (marks, ~marks))


def _error(mine: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.linalg.norm(mine - theirs)) / (float(np.linalg.norm(theirs)) or 1.0)


def compare(found: Iterable[tuple[str, Any, Any]]) -> Equality:
    """The worst of (what, fast, reference)."""
    errors = [(relative_error(fast, reference), what) for what, fast, reference in found]
    return Equality(*max(errors, key=lambda error: error[0], default=(0.0, "")))


def compare_snapshots(fast: Snapshot, reference: Snapshot, when: str) -> Equality:
    if fast.keys() != reference.keys():
        return Equality(float("inf"), f"{sorted(fast)} against {sorted(reference)} {when}")
    return compare((f"{name} {when}", fast[name], reference[name]) for name in fast)


def compare_answers(fast: Any, reference: Any) -> Equality:
    """Of two calls: numbers, arrays and tensors by their place in dicts, lists and tuples; all else must be equal."""
    mine, theirs = dict(leaves_of(fast)), dict(leaves_of(reference))
    if not any(map(_is_numeric, theirs.values())):
        hint = "let both answer what has become of them (the loss, the parameters), or give `compare`"
        raise ArgumentError("the plain program answered no number, so that nothing was compared", hint)
    if mine.keys() != theirs.keys():
        return Equality(float("inf"), f"the answer has {sorted(mine)} against {sorted(theirs)}")
    return worst(_leaf_equality(path or "the answer", mine[path], theirs[path]) for path in theirs)


def _is_numeric(leaf: Any) -> bool:
    return is_array(leaf) or is_number(leaf)


def _leaf_equality(path: str, mine: Any, theirs: Any) -> Equality:
    if _is_numeric(mine) and _is_numeric(theirs):
        return Equality(relative_error(as_array(mine), as_array(theirs)), path)
    return Equality(0.0 if mine == theirs else float("inf"), path)


def worst(equalities: Iterable[Equality]) -> Equality:
    return max(equalities, key=lambda equality: equality.max_error)


def compare_sequences(fast: Step, reference: Step, length: int = SEQUENCE) -> Equality:
    """Step both side by side from the same start and compare after every step, nothing brought together again.

    Each error is divided by the steps made so far: rounding adds up, and now and then it carries a ReLU over its kink.
    """
    found = []
    for j in range(1, length + 1):
        now = compare_snapshots(fast(j), reference(j), f"at step {j}")
        found.append(Equality(now.max_error / j, now.where))
    return worst(found)
