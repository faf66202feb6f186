"""What runs beneath the user's lines: time in the functions of a library, and the lines that led there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase

from hotloop.doctor.rules.evidence import FRAME, file_of, place_of
from hotloop.doctor.trace import OUTSIDE, StackCost, Trace

Patterns = Collection[tuple[str, str]]
"""Pairs of (file, function): `("torch/distributions/*", "*._validate_sample")`."""


def stacks_in(trace: Trace, patterns: Patterns, phases: Collection[str] = ()) -> list[StackCost]:
    """Samples of the loop that were taken inside one of these functions."""
    return [
        stack
        for stack in trace.stacks
        if stack.phase not in OUTSIDE
        and (not phases or stack.phase in phases)
        and any(is_in(frame, patterns) for frame in stack.frames)
    ]


def is_in(frame: str, patterns: Patterns) -> bool:
    match = FRAME.match(frame)
    if match is None:
        return False
    file = file_of(match["place"]).replace("\\", "/")
    return any(
        fnmatchcase(match["function"], function) and (fnmatchcase(file, name) or fnmatchcase(file, f"*/{name}"))
        for name, function in patterns
    )


def share_in(trace: Trace, patterns: Patterns, phases: Collection[str] = ()) -> float:
    return share_of(trace, stacks_in(trace, patterns, phases))


def share_of(trace: Trace, stacks: Sequence[StackCost]) -> float:
    """The part of loop time that was sampled in these stacks."""
    return min(1.0, sum(stack.seconds for stack in stacks) / trace.loop_seconds) if trace.loop_seconds > 0 else 0.0


def lines_above(trace: Trace, stacks: Sequence[StackCost], patterns: Patterns) -> list[str]:
    """The user's own lines that called into these functions, the most expensive first."""
    own = {line.where for line in trace.lines}
    costs: dict[str, float] = {}
    for stack in stacks:
        first = next((place for place, frame in enumerate(stack.frames) if is_in(frame, patterns)), 0)
        where = next((place_of(frame) for frame in reversed(stack.frames[:first]) if place_of(frame) in own), "")
        if where:
            costs[where] = costs.get(where, 0.0) + stack.seconds
    return sorted(costs, key=lambda where: -costs[where])


def mentioned(trace: Trace, *names: str) -> list[str]:
    """Lines of the user's own that set one of these up, though the loop does not run there."""
    return [mention.where for name in names for mention in trace.mentions if mention.name == name]
