"""Phase by phase and line by line: what two reports say an env step costs, and which differences are beyond doubt.

How far the costs of two recordings can be told apart.

Both are cut to the env steps of the shorter one and these into windows of equally many: a loop that got faster comes
further in the same time, and a warm-up without updates would weigh less in it. Window by window they went through the
same stages, so they are compared in pairs: with o and n seconds in a window, the ratio R = sum n / sum o has the
variance sum (n - R o)^2 / (k (k - 1)) / mean(o)^2 over k windows (the linearized ratio estimator, which a phase that is
busy only now and then, an evaluation say, does not mislead as a median would), and its logarithm gets a t interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypedDict

import numpy as np

from hotloop.core.intervals import student_quantile
from hotloop.core.types import Array
from hotloop.doctor.trace import OUTSIDE

LOOP = ""
_MOST_WINDOWS, _LEAST_WINDOWS = 24, 3
"""Neighboring slices are alike; joined into windows they are nearly independent."""
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
        costs: Array = 1e6 * np.diff(np.interp(edges, counted, spent)) / np.diff(edges)
        return costs

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
    reach = math.exp(student_quantile(windows - 1, (1 + _CONFIDENCE) / 2) * math.sqrt(variance))
    return ratio / reach, ratio * reach


def surely_positive(cost: Array) -> bool:
    return paired_variance(np.ones_like(cost), cost) < _SURE


LEAST_SHARE = 0.01
"""What takes less of either loop is left out."""
UNITS = {"env_steps": "env step", "updates": "update"}


class ComparisonRow(TypedDict):
    what: str
    """`loop`, `phase update` or `line train.py:88`."""
    source: str
    """The line's own text."""
    unit: str
    """`env step`, or `update` where a recording has no env step."""
    old: float
    """Microseconds per unit."""
    new: float
    ratio: float | None
    """New over old, above 1 is slower; None where there was nothing before."""
    low: float | None
    high: float | None
    adds: float
    """What the change adds to the loop, as a share of the old loop's cost."""
    verdict: str
    """`slower` or `faster` where the interval leaves out 1, else `same`."""


Key = tuple[str, str, str]
"""A line by its file, function and text: code above it moves its number without changing what it costs."""


def compare_costs(old: dict[str, Any], new: dict[str, Any], unit: str) -> list[ComparisonRow]:
    """The loop first, then phases and lines, what adds most to the loop's cost first."""
    compared = _Compared(old, new, unit)
    phases = sorted(compared.phase_rows(), key=lambda row: -row["adds"])
    return [compared.phase_row("loop", LOOP), *phases, *sorted(compared.line_rows(), key=lambda row: -row["adds"])]


class _Compared:
    def __init__(self, old: dict[str, Any], new: dict[str, Any], unit: str) -> None:
        self.unit = UNITS[unit]
        self.old, self.new = windowed(old, new, unit)
        self.windows = len(self.old[LOOP])
        self.loops = mean_cost(self.old, LOOP), mean_cost(self.new, LOOP)
        self.variance = paired_variance(self.old[LOOP], self.new[LOOP])
        self.lines = _Lines(old, self.old), _Lines(new, self.new)

    def phase_rows(self) -> Iterator[ComparisonRow]:
        for name in dict.fromkeys([*self.old, *self.new]):
            if name != LOOP and self._matters(mean_cost(self.old, name), mean_cost(self.new, name)):
                yield self.phase_row(f"phase {name}", name)

    def phase_row(self, what: str, name: str) -> ComparisonRow:
        costs = mean_cost(self.old, name), mean_cost(self.new, name)
        if costs[0] > 0 and costs[1] > 0:
            ends = ratio_interval(costs[1] / costs[0], paired_variance(self.old[name], self.new[name]), self.windows)
            return self._row(what, costs, ends)
        row = self._row(what, costs, None)
        if costs[1] > 0 and surely_positive(self.new[name]):
            row["verdict"] = "slower"
        elif costs[0] > 0 and surely_positive(self.old[name]):
            row["verdict"] = "faster"
        return row

    def line_rows(self) -> Iterator[ComparisonRow]:
        old, new = self.lines
        for key in dict.fromkeys([*old.costs, *new.costs]):
            costs = old.costs.get(key, 0.0), new.costs.get(key, 0.0)
            if self._matters(*costs):
                row = self._row(f"line {new.places.get(key) or old.places[key]}", costs, self._line_interval(key))
                yield row | {"source": key[2]}

    def _line_interval(self, key: Key) -> tuple[float, float] | None:
        """Sampling noise on top of the loop's; half a sample more each, so that none at all can be compared too."""
        old, new = self.lines
        if not (old.one_sample and new.one_sample):
            return None
        seen = old.samples.get(key, 0.0) + 0.5, new.samples.get(key, 0.0) + 0.5
        costs = [side.costs.get(key, 0.0) + side.one_sample / 2 for side in self.lines]
        return ratio_interval(costs[1] / costs[0], self.variance + 1 / seen[0] + 1 / seen[1], self.windows)

    def _matters(self, old: float, new: float) -> bool:
        return old >= LEAST_SHARE * self.loops[0] or new >= LEAST_SHARE * self.loops[1]

    def _row(self, what: str, costs: tuple[float, float], ends: tuple[float, float] | None) -> ComparisonRow:
        low, high = ends or (None, None)
        return ComparisonRow(
            what=what,
            source="",
            unit=self.unit,
            old=costs[0],
            new=costs[1],
            ratio=costs[1] / costs[0] if costs[0] else None,
            low=low,
            high=high,
            adds=(costs[1] - costs[0]) / self.loops[0],
            verdict="same" if ends is None else "slower" if ends[0] > 1 else "faster" if ends[1] < 1 else "same",
        )


class _Lines:
    """What each line of one report costs, in microseconds per unit."""

    def __init__(self, report: dict[str, Any], costs: Costs) -> None:
        self.costs: dict[Key, float] = {}
        self.samples: dict[Key, float] = {}
        self.places: dict[Key, str] = {}
        sample = report.get("sample_seconds") or 0.0
        self.one_sample = mean_cost(costs, LOOP) * sample / sum(report["timeline"]["seconds"])
        for line in report["lines"]:
            if line["phase"] not in OUTSIDE:
                self._add(line, _scale(report, line["phase"], costs), sample)

    def _add(self, line: dict[str, Any], scale: float, sample: float) -> None:
        key = (line["where"].rpartition(":")[0], line["function"], line["source"].strip())
        self.costs[key] = self.costs.get(key, 0.0) + scale * line["seconds"]
        self.samples[key] = self.samples.get(key, 0.0) + (line["seconds"] / sample if sample else 0.0)
        self.places.setdefault(key, line["where"])


def _scale(report: dict[str, Any], phase: str, costs: Costs) -> float:
    """From a line's seconds to its cost. Lines have no timeline: the cut does to them what it does to their phase."""
    seconds = report["phases"].get(phase, {"seconds": 0.0})["seconds"]
    return mean_cost(costs, phase) / seconds if seconds else 0.0
