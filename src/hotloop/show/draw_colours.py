"""Signed numbers as colours: blue below zero, red above, pale near it; readable by colour-blind eyes."""

from __future__ import annotations

import numpy as np

from hotloop.core.types import Array

NEGATIVE, ZERO, POSITIVE = (33, 102, 172), (214, 214, 214), (178, 24, 43)


def limit_of(values: Array) -> float:
    """What gets the full colour: the 98th percentile of the sizes, so that one outlier does not pale the rest."""
    return float(np.quantile(np.abs(values), 0.98)) if len(values) and np.any(values) else 1.0


def strength(value: float, limit: float) -> float:
    """-1 to 1."""
    return max(-1.0, min(1.0, value / limit))


def shade(value: float, limit: float) -> tuple[int, int, int]:
    """Red, green and blue, 0 to 255."""
    share = strength(value, limit)
    end = POSITIVE if share > 0 else NEGATIVE
    red, green, blue = (round(zero + abs(share) * (full - zero)) for zero, full in zip(ZERO, end, strict=True))
    return red, green, blue


def colour(value: float, limit: float) -> str:
    return "#{:02x}{:02x}{:02x}".format(*shade(value, limit))
