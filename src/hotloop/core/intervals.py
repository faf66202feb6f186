"""How far a number can be trusted: a median's interval, with no assumption about the noise, and Student's quantile."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from statistics import NormalDist

CONFIDENCE = 0.95
MANY = 1_000


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """The two sorted values between which the true median lies with 95 %: each falls below it with even odds."""
    ordered, count = sorted(values), len(values)
    outside = 0.0
    for skipped in range(count // 2):
        outside += 2.0 * math.comb(count, skipped) / 2.0**count
        if outside > 1.0 - CONFIDENCE:
            return ordered[max(0, skipped - 1)], ordered[min(count - 1, count - skipped)]
    return ordered[0], ordered[-1]


def normal_below(z: float) -> float:
    """P(Z <= z) of a standard normal, exact in its lower tail."""
    return math.erfc(-z / math.sqrt(2)) / 2


@functools.lru_cache
def student_quantile(freedom: int, p: float) -> float:
    """The t with P(T <= t) = p >= 1/2, for whole degrees of freedom.

    P(|T| <= sqrt(freedom) tan a) is a finite sum of cosines (Abramowitz and Stegun 26.7.3 and 26.7.4), here inverted by
    bisection: SciPy would be 143 MB for this one number. The sum has half as many terms as there are degrees of
    freedom; many of them take the expansion about the normal quantile (26.7.5), whose next term is freedom^-4.
    """
    if freedom > MANY:
        z = NormalDist().inv_cdf(p)
        terms = (
            z,
            (z**3 + z) / 4,
            (5 * z**5 + 16 * z**3 + 3 * z) / 96,
            (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        )
        return float(sum(term / freedom**power for power, term in enumerate(terms)))
    low, high = 0.0, math.pi / 2
    for _ in range(64):
        angle = (low + high) / 2
        odd = freedom % 2
        term, total = math.cos(angle) ** odd, 0.0
        for k in range(odd, freedom - 1, 2):  # the power of the cosine
            total += term
            term *= math.cos(angle) ** 2 * (k + 1) / (k + 2)
        inside = math.sin(angle) * total
        if odd:
            inside = 2 / math.pi * (angle + inside)
        low, high = (angle, high) if inside < 2 * p - 1 else (low, angle)
    return math.sqrt(freedom) * math.tan(low)
