"""Experiments on a foreign program: from paired stretches to ratios with intervals, and from these to the findings that
they confirm.

A stretch is some env steps of the program as it is, or with one thing changed; the two of a pair follow each other, in
turns the one or the other first.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from hotloop.core.intervals import median_interval
from hotloop.doctor.trace import PROCESSOR, Experiment, Trace, Untried

if TYPE_CHECKING:
    from hotloop.doctor.finding import Finding

LEAST_PAIRS = 5
OFTEN, LEAST_SEEN = 10, 3
"""Times in every stretch from which on stretches are alike; times in all that something must have come for its cost
to be told."""
DRAWS = 2_000
CONFIRMS = {
    "logging and printing off": ("LOG001", "LOG005"),
    "evaluation off": ("LOG003",),
    "rendering off": ("ENV007",),
    "no_grad while acting": ("ACT001",),
    "fused optimizer": ("UPDATE007",),
    "rows stored in one call": ("STORE001",),
    "threads": ("MACHINE001",),
    "every 4th update": ("UPDATE005",),
}
"""The rules whose promise an experiment measures; thread counts go by the beginning of their name."""
IS_THE_REMEDY = ("rendering off", "no_grad while acting", "fused optimizer", "threads", "every 4th update")
"""Experiments that make the very change. Others show what is in it at most: nothing is printed, where the remedy
prints less."""


class TrialInterval(NamedTuple):
    env_steps: int
    seconds: float
    processor: float
    seen: int
    """How often what the experiment changes came in it."""


Pair = tuple[TrialInterval, TrialInterval]
"""As it is, and changed."""


class Ratio(NamedTuple):
    """Cost per env step as it is over that with the change, with a 95 % interval: above 1, the change is faster."""

    value: float
    low: float
    high: float


def paired_ratio(costs: Sequence[tuple[float, float]]) -> Ratio:
    """The median of the pairs' ratios: a stretch that another program slowed down hardly moves it."""
    ratios = [as_it_is / changed for as_it_is, changed in costs]
    return Ratio(median(ratios), *median_interval(ratios))


def summed_ratio(costs: Sequence[tuple[float, float]], seed: int = 0) -> Ratio:
    """The ratio of sums, with a bootstrap interval over pairs: for what comes now and then, so that a stretch may have
    more or less of it than its neighbor, or none."""
    generator = random.Random(seed)
    drawn = sorted(_of_sums(generator.choices(costs, k=len(costs))) for _ in range(DRAWS))
    return Ratio(_of_sums(costs), drawn[round(0.025 * DRAWS)], drawn[round(0.975 * DRAWS) - 1])


def _of_sums(costs: Sequence[tuple[float, float]]) -> float:
    return sum(one for one, _ in costs) / sum(other for _, other in costs)


def judge(name: str, what: str, kind: str, pairs: Sequence[Pair]) -> Experiment | Untried:
    """The ratio by wall-clock and by processor time; or why none is told."""
    pairs = [pair for pair in pairs if all(one.env_steps > 0 and one.seconds > 0 for one in pair)]
    if len(pairs) < LEAST_PAIRS:
        return Untried(name=name, what=what, kind=kind, reason=f"not tried for long enough: {len(pairs)} pairs")
    seen = [as_it_is.seen for as_it_is, _ in pairs]
    if sum(seen) < LEAST_SEEN:
        times = "never" if not sum(seen) else "once" if sum(seen) == 1 else f"{sum(seen)} times"
        env_steps = sum(as_it_is.env_steps for as_it_is, _ in pairs)
        reason = f"what it leaves out came {times} in {env_steps:,} env steps: too seldom to tell what it costs"
        return Untried(name=name, what=what, kind=kind, reason=reason)
    ratio = paired_ratio if min(seen) >= OFTEN else summed_ratio
    wall = ratio([(one.seconds / one.env_steps, other.seconds / other.env_steps) for one, other in pairs])
    busy = [(one.processor / one.env_steps, other.processor / other.env_steps) for one, other in pairs]
    processor = ratio(busy) if all(one > 0 and other > 0 for one, other in busy) else None
    return Experiment(
        name=name,
        what=what,
        kind=kind,
        ratio=wall.value,
        low=wall.low,
        high=wall.high,
        processor=tuple(processor) if processor is not None else (),
        pairs=len(pairs),
    )


def judge_trials(trials: Sequence[Mapping[str, Any]]) -> Iterator[Experiment | Untried]:
    """What the recorder has left of each switch."""
    for trial in trials:
        told = {name: str(trial[name]) for name in ("name", "what", "kind")}
        if trial["reason"]:
            yield Untried(**told, reason=str(trial["reason"]))
        else:
            pairs = [(TrialInterval(*one), TrialInterval(*other)) for one, other in trial["stretches"]]
            yield judge(told["name"], told["what"], told["kind"], pairs)


def confirmed(one: Experiment, findings: Sequence[Finding]) -> Finding | None:
    """The finding whose remedy the experiment tried out, where there is one."""
    rules = CONFIRMS.get(_known_name(one), ())
    return next((finding for finding in findings if finding.rule in rules), None)


def _known_name(one: Experiment) -> str:
    return "threads" if one.name.startswith("threads") else one.name


def tried_ratio(trace: Trace, rule: str) -> Ratio | None:
    """How many times faster the program was with the remedy of a rule, where an experiment made that very change; of
    several (thread counts) the fastest, which is the one that is advised."""
    names = [name for name in IS_THE_REMEDY if rule in CONFIRMS[name]]
    made = [measured_by(one, trace.clock) for one in trace.experiments if _known_name(one) in names]
    return max(made, key=lambda one: one.value, default=None)


def measured_by(one: Experiment, clock: str) -> Ratio:
    """By the clock of the report: processor time where the machine was busy with other programs and it was measured."""
    if clock == PROCESSOR and one.processor:
        return Ratio(*one.processor)
    return Ratio(one.ratio, one.low, one.high)
