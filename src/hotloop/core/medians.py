"""How far a median can be trusted, with no assumption about the noise."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

CONFIDENCE = 0.95


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """The two sorted values between which the true median lies with 95 %: each falls below it with even odds."""
    ordered, count = sorted(values), len(values)
    outside = 0.0
    for skipped in range(count // 2):
        outside += 2.0 * comb(count, skipped) / 2.0**count
        if outside > 1.0 - CONFIDENCE:
            return ordered[max(0, skipped - 1)], ordered[min(count - 1, count - skipped)]
    return ordered[0], ordered[-1]
