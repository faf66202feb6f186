"""Where an axis is marked and what stands there."""

from __future__ import annotations

import math


def axis_range(low: float, high: float) -> tuple[float, float]:
    """A little more than [low, high], never empty; from zero where the data come near it from above."""
    room = (high - low) * 0.04 or abs(low) * 0.1 or 1.0
    start = 0.0 if 0 <= low <= high / 4 and high > 0 else low - room
    return start, high + room


def nice_ticks(low: float, high: float, at_most: int = 7) -> list[float]:
    """The multiples of 1, 2 or 5 times a power of ten within [low, high], as many as `at_most` allows."""
    exponent = math.floor(math.log10((high - low) / at_most))
    for factor in (1, 2, 5, 10, 20):
        size = factor * 10.0**exponent
        first, last = math.ceil(low / size - 1e-9), math.floor(high / size + 1e-9)
        if last - first + 1 <= at_most:
            break
    return [round(place * size, 12) for place in range(first, last + 1)]


def short_number(value: float) -> str:
    """1500000 -> 1.5M, 20000 -> 20k, 0.25 -> 0.25."""
    for scale, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= scale:
            return f"{value / scale:.4g}{letter}"
    return f"{value:.4g}"


def time_unit(seconds: float) -> tuple[str, float]:
    """A unit in which `seconds` reads well, and how many seconds it has."""
    if seconds < 180:
        return "seconds", 1.0
    return ("minutes", 60.0) if seconds < 3 * 3600 else ("hours", 3600.0)
