"""Two samples and one question: do they come from one distribution? By dealing their members anew, at random.

No assumption about the distribution is made; members may hold several values each (the rewards of an episode), which
depend on each other and are dealt together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

GRID = 200
"""Places at which distribution functions are compared: quantiles of all values."""
DEALS = 4_999


def holm(chances: list[float]) -> list[float]:
    """Adjusted so that each may be held against the level itself, and all false alarms together keep to it."""
    order = np.argsort(chances, kind="stable")
    adjusted, largest = [0.0] * len(chances), 0.0
    for place, number in enumerate(order.tolist()):
        largest = max(largest, min(1.0, (len(chances) - place) * chances[number]))
        adjusted[number] = largest
    return adjusted


def distribution_distance(
    first: Sequence[np.ndarray], second: Sequence[np.ndarray], deals: int = DEALS, seed: int = 0
) -> tuple[float, float]:
    """Kolmogorov and Smirnov's distance of all values of the one from all of the other, and its chance.

    A member [k] holds k >= 1 values. The chance is the share of random deals of all members to two samples of these
    sizes, the real one counted among them, in which the distance is at least as large.
    """
    members = [np.asarray(member, np.float64).reshape(-1) for member in (*first, *second)]
    values = np.sort(np.concatenate(members))
    places = np.unique(values[np.linspace(0, len(values) - 1, min(GRID, len(values))).astype(int)])
    below = np.array([np.searchsorted(np.sort(member), places, side="right") for member in members], np.float64)
    sizes = np.array([len(member) for member in members], np.float64)
    generator = np.random.default_rng(seed)
    dealt = np.zeros((deals + 1, len(members)))
    dealt[0, : len(first)] = 1.0
    dealt[1:] = generator.permuted(np.repeat(dealt[:1], deals, axis=0), axis=1)
    distances = np.abs(
        dealt @ below / (dealt @ sizes)[:, None] - (1 - dealt) @ below / ((1 - dealt) @ sizes)[:, None]
    ).max(axis=1)
    return float(distances[0]), float(np.mean(distances >= distances[0] - 1e-12))
