"""An arm over its seeds: plain data from here on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hotloop.comparison.arms import Arm
from hotloop.comparison.measures import RunMeasures
from hotloop.comparison.statistics import (
    Estimate,
    bootstrap_interval,
    interquartile_mean,
    median_time,
    never_as_infinite,
    t_interval,
)
from hotloop.core.types import Array

Span = tuple[float, float]
"""Env steps from and to which areas are taken: an arm's own in its row, the same for two arms that are compared."""


@dataclass(frozen=True)
class ArmSummary:
    """`runs` are the finished ones, by seed; everything else follows from them."""

    arm: Arm
    runs: Sequence[RunMeasures]
    threshold: float | None
    span: Span | None = None

    @property
    def label(self) -> str:
        return self.arm.label

    @property
    def seeds(self) -> list[int]:
        return [run.seed for run in self.runs]

    @cached_property
    def scores(self) -> Array:
        return np.array([run.score for run in self.runs])

    @cached_property
    def areas(self) -> Array:
        """For each seed the mean height of its curve over `span`; empty where there is none."""
        return np.array([run.height(*self.span) for run in self.runs] if self.span else [])

    @cached_property
    def rates(self) -> Array:
        return np.array([run.env_steps_per_second for run in self.runs])

    @cached_property
    def mean_score(self) -> Estimate:
        return Estimate(self.mean("score"), t_interval(self.scores))

    @cached_property
    def score(self) -> Estimate:
        return _iqm(self.scores)

    @cached_property
    def area(self) -> Estimate:
        return _iqm(self.areas)

    @cached_property
    def rate(self) -> Estimate:
        mean = self.mean("env_steps_per_second")
        return Estimate(mean, t_interval(self.rates) if mean is not None else None)

    @cached_property
    def reached(self) -> list[tuple[int, float] | None]:
        """For each seed: env steps and training seconds to the threshold, once it had learned at all."""
        return [None if self.threshold is None else run.reaches(self.threshold) for run in self.runs]

    def lost(self, limit: float | None) -> int:
        """Seeds that end below it."""
        return 0 if limit is None else int((self.scores < limit).sum())

    @property
    def arrived(self) -> int:
        return sum(there is not None for there in self.reached)

    @cached_property
    def env_steps_to(self) -> Estimate:
        return median_time([there and there[0] for there in self.reached])

    @cached_property
    def seconds_to(self) -> Estimate:
        return median_time([there and there[1] for there in self.reached])

    @property
    def all_env_steps_to(self) -> Array:
        return never_as_infinite([there and there[0] for there in self.reached])

    @property
    def all_seconds_to(self) -> Array:
        return never_as_infinite([there and there[1] for there in self.reached])

    def mean(self, field: str) -> float | None:
        """None where there is none: a file of scores may not tell the time."""
        found = float(np.mean([getattr(run, field) for run in self.runs])) if self.runs else math.nan
        return found if math.isfinite(found) else None

    @property
    def first_score(self) -> float | None:
        """The mean of the first evaluations: where learning started from."""
        first = [float(run.curve_score[0]) for run in self.runs if len(run.curve_score)]
        return float(np.mean(first)) if first else None

    def as_data(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "label": self.label,
            "source": self.arm.source,
            "overrides": list(self.arm.words),
            "seeds": len(self.runs),
            **estimate_as_data("mean", self.mean_score),
            **estimate_as_data("iqm", self.score),
            **estimate_as_data("area", self.area),
            "last_mean": self.mean("last_score"),
        }
        for field in ("env_steps", "updates"):
            data[field] = self.mean(field)
        if self.threshold is not None:
            data["reached"] = self.arrived
            data["final_reached"] = int((self.scores >= self.threshold).sum())
            data |= estimate_as_data("env_steps_to_threshold", self.env_steps_to)
        data["runs"] = [self._run_as_data(number, run) for number, run in enumerate(self.runs)]
        return data

    def _run_as_data(self, number: int, run: RunMeasures) -> dict[str, Any]:
        data = {
            "seed": run.seed,
            "score": run.score,
            "last_score": run.last_score,
            "area": float(self.areas[number]) if len(self.areas) else None,
            "env_steps": run.env_steps,
            "updates": run.updates,
        }
        if self.threshold is not None:
            data["env_steps_to_threshold"] = (self.reached[number] or (None,))[0]
        return data | {"curve": {"env_steps": run.curve_env_steps.tolist(), "score": run.curve_score.tolist()}}

    def circumstances(self) -> dict[str, Any]:
        """What depends on the clock and on where the runs lie; in the order of `as_data`."""
        data: dict[str, Any] = {"label": self.label}
        for field in ("seconds", "training_seconds"):
            data[field] = self.mean(field)
        data |= estimate_as_data("env_steps_per_second", self.rate)
        if self.threshold is not None:
            data |= estimate_as_data("seconds_to_threshold", self.seconds_to)
        data["runs"] = [self._run_circumstances(number, run) for number, run in enumerate(self.runs)]
        return data

    def _run_circumstances(self, number: int, run: RunMeasures) -> dict[str, Any]:
        data = {
            "run": str(run.path),
            "seed": run.seed,
            "seconds": run.seconds,
            "training_seconds": run.training_seconds,
            "env_steps_per_second": run.env_steps_per_second,
        }
        if self.threshold is not None:
            data["seconds_to_threshold"] = (self.reached[number] or (None, None))[1]
        return data | {"curve": {"training_seconds": run.curve_seconds.round(6).tolist()}}


def _iqm(values: Array) -> Estimate:
    if len(values) == 0:
        return Estimate(None)
    interval = bootstrap_interval([values], interquartile_mean) if len(values) > 1 else None
    return Estimate(float(interquartile_mean(values)), interval)


def estimate_as_data(name: str, estimate: Estimate) -> dict[str, Any]:
    """`{name: value, name_interval: [low, high]}`; an end at infinity is null."""
    ends = estimate.interval and [float(end) if math.isfinite(end) else None for end in estimate.interval]
    return {name: estimate.value, f"{name}_interval": ends}


def common_span(arms: Sequence[Sequence[RunMeasures]]) -> Span | None:
    """From where every run has been evaluated once to where the arm that trained least ended; None where an arm has
    no curve, or all of them one point."""
    curves = [[run.curve_env_steps for run in runs if len(run.curve_env_steps)] for runs in arms if runs]
    if not curves or not all(curves):
        return None
    start = max(float(curve[0]) for rows in curves for curve in rows)
    end = min(max(float(curve[-1]) for curve in rows) for rows in curves)
    return (start, end) if end > start else None


def rounded(value: float, digits: int, towards: Callable[[float], float] = round) -> float:
    """To so many significant digits."""
    if value == 0 or not math.isfinite(value):
        return value
    scale = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    return float(f"{towards(value / scale) * scale:.12g}")


def default_threshold(reference: ArmSummary) -> float | None:
    """Nine tenths of the way from the first arm's first evaluations to its final score, to two significant digits."""
    start, end = reference.first_score, reference.score.value
    if start is None or end is None or end <= start:
        return None
    return rounded(start + 0.9 * (end - start), 2, math.floor)


def untrained_score(summaries: Sequence[ArmSummary]) -> float | None:
    """What play before any update scored: the median over all runs that tell it."""
    known = [run.untrained_score for summary in summaries for run in summary.runs if run.untrained_score is not None]
    return float(np.median(known)) if known else None


def default_margin(reference: ArmSummary) -> float | None:
    """A twentieth of what the first arm learned (final score above first evaluations), to two significant digits: what
    differs by less counts as equal. Where learning was over at the first evaluation, so that seeds differ as much as
    it rose since (two standard deviations), or where nothing was learned: a twentieth of the score."""
    learned = what_was_learned(reference)
    return None if learned is None else rounded(learned / 20, 2) or None


def lost_limit(reference: ArmSummary) -> float | None:
    """The final score below which a seed counts as lost: half of what the first arm learned is missing."""
    learned, end = what_was_learned(reference), reference.score.value
    return rounded(end - learned / 2, 3) if learned and end is not None else None


def what_was_learned(reference: ArmSummary) -> float | None:
    """Its final score above its first evaluations, or the size of its score, as `default_margin` says."""
    start, end = reference.first_score, reference.score.value
    if end is None:
        return None
    spread = float(np.std(reference.scores, ddof=1)) if len(reference.scores) > 1 else 0.0
    gain = end - start if start is not None else 0.0
    return gain if gain > 2 * spread and gain > 0 else max(gain, abs(end))
