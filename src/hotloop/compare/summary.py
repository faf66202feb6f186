"""An arm over its seeds: plain data from here on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotloop.compare.arms import Arm
from hotloop.compare.measures import RunMeasures
from hotloop.compare.statistics import Interval, bootstrap_interval, interquartile_mean, median_time, t_interval


@dataclass(frozen=True)
class ArmSummary:
    """`runs` are the finished ones, by seed; everything else follows from them."""

    arm: Arm
    runs: Sequence[RunMeasures]
    threshold: float | None

    @property
    def label(self) -> str:
        return self.arm.label

    def mean(self, field: str) -> float | None:
        return float(np.mean([getattr(run, field) for run in self.runs])) if self.runs else None

    @property
    def mean_interval(self) -> Interval | None:
        return t_interval(self._scores)

    @property
    def iqm(self) -> float | None:
        return float(interquartile_mean(self._scores)) if self.runs else None

    @property
    def iqm_interval(self) -> Interval | None:
        return bootstrap_interval([self._scores], interquartile_mean) if len(self.runs) > 1 else None

    @property
    def _scores(self) -> Any:
        return np.array([run.score for run in self.runs])

    def reached(self) -> list[tuple[int, float] | None]:
        """For each seed: env steps and training seconds to the threshold."""
        return [None if self.threshold is None else run.reaches(self.threshold) for run in self.runs]

    def to_threshold(self, which: int) -> float | None:
        """The median over seeds of env steps (0) or training seconds (1); None where half of them never got there."""
        return median_time([there and there[which] for there in self.reached()])

    def as_data(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "label": self.label,
            "source": self.arm.source,
            "overrides": list(self.arm.words),
            "seeds": len(self.runs),
            "mean": self.mean("score"),
            "mean_interval": _pair(self.mean_interval),
            "iqm": self.iqm,
            "iqm_interval": _pair(self.iqm_interval),
            "last_mean": self.mean("last_score"),
        }
        for field in ("env_steps", "updates", "seconds", "training_seconds", "env_steps_per_second"):
            data[field] = self.mean(field)
        if self.threshold is not None:
            reached = self.reached()
            data["reached"] = sum(there is not None for there in reached)
            data["final_reached"] = sum(run.score >= self.threshold for run in self.runs)
            data["env_steps_to_threshold"] = self.to_threshold(0)
            data["seconds_to_threshold"] = self.to_threshold(1)
        data["runs"] = [self._run_as_data(run) for run in self.runs]
        return data

    def _run_as_data(self, run: RunMeasures) -> dict[str, Any]:
        data = {
            "run": f"{self.arm.folder}/{run.path.name}",
            "seed": run.seed,
            "score": run.score,
            "last_score": run.last_score,
            "env_steps": run.env_steps,
            "updates": run.updates,
            "seconds": run.seconds,
            "training_seconds": run.training_seconds,
            "env_steps_per_second": run.env_steps_per_second,
        }
        if self.threshold is not None:
            there = run.reaches(self.threshold)
            data["env_steps_to_threshold"], data["seconds_to_threshold"] = there or (None, None)
        return data | {
            "curve": {
                "env_steps": run.curve_env_steps.tolist(),
                "training_seconds": run.curve_seconds.round(6).tolist(),
                "score": run.curve_score.tolist(),
            }
        }


def _pair(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [float(interval.low), float(interval.high)]
