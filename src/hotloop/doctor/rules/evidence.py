"""What rules ask of a trace: which calls, on which lines, how much of the loop's time; and the finding made of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise

from hotloop.doctor.finding import RELIEF, Finding, expected_gain
from hotloop.doctor.trace import ACT, ENV, OUTSIDE, STORE, CallCount, LineCost, StackCost, Trace

LEAST_GAIN = 1.05
"""Findings that promise less are left out; rules whose evidence is a plain count may set a lower bound."""
MOST_SHARE = 0.995
SAVED_ENTIRELY = 1000.0
"""The speed-up of work that need not be done at all."""
MOST_PLACES = 5
FRAME = re.compile(r"^(?P<function>.*) \((?P<place>.+:\d+)\)$")


def suggest(
    trace: Trace,
    share: float,
    speedup: float,
    *,
    evidence: str,
    places: Sequence[str] = (),
    least: float = LEAST_GAIN,
    relief: float = RELIEF,
) -> Finding | None:
    """A finding if making `share` of the loop `speedup` times faster is worth it, by itself."""
    share = min(share, 1.0)
    if expected_gain(min(share, MOST_SHARE), speedup, relief=0.0) < least:
        return None
    where, others = (places[0], tuple(places[1:MOST_PLACES])) if places else ("", ())
    return Finding(
        share=share,
        evidence=evidence,
        where=where,
        lines=others,
        before=source_at(trace, where),
        expected_gain=expected_gain(min(share, MOST_SHARE), speedup, relief),
    )


def calls_like(trace: Trace, patterns: Collection[str], phases: Collection[str] = ()) -> list[CallCount]:
    """Calls in the loop whose name fits one of the patterns (`networkx.*`), most frequent first."""
    found = [
        call
        for call in trace.calls
        if call.phase not in OUTSIDE
        and (not phases or call.phase in phases)
        and any(fnmatchcase(call.name, pattern) for pattern in patterns)
    ]
    return sorted(found, key=lambda call: -call.count)


def per_env_call(trace: Trace, calls: Iterable[CallCount]) -> float:
    """How often per call of `step`, which moves one env or many."""
    return sum(call.count for call in calls) / max(1, trace.counted.env_calls)


def places_of(calls: Iterable[CallCount]) -> list[str]:
    return list(dict.fromkeys(call.where for call in calls))


def sampled_share(
    trace: Trace,
    places: Collection[str],
    phases: Collection[str] = (),
    functions: Collection[tuple[str, str]] = (),
) -> float:
    """The part of loop time spent on these lines, in these functions, each a (file, name), and in all they called.

    Every sample counts once.
    """
    places, functions = set(places), set(functions)
    stacks = (
        stack
        for stack in trace.stacks
        if any(place_of(frame) in places or function_of(frame) in functions for frame in stack.frames)
    )
    lines = (line for line in trace.lines if line.where in places or (file_of(line.where), line.function) in functions)
    return max(_share(trace, stacks, phases), _share(trace, lines, phases))


def function_share(trace: Trace, functions: Collection[tuple[str, str]], phases: Collection[str] = ()) -> float:
    return sampled_share(trace, (), phases, functions)


def _share(trace: Trace, costs: Iterable[LineCost | StackCost], phases: Collection[str]) -> float:
    """Only the most expensive stacks are kept and lines do not know their callers, so callers take the larger share."""
    total = sum(cost.seconds for cost in costs if cost.phase not in OUTSIDE and (not phases or cost.phase in phases))
    return min(1.0, total / trace.loop_seconds) if trace.loop_seconds > 0 else 0.0


def share_with_late(trace: Trace, share: float, shows: Callable[[StackCost], bool]) -> float:
    """Of the loop and of what was watched after it together: for what comes seldom and takes long."""
    late = trace.counts.late_seconds
    if not late:
        return share
    seen = sum(stack.seconds for stack in trace.late if shows(stack))
    return (share * trace.loop_seconds + seen) / (trace.loop_seconds + late)


def by_cost(trace: Trace, places: Iterable[str]) -> list[str]:
    """The same places, the most expensive first; those never sampled keep their order at the end."""
    costs = {place: sampled_share(trace, [place]) for place in places}
    return sorted(costs, key=lambda place: -costs[place])


def most_expensive(trace: Trace, phases: Collection[str], pattern: str = "", without: Sequence[str] = ()) -> list[str]:
    """The lines of a phase that cost most, of those whose source holds `pattern` where any does."""
    lines = sorted((line for line in trace.lines if line.phase in phases), key=lambda line: -line.seconds)
    lines = [line for line in lines if not any(text in line.source for text in without)]
    return [line.where for line in lines if pattern in line.source] or [line.where for line in lines]


def lines_with(trace: Trace, texts: Collection[str]) -> list[str]:
    """Sampled lines whose source holds one of the texts: what is rare and long may miss the counting pass."""
    lines = (line for line in trace.lines if line.phase not in OUTSIDE)
    return [line.where for line in lines if any(text in line.source for text in texts)]


def own_microseconds(trace: Trace, share: float, times: float) -> float:
    """What each of so many `times` took, without the wait for a core where others keep the machine busy: to reckon
    with. What is told is `microseconds_words`."""
    return 1e6 * share * trace.loop_seconds / max(1.0, times) / _waiting(trace)


def microseconds_text(trace: Trace, share: float, times: float) -> str:
    """By the clock of the phase table, wall-clock; and what is left of it where the machine was busy with others."""
    own, waiting = own_microseconds(trace, share, times), _waiting(trace)
    busy = f" (about {number(own)} without the wait for a busy core)" if waiting > 1.0 else ""
    return f"{number(own * waiting)} microseconds{busy}"


def _waiting(trace: Trace) -> float:
    """Programs that want a core, for each that there is; at least 1. Where processor time was measured, the queue has
    been left out already."""
    if trace.processor:
        return 1.0
    load = trace.machine.get("load_average") or [0.0]
    return float(max(1.0, load[0] / max(1, trace.machine.get("cores") or 1)))


def function_at(trace: Trace, where: str) -> tuple[str, str]:
    """(file, function) that a line belongs to; the name is empty where nothing tells."""
    file, number = file_of(where), line_of(where)
    for line in trace.lines:
        if line.where == where:
            return file, line.function
    starts = [
        (line_of(call.where), call.name.removeprefix("user:"))
        for call in trace.calls
        if call.name.startswith("user:") and file_of(call.where) == file and line_of(call.where) <= number
    ]
    return file, max(starts)[1] if starts else ""


def features_at(trace: Trace, where: str) -> set[str]:
    return {feature for line in trace.lines if line.where == where for feature in line.features}


def source_at(trace: Trace, where: str) -> str:
    told = (line.source.strip() for line in trace.lines if where and line.where == where)
    return next(told, trace.sources.get(where, "").strip())


def loop_lines(trace: Trace, function: tuple[str, str]) -> list[str]:
    """The lines of a function that stand in a `for` or `while` of it."""
    looping = {"for-loop", "while-loop", "python-loop-body"}
    return [
        line.where
        for line in trace.lines
        if (file_of(line.where), line.function) == function and looping & set(line.features)
    ]


def loop_of(trace: Trace, phase: str, apart_from: str) -> str:
    """The `for` or `while` of the user's own that makes a phase happen many times: the outermost around it that is not
    around the other phase too. Where most of the phase has none, the line that leads to it from a loop around both."""
    beside = (ENV, ACT, STORE) if apart_from == ENV else (apart_from,)  # a cheap env is hardly ever met by a sample
    shared = {head for stack in trace.stacks if stack.phase in beside for head in _heads(trace, stack)}
    if not any(stack.phase in beside for stack in trace.stacks):
        return ""  # nothing tells one loop from the other
    found: dict[str, float] = {}
    leading: dict[str, float] = {}
    for stack in trace.stacks:
        if stack.phase == phase:
            _weigh(found, next((head for head in _heads(trace, stack) if head not in shared), ""), stack)
            _weigh(leading, _leads_from(trace, stack, shared), stack)
    best = max(found, key=found.__getitem__, default="")
    return best or max(leading, key=leading.__getitem__, default="")


def led_from(trace: Trace, stacks: Iterable[StackCost], beside: str) -> str:
    """The line that leads to these from a loop in which a phase runs too: where they could be made to come less."""
    shared = {head for stack in trace.stacks if stack.phase == beside for head in _heads(trace, stack)}
    leading: dict[str, float] = {}
    for stack in stacks:
        _weigh(leading, _leads_from(trace, stack, shared), stack)
    return max(leading, key=leading.__getitem__, default="")


def _weigh(costs: dict[str, float], place: str, stack: StackCost) -> None:
    costs[place] = costs.get(place, 0.0) + stack.seconds


def _heads(trace: Trace, stack: StackCost) -> list[str]:
    """Heads of all loops that a stack stands in, the outermost first."""
    return [head for frame in stack.frames for head in trace.loops.get(place_of(frame), ())]


def _leads_from(trace: Trace, stack: StackCost, shared: set[str]) -> str:
    """The innermost line of a stack that stands directly in one of these loops."""
    places = [place_of(frame) for frame in stack.frames]
    return next((place for place in reversed(places) if shared & set(trace.loops.get(place, ()))), "")


def callers_of(trace: Trace, functions: Collection[tuple[str, str]]) -> list[str]:
    """The user's own lines from which these functions are called, by what that costs."""
    costs: dict[str, float] = {}
    for stack in trace.stacks:
        for outer, inner in pairwise(stack.frames):
            if function_of(inner) in functions and function_of(outer) not in functions:
                if place_of(outer) in trace.loops or place_of(outer) in {line.where for line in trace.lines}:
                    _weigh(costs, place_of(outer), stack)
                break
    return sorted(costs, key=lambda place: -costs[place])


def edit_first(place: str, others: Sequence[str]) -> list[str]:
    """The line to edit, where one is known, before those that cost."""
    return [*([place] if place else []), *(other for other in others if other != place)]


def place_of(frame: str) -> str:
    match = FRAME.match(frame)
    return match["place"] if match else ""


def function_of(frame: str) -> tuple[str, str]:
    match = FRAME.match(frame)
    return (file_of(match["place"]), match["function"]) if match else ("", "")


def file_of(where: str) -> str:
    return where.rpartition(":")[0]


def line_of(where: str) -> int:
    number = where.rpartition(":")[2]
    return int(number) if number.isdigit() else 0


def number(value: float) -> str:
    """Counts as people write them: 0.25, 3.5, 48, 1,957."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2g}"
