"""The most expensive lines and functions of the user's own code, and those that no finding explains.

A line's cost is its own and that of all it called outside the user's code, so the costs of all lines sum to the loop.
Where a line of the user's only calls a library's loop (`model.learn(...)`), the library's lines stand in its place,
beside what the library calls back of the user's own: an env, a callback.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hotloop.doctor.finding import Finding
from hotloop.doctor.rules.evidence import function_at
from hotloop.doctor.trace import ACT, OUTSIDE, UPDATE, LineCost, Trace

LEAST_UNEXPLAINED = 0.15
LEARNING_PARTS = ("forward", "backward", "optimiser")
"""What a network costs: no line of the user's to mend, unless a rule says so."""
LEAST_SHARE = 0.005


@dataclass(frozen=True)
class CodeLocation:
    """A line, or a function: `where` is the most expensive of its lines then."""

    where: str
    function: str
    source: str
    """Empty for a function."""
    seconds: float
    share: float
    phase: str
    """The one that most of it belongs to."""


def shown_lines(trace: Trace) -> tuple[LineCost, ...]:
    """The user's own lines; with the library's in place of the one that calls it."""
    return (*trace.beneath, *own_lines(trace))


def own_lines(trace: Trace) -> tuple[LineCost, ...]:
    """Without the line that only calls a library's loop, which is the most expensive."""
    if not trace.beneath:
        return trace.lines
    places = _grouped(_in_loop(trace.lines), lambda line: line.where)
    caller = max(places, key=lambda where: sum(line.seconds for line in places[where]), default="")
    return tuple(line for line in trace.lines if line.where != caller)


def whose_lines(trace: Trace) -> str:
    if not trace.beneath:
        return "of your code"
    package = trace.beneath[0].where.replace("\\", "/").partition("/")[0]
    library = f"of {package}, beneath your line"
    return f"{library}, and of your code" if _in_loop(own_lines(trace)) else library


def hottest_lines(trace: Trace, at_most: int = 10) -> list[CodeLocation]:
    """One place for each line, whichever phases it ran in."""
    return _dearest(trace, _grouped(_in_loop(shown_lines(trace)), lambda line: line.where), at_most)


def hottest_functions(trace: Trace, at_most: int = 10) -> list[CodeLocation]:
    """The lines of each function together; what it calls of the user's own counts there."""
    groups = _grouped(_in_loop(shown_lines(trace)), lambda line: " ".join(_function(line)))
    return [_without_source(place) for place in _dearest(trace, groups, at_most)]


def unexplained(trace: Trace, findings: Sequence[Finding]) -> list[CodeLocation]:
    """Own places above 15 % of the loop, outside forward, backward and optimizer, that no finding names: lines, and
    functions none of whose lines is so dear by itself."""
    explained = {where for finding in findings for where in (finding.where, *finding.lines) if where}
    functions = {(file, _plain(name)) for file, name in (function_at(trace, where) for where in explained)}
    lines = [line for line in _in_loop(own_lines(trace)) if not _is_network(line) and _function(line) not in functions]
    if any(not finding.where for finding in findings):
        return []  # it may be about any place
    dear = [
        place
        for place in _dearest(trace, _grouped(lines, lambda line: line.where), len(lines))
        if place.share >= LEAST_UNEXPLAINED
    ]
    named = {_function(line) for line in lines if line.where in {place.where for place in dear}}
    groups = _grouped([line for line in lines if _function(line) not in named], lambda line: " ".join(_function(line)))
    whole = [place for place in _dearest(trace, groups, len(groups)) if place.share >= LEAST_UNEXPLAINED]
    whole = [_without_source(place) for place in whole]
    return sorted(dear + whole, key=lambda place: -place.seconds)


def _in_loop(lines: Iterable[LineCost]) -> list[LineCost]:
    return [line for line in lines if line.phase not in OUTSIDE]


def _grouped(lines: Iterable[LineCost], key: Callable[[LineCost], str]) -> dict[str, list[LineCost]]:
    groups: dict[str, list[LineCost]] = {}
    for line in lines:
        groups.setdefault(key(line), []).append(line)
    return groups


def _dearest(trace: Trace, groups: dict[str, list[LineCost]], at_most: int) -> list[CodeLocation]:
    places = [_place(trace, lines) for lines in groups.values()]
    places = [place for place in places if place.share >= LEAST_SHARE]
    return sorted(places, key=lambda place: -place.seconds)[:at_most]


def _place(trace: Trace, lines: list[LineCost]) -> CodeLocation:
    first = max(lines, key=lambda line: line.seconds)
    phases: dict[str, float] = {}
    for line in lines:
        phases[line.phase] = phases.get(line.phase, 0.0) + line.seconds
    seconds = sum(phases.values())
    share = seconds / trace.loop_seconds if trace.loop_seconds > 0 else 0.0
    return CodeLocation(
        first.where, _function(first)[1], first.source.strip(), seconds, share, max(phases, key=phases.__getitem__)
    )


def _without_source(place: CodeLocation) -> CodeLocation:
    return CodeLocation(place.where, place.function, "", place.seconds, place.share, place.phase)


def _is_network(line: LineCost) -> bool:
    """In a forward, a backward or an optimizer; also where a network's `forward` was called directly."""
    return line.part in LEARNING_PARTS or (line.phase in (ACT, UPDATE) and line.function.endswith("forward"))


def _function(line: LineCost) -> tuple[str, str]:
    """(file, function); what a comprehension or a lambda does belongs to the function around it."""
    return line.where.rpartition(":")[0], _plain(line.function)


def _plain(function: str) -> str:
    return function.partition(".<locals>.<")[0]
