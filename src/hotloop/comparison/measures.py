"""What a finished run says about itself, from its plain files.

Learning curves over seeds: one mean with its band per arm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hotloop.comparison.statistics import bootstrap_interval, mean_height
from hotloop.core.errors import RunError, SettingsError
from hotloop.core.timer import NOT_TRAINING
from hotloop.core.types import Array
from hotloop.render.chart import Curve
from hotloop.runs.directory import Run
from hotloop.runs.events import read_events


@dataclass(frozen=True)
class RunMeasures:
    """One run in numbers. `curve_*` hold one entry per periodic evaluation."""

    path: Path
    seed: int
    score: float  # best weights, on fresh episodes
    last_score: float  # last weights
    env_steps: int
    updates: int
    seconds: float  # everything
    training_seconds: float
    env_steps_per_second: float  # of training alone
    curve_env_steps: Array
    curve_seconds: Array  # of training alone
    curve_score: Array
    untrained_until: int = 0  # env steps of the last point of the curve before the first update
    untrained_score: float | None = None  # of the episodes before the first update, where those are known

    def reaches(self, threshold: float) -> tuple[int, float] | None:
        """Env steps and training seconds at the first evaluation after an update with at least `threshold`."""
        there = np.flatnonzero((self.curve_score >= threshold) & (self.curve_env_steps > self.untrained_until))
        if len(there) == 0:
            return None
        return int(self.curve_env_steps[there[0]]), float(self.curve_seconds[there[0]])

    def height(self, start: float, end: float) -> float:
        """The mean score of the evaluations between these env steps, joined by straight lines."""
        if len(self.curve_score) == 0:
            return self.last_score
        return mean_height(self.curve_env_steps.astype(np.float64), self.curve_score, start, end)


def read_measures(path: Path, measure: str) -> RunMeasures:
    """`measure` is a field of `evaluation`: mean_return, mean_length, or one of the workload's own."""
    run = Run.open(path)
    result = run.result()
    events = list(read_events(run.events))
    rows = [row for row in events if row.get("event") == "evaluation"]
    try:
        return RunMeasures(
            path=path,
            seed=int(run.settings()["seed"]),
            score=_score(result["evaluation"], measure, path),
            last_score=_score(result["final_evaluation"], measure, path),
            env_steps=int(result["env_steps"]),
            updates=int(result["updates"]),
            seconds=float(result["seconds"]),
            training_seconds=training_seconds(result),
            env_steps_per_second=float(result["env_steps_per_second"]),
            curve_env_steps=np.array([row["env_steps"] for row in rows], dtype=np.int64),
            curve_seconds=np.array([training_seconds(row) for row in rows]),
            curve_score=np.array([_score(row, measure, path) for row in rows]),
            **before_updates(events, measure),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{path} lacks what a finished run has: {error!r}", "train it again") from error


def before_updates(rows: Sequence[Mapping[str, Any]], measure: str) -> dict[str, Any]:
    """How far a run had come before its first update, and what its episodes scored until then: an untrained agent's
    play. Nothing is said of a run in which no update was counted."""
    if not any(row.get("updates") for row in rows):
        return {}
    untrained = [row for row in rows if row.get("updates") == 0]
    scores = [row[measure] for row in untrained if isinstance(row.get(measure), int | float) and _is_training(row)]
    score = float(scores[-1]) if scores else None
    return {
        "untrained_until": max((int(row.get("env_steps", 0)) for row in untrained), default=0),
        "untrained_score": score,
    }


def _is_training(row: Mapping[str, Any]) -> bool:
    return row.get("event") == "progress"


def training_seconds(row: Mapping[str, Any]) -> float:
    """Without start-up, compilation, evaluation and checkpoints. Phases are seconds, or tables that hold them."""
    phases = {name: phase["seconds"] if isinstance(phase, dict) else phase for name, phase in row["phases"].items()}
    return float(row["seconds"] - sum(phases.get(name, 0.0) for name in NOT_TRAINING))


def _score(evaluation: Mapping[str, Any], measure: str, path: Path) -> float:
    value = evaluation.get(measure)
    if isinstance(value, bool) or not isinstance(value, int | float):
        known = [name for name in evaluation if name.startswith(("mean_", "max_", "min_")) or name.endswith("_rate")]
        raise SettingsError(
            f"the evaluations in {path} have no number called `{measure}`",
            f"`--measure` is one of {', '.join(known)}; finished runs are kept, so ask again",
        )
    return float(value)


Against = Literal["env_steps", "seconds"]
MOST_POINTS = 100
_REPEATS = 2_000


def learning_curve(label: str, runs: Sequence[RunMeasures], against: Against) -> Curve | None:
    """Each seed's evaluations joined by straight lines, then averaged; None where nothing was evaluated.

    The curve starts where every seed has been evaluated once. A seed that ended before the others keeps its last
    score: its agent stays what it is.
    """
    known = [run for run in runs if np.isfinite(_x_of(run, against)).all()]  # a file may not tell the time
    return mean_curve(label, [(_x_of(run, against), run.curve_score) for run in known])


def mean_curve(label: str, seeds: Sequence[tuple[Array, Array]]) -> Curve | None:
    """The same of any curves (x, y), x ascending; those without a point are left out."""
    rows = [(xs, ys) for xs, ys in seeds if len(xs) > 0]
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
