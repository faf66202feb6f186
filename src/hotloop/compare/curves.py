"""Learning curves over seeds: one mean with its band per arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hotloop.compare.measures import RunMeasures
from hotloop.compare.statistics import bootstrap_interval
from hotloop.core.types import Array

Against = Literal["env_steps", "seconds"]
MOST_POINTS = 100
_REPEATS = 2_000


@dataclass(frozen=True)
class Curve:
    """All arrays have one entry per point; `low` and `high` are None where there is a single seed."""

    label: str
    x: Array
    mean: Array
    low: Array | None
    high: Array | None


def learning_curve(label: str, runs: Sequence[RunMeasures], against: Against) -> Curve | None:
    """Each seed's evaluations joined by straight lines, then averaged; None where nothing was evaluated.

    The curve starts where every seed has been evaluated once. A seed that ended before the others keeps its last
    score: its agent stays what it is.
    """
    rows = [(_x_of(run, against), run.curve_score) for run in runs if len(run.curve_score) > 0]
    if not rows:
        return None
    x = _grid([xs for xs, _ in rows])
    scores = np.array([np.interp(x, xs, ys) for xs, ys in rows])  # [seeds, points]
    band = bootstrap_interval([scores], np.mean, repeats=_REPEATS)
    low, high = band if band is not None else (None, None)
    return Curve(label, x, scores.mean(axis=0), low, high)


def _x_of(run: RunMeasures, against: Against) -> Array:
    return run.curve_env_steps.astype(np.float64) if against == "env_steps" else run.curve_seconds


def _grid(rows: Sequence[Array]) -> Array:
    """The evaluations' own places where all seeds share them, if not too many; evenly spaced ones elsewhere."""
    shared = all(len(row) == len(rows[0]) and (row == rows[0]).all() for row in rows)
    if shared and len(rows[0]) <= MOST_POINTS:
        return rows[0]
    start, end = max(row[0] for row in rows), max(row[-1] for row in rows)
    return np.linspace(min(start, end), end, MOST_POINTS)
