"""What one arm did to learning and to speed, compared with the first: the decision rule.

A verdict is made of two arms and nothing else: a third one in the same command changes no word of it.

Learning is judged by two measures of each seed: the final score, and the area under its curve against env steps
(the mean score over the run). For each measure

1. a difference is *seen* where dealing the pooled seeds to two arms at random would part their ranks as far in at most
   5 % of all deals (exact rank test, two-sided), after Holm's correction over both measures;
2. the arms are *equal* where the 95 % interval of the difference of interquartile means lies within the margin on both
   sides, and so does the difference of plain means: the middle half of the seeds says nothing about those that were
   lost. Equal wins over seen: a difference that small is real but of no account;
3. neither: *unseen*. Nothing was shown, and how many seeds would show a difference of one margin is said.

A seed is *lost* where it ends below the first arm's score by half of what that arm learned. Both measures equal, and no
more lost seeds than the first arm has: as good. One worse (better) and the other not better (worse): worse (better).
One of each: mixed. Else unseen. With so few seeds that not even fully separated arms would count as seen: too few, and
nothing is claimed. Lost seeds are told in words whatever the verdict.

Speed is the ratio of env steps per second: faster or slower where its 95 % interval lies beyond 1.05 or 1/1.05, as fast
where it lies between, unclear else. Arrival is the ratio of training seconds to the threshold (medians; a seed that
never gets there counts as later than all others), judged alike and told in words of its own: sooner, later, as soon.

Where seeds are added until the verdict is decided (`compare --until-sure`), the same rule is asked at several *looks*:
each has an equal part of the 5 % (Bonferroni: chances count so many times, intervals are as much wider), so that all of
them together keep to it.

On identical arms (another lane, say) rule 1 holds the chance of "better" or "worse" below 5 %, whatever the
distribution of scores, because ranks are dealt exactly; tests/comparison/test_compare_verdict.py repeats it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from hotloop.comparison.statistics import (
    LEVEL,
    REPEATS,
    Draws,
    Estimate,
    can_tell,
    chance_of_splits,
    difference_for,
    holm,
    interquartile_mean,
    seeds_for,
)
from hotloop.comparison.summary import ArmSummary, Span, common_span, estimate_as_data, lost_limit
from hotloop.core.types import Array

Finding = Literal["better", "worse", "equal", "unseen"]
Learning = Literal["better", "worse", "mixed", "as good", "unseen", "too few"]
Speed = Literal["faster", "slower", "as fast", "unclear", "unknown"]
Arrival = Literal["sooner", "later", "as soon", "unclear", "unknown"]
ARRIVALS: Mapping[Speed, Arrival] = {
    "faster": "sooner",
    "slower": "later",
    "as fast": "as soon",
    "unclear": "unclear",
    "unknown": "unknown",
}
SPEED_MARGIN = 1.05
MEASURES = 2
"""Of learning: final score and area."""


@dataclass(frozen=True)
class MeasureContrast:
    """One measure of learning, arm minus reference."""

    name: Literal["final score", "area"]
    difference: Estimate
    mean_difference: float  # of plain means, which lost seeds move
    improvement: Estimate
    chance: float  # as adjusted, once all are known
    seeds_needed: int  # in each arm, to see a difference of one margin
    visible: float  # difference that these seeds would show in four cases of five
    margin: float

    @property
    def finding(self) -> Finding:
        interval = self.difference.interval
        within = interval is not None and -self.margin <= interval.low and interval.high <= self.margin
        if within and abs(self.mean_difference) <= self.margin:
            return "equal"
        if self.chance <= 1 - LEVEL + 1e-12:
            assert self.improvement.value is not None
            return "better" if self.improvement.value > 0.5 else "worse"
        return "unseen"


@dataclass(frozen=True)
class Contrast:
    """An arm against the reference."""

    arm: str
    reference: str
    seeds: tuple[int, int]  # of the reference, of the arm
    tests: int  # made of the two arms, at all looks
    paired: bool
    measures: Sequence[MeasureContrast]
    seconds_ratio: Estimate  # above 1: the arm is sooner
    env_steps_ratio: Estimate  # above 1: the arm needs fewer
    rate_ratio: Estimate  # above 1: the arm makes more env steps per second
    threshold: float | None = None
    span: Span | None = None  # env steps between which both were scored over the run
    lost: tuple[int, int] = (0, 0)  # seeds of the reference, of the arm
    lost_below: float | None = None  # the final score below which a seed counts as lost

    @property
    def learning(self) -> Learning:
        if not can_tell(self.seeds, self.tests):
            return "too few"
        found = {measure.finding for measure in self.measures}
        if {"better", "worse"} <= found:
            return "mixed"
        if "worse" in found:
            return "worse"
        if "better" in found:
            return "better"
        return "as good" if found == {"equal"} and not self.loses_more else "unseen"

    @property
    def loses_more(self) -> bool:
        """Whether a larger share of the arm's seeds is lost than of the reference's."""
        return self.lost[1] * self.seeds[0] > self.lost[0] * self.seeds[1]

    @property
    def speed(self) -> Speed:
        return speed_of(self.rate_ratio)

    @property
    def arrival(self) -> Arrival:
        return ARRIVALS[speed_of(self.seconds_ratio)]

    def as_data(self) -> dict[str, Any]:
        return {
            "arm": self.arm,
            "against": self.reference,
            "paired": self.paired,
            "learning": self.learning,
            "measures": [_measure_as_data(measure) for measure in self.measures],
            "area_env_steps": self.span,
            "lost_seeds": {"below": self.lost_below, "arm": self.lost[1], "against": self.lost[0]},
            **estimate_as_data("env_steps_to_threshold_ratio", self.env_steps_ratio),
        }

    def circumstances(self) -> dict[str, Any]:
        """What depends on the clock."""
        return {
            "arm": self.arm,
            "speed": self.speed,
            "arrival": self.arrival,
            **estimate_as_data("seconds_to_threshold_ratio", self.seconds_ratio),
            **estimate_as_data("env_steps_per_second_ratio", self.rate_ratio),
        }


def contrasts(
    summaries: Sequence[ArmSummary], margin: float | None, repeats: int = REPEATS, looks: int = 1
) -> list[Contrast]:
    """Every arm against the first; `repeats` draws for each interval; `looks`: how often this may be asked at most."""
    if len(summaries) < 2 or not summaries[0].runs or margin is None:
        return []
    return [_contrast(summaries[0], other, margin, repeats, looks) for other in summaries[1:] if other.runs]


def speed_of(ratio: Estimate) -> Speed:
    if ratio.value is None or ratio.interval is None:
        return "unknown"
    low, high = ratio.interval
    if low > SPEED_MARGIN:
        return "faster"
    if high < 1 / SPEED_MARGIN:
        return "slower"
    return "as fast" if low >= 1 / SPEED_MARGIN and high <= SPEED_MARGIN else "unclear"


def _contrast(reference: ArmSummary, arm: ArmSummary, margin: float, repeats: int, looks: int) -> Contrast:
    span = common_span([reference.runs, arm.runs])
    reference, arm = replace(reference, span=span), replace(arm, span=span)
    n, m = len(reference.runs), len(arm.runs)
    paired = sorted(reference.seeds) == sorted(arm.seeds) and len(set(arm.seeds)) == m
    if paired:
        reference, arm = _by_seed(reference), _by_seed(arm)
    draws = Draws(n, m, paired=paired, repeats=repeats, level=1 - (1 - LEVEL) / looks)
    rows = _measures_of(reference, arm)
    tests, limit = looks * len(rows), lost_limit(reference)
    found = [_measure(name, first, second, draws, margin, tests) for name, first, second in rows]
    chances = holm([measure.chance for measure in found])
    arrives = any(2 * summary.arrived > len(summary.runs) for summary in (reference, arm))
    nothing = Estimate(None)
    return Contrast(
        arm=arm.label,
        reference=reference.label,
        seeds=(n, m),
        tests=tests,
        paired=paired,
        measures=[
            replace(measure, chance=min(1.0, looks * chance)) for measure, chance in zip(found, chances, strict=True)
        ],
        seconds_ratio=draws.time_ratio(reference.all_seconds_to, arm.all_seconds_to) if arrives else nothing,
        env_steps_ratio=draws.time_ratio(reference.all_env_steps_to, arm.all_env_steps_to) if arrives else nothing,
        rate_ratio=draws.rate_ratio(reference.rates, arm.rates) if _positive(reference, arm) else nothing,
        threshold=reference.threshold,
        span=span,
        lost=(reference.lost(limit), arm.lost(limit)),
        lost_below=limit,
    )


def _measure(name: Any, first: Array, second: Array, draws: Draws, margin: float, tests: int) -> MeasureContrast:
    freedom = len(first) + len(second) - 2
    squares = float(np.var(first) * len(first) + np.var(second) * len(second))
    spread = math.sqrt(squares / freedom) if freedom > 0 else math.inf
    harmonic = 2 / (1 / len(first) + 1 / len(second))
    return MeasureContrast(
        name=name,
        difference=draws.difference(first, second, interquartile_mean),
        mean_difference=float(np.mean(second) - np.mean(first)),
        improvement=draws.improvement(first, second),
        chance=chance_of_splits(first, second),
        seeds_needed=seeds_for(margin, spread, tests),
        visible=difference_for(harmonic, spread, tests),
        margin=margin,
    )


def _measures_of(reference: ArmSummary, arm: ArmSummary) -> list[tuple[str, Array, Array]]:
    rows = [("final score", reference.scores, arm.scores)]
    if len(reference.areas) and len(arm.areas):
        rows.append(("area", reference.areas, arm.areas))
    return rows


def _by_seed(summary: ArmSummary) -> ArmSummary:
    return replace(summary, runs=sorted(summary.runs, key=lambda run: run.seed))


def _positive(*summaries: ArmSummary) -> bool:
    return all((summary.rates > 0).all() for summary in summaries)


def _measure_as_data(measure: MeasureContrast) -> dict[str, Any]:
    return {
        "measure": measure.name,
        "finding": measure.finding,
        **estimate_as_data("difference", measure.difference),
        "mean_difference": measure.mean_difference,
        **estimate_as_data("probability_of_improvement", measure.improvement),
        "chance": measure.chance,
        "margin": measure.margin,
        "seeds_needed": measure.seeds_needed,
        "visible_difference": measure.visible,
    }
