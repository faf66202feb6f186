"""How far the costs of two recordings can be told apart.

Both are cut to the env steps of the shorter one and these into windows of equally many: a loop that got faster comes
further in the same time, and a warm-up without updates would weigh less in it. Window by window they went through the
same stages, so they are compared in pairs: with o and n seconds in a window, the ratio R = sum n / sum o has the
variance sum (n - R o)^2 / (k (k - 1)) / mean(o)^2 over k windows (the linearised ratio estimator, which a phase that is
busy only now and then, an evaluation say, does not mislead as a median would), and its logarithm gets a t interval.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import stdtrit

from hotloop.core.types import Array

LOOP = ""
_MOST_WINDOWS, _LEAST_WINDOWS = 24, 3
"""Neighbouring slices are alike; joined into windows they are nearly independent."""
_CONFIDENCE = 0.95
_SURE = 0.25
"""Relative variance below which a cost is at least two deviations above zero."""

Costs = dict[str, Array]
"""Microseconds per env step in every window, of every phase and, under LOOP, of all."""


def windowed(old: dict[str, Any], new: dict[str, Any], unit: str) -> tuple[Costs, Costs]:
    """The costs of both reports over the same windows."""
    counts = [np.cumsum(report["timeline"][unit]) for report in (old, new)]
    shorter = min(float(count[-1]) for count in counts)
    slices = min(int(np.searchsorted(count, shorter)) + 1 for count in counts)
    edges = np.linspace(0.0, shorter, min(_MOST_WINDOWS, slices) + 1)
    return _costs(old, unit, edges), _costs(new, unit, edges)


def _costs(report: dict[str, Any], unit: str, edges: Array) -> Costs:
    timeline = report["timeline"]
    counted = np.concatenate([[0.0], np.cumsum(timeline[unit])])

    def cost(seconds: list[float]) -> Array:
        spent = np.concatenate([[0.0], np.cumsum(seconds)])
        return 1e6 * np.diff(np.interp(edges, counted, spent)) / np.diff(edges)

    return {name: cost(seconds) for name, seconds in timeline["phases"].items()} | {LOOP: cost(timeline["seconds"])}


def mean_cost(costs: Costs, name: str) -> float:
    return float(np.mean(costs[name])) if name in costs else 0.0


def paired_variance(old: Array, new: Array) -> float:
    """Relative variance of sum new / sum old; infinite where there is too little to say."""
    windows, ratio = len(old), float(new.sum() / old.sum()) if old.sum() > 0 else 0.0
    if windows < _LEAST_WINDOWS or ratio <= 0:
        return math.inf
    scatter = float(np.sum((new - ratio * old) ** 2)) / (windows * (windows - 1))
    return scatter / (ratio * float(old.mean())) ** 2


def ratio_interval(ratio: float, variance: float, windows: int) -> tuple[float, float] | None:
    """Between which new / old lies with 95 %; None where the recordings are too short to say."""
    if not (math.isfinite(variance) and ratio > 0):
        return None
    reach = math.exp(float(stdtrit(windows - 1, (1 + _CONFIDENCE) / 2)) * math.sqrt(variance))
    return ratio / reach, ratio * reach


def surely_positive(cost: Array) -> bool:
    return paired_variance(np.ones_like(cost), cost) < _SURE
