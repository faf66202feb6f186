"""Traces made by hand for the tests of the rules: ten seconds of loop, so that a second is a tenth of it."""

from __future__ import annotations

from typing import Any

from hotloop.doctor.finding import RULES, Finding
from hotloop.doctor.rules import load_rules
from hotloop.doctor.trace import CallCount, Counts, Growth, LineCost, StackCost, Subject, Trace

load_rules()
COUNTED = Counts(env_steps=100, env_calls=100, updates=10, update_forwards=20, act_forwards=100)
"""The counting pass: calls are divided by these."""


def made(
    phases: dict[str, float] | None = None,
    *,
    calls: list[CallCount] | None = None,
    lines: list[LineCost] | None = None,
    stacks: list[StackCost] | None = None,
    counts: Counts | None = None,
    **others: Any,
) -> Trace:
    """Ten seconds of loop after two of start-up; what `phases` leave is `other`."""
    phases = phases or {}
    rest = {"start-up": 2.0, "other": 10.0 - sum(phases.values())}
    return Trace(
        subject=Subject(kind="script", name="train.py"),
        machine=others.pop("machine", {"cores": 2, "torch_threads": 2, "device": "cpu"}),
        seconds=12.0,
        phases=phases | rest,
        counts=counts or Counts(env_steps=1000, env_calls=1000, updates=100),
        counted=others.pop("counted", COUNTED),
        calls=tuple(calls or ()),
        lines=tuple(lines or ()),
        stacks=tuple(stacks or ()),
        **others,
    )


def call(name: str, line: int, phase: str, count: int, largest: int = 0) -> CallCount:
    return CallCount(name=name, where=f"train.py:{line}", phase=phase, count=count, largest=largest)


def line(number: int, seconds: float, phase: str, source: str = "", function: str = "f", *features: str) -> LineCost:
    where = f"train.py:{number}"
    return LineCost(where=where, function=function, source=source, phase=phase, seconds=seconds, features=features)


def stack(seconds: float, phase: str, *frames: str) -> StackCost:
    return StackCost(phase=phase, frames=frames, seconds=seconds)


def grown(what: str, *costs: float) -> Growth:
    """Over the run, in microseconds per env step."""
    points = tuple((float(place), cost) for place, cost in enumerate(costs))
    return Growth(over="run", what=what, points=points, ratio=sum(costs[-2:]) / sum(costs[:2]))


def judge(code: str, trace: Trace) -> Finding | None:
    return RULES[code].find(trace)


def found(code: str, trace: Trace) -> Finding:
    finding = judge(code, trace)
    assert finding is not None, f"{code} found nothing"
    assert finding.rule == code
    assert 0 <= finding.share <= 1
    assert finding.remedy
    return finding
