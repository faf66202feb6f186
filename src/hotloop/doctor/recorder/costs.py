"""From sampled stacks to costs of the user's own lines, of a library's lines beneath them, and of waiting."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType
from typing import TYPE_CHECKING, Any

from .lines import read_syntax
from .order import OUTSIDE, RECORDING, UPDATE, WAIT
from .places import DOCTOR, USER, SourcePlaces, line_of, qualified_name

if TYPE_CHECKING:
    from .places import Stack

    Charged = Mapping[tuple[str, str, Stack], float]
    """Seconds by phase, part of the update, and stack, innermost frame first."""

LEAST_SHARE = 0.0005
MOST_STACKS = 2_000
WAITING_FILES = tuple(
    name.replace("/", os.sep)
    for name in ("multiprocessing/connection.py", "selectors.py", "multiprocessing/popen_fork.py", "queue.py")
)
SLEEPING = re.compile(r"\b(sleep|recv|wait|select|poll|acquire|result)\(|(?<![\"'])(?<!path)\.join\(")
"""On the innermost line, where the thread used no processor: it waits by this call. Texts and paths are joined too."""
STACK_TEXTS, STACK_FILE = ("format_stack", "extract_stack"), os.sep + "traceback.py"
LEAST_WAITING = 0.02
"""Of a phase without processor time: less is not called waiting."""
A_CALL = 0.5
"""Of the loop on one line of the user's own: it only calls what takes the time."""


def fit_to_phases(charged: Charged, phases: Mapping[str, float]) -> dict[Any, float]:
    """What was sampled in each phase made to sum to the time that was measured: samples tell how it divides."""
    sampled: dict[str, float] = {}
    for (phase, _, _), seconds in charged.items():
        sampled[phase] = sampled.get(phase, 0.0) + seconds
    scale = {phase: phases.get(phase, seconds) / max(seconds, 1e-9) for phase, seconds in sampled.items()}
    return {key: seconds * scale[key[0]] for key, seconds in charged.items()}


def split_waiting(
    charged: Charged, phases: dict[str, float], processor: Mapping[str, float], update_parts: dict[str, float]
) -> dict[Any, float]:
    """Stacks that wait by what they call become the phase `wait`, as far as their phase used no processor; `phases` and
    `update_parts` are changed accordingly."""
    idle = {name: phases[name] - used for name, used in processor.items() if name in phases}
    waits = {key: seconds for key, seconds in charged.items() if key[0] not in OUTSIDE and waits_by_itself(key[2])}
    asleep: dict[str, float] = {}
    for (phase, _, _), seconds in waits.items():
        asleep[phase] = asleep.get(phase, 0.0) + seconds
    parts = {
        phase: min(1.0, idle.get(phase, 0.0) / seconds)
        for phase, seconds in asleep.items()
        if idle.get(phase, 0.0) > LEAST_WAITING * phases[phase] and seconds > 0
    }
    found: dict[Any, float] = {}
    for key, seconds in charged.items():
        phase, part, stack = key
        waited = seconds * parts.get(phase, 0.0) if key in waits else 0.0
        if waited:
            found[WAIT, "", stack] = found.get((WAIT, "", stack), 0.0) + waited
            phases[phase] -= waited
            if part in update_parts:
                update_parts[part] -= waited
            phases[WAIT] = phases.get(WAIT, 0.0) + waited
        if seconds > waited:
            found[key] = seconds - waited
    return found


def split_recording(
    charged: Charged,
    phases: dict[str, float],
    processor: dict[str, float],
    update_parts: dict[str, float],
    places: SourcePlaces,
) -> dict[Any, float]:
    """What is done for every frame of the stack (its text, where anomaly detection wants one for each operation) is
    done for frames of ours too: so much of it becomes the recording's; the rest is changed accordingly."""
    found: dict[Any, float] = dict(charged)
    sampled: dict[tuple[str, str], float] = {}
    ours: dict[tuple[str, str], float] = {}
    for key, seconds in charged.items():
        own = seconds * _part_of_ours(key[2], places) if key[0] not in OUTSIDE else 0.0
        found[key] -= own
        sampled[key[:2]] = sampled.get(key[:2], 0.0) + seconds
        ours[key[:2]] = ours.get(key[:2], 0.0) + own
    for (phase, part), own in ours.items():
        if not own:
            continue
        measured = phase == UPDATE and part in update_parts
        lost = own / sampled[phase, part] * update_parts[part] if measured else own
        computed = lost * processor.get(phase, 0.0) / max(phases[phase], 1e-9)
        if measured:
            computed = own / sampled[phase, part] * processor.get(part, 0.0)
            update_parts[part] -= lost
            processor[part] = processor.get(part, 0.0) - computed
        phases[phase] -= lost
        phases[RECORDING] = phases.get(RECORDING, 0.0) + lost
        processor[phase] = processor.get(phase, 0.0) - computed
    return found


def _part_of_ours(stack: Stack, places: SourcePlaces) -> float:
    """Of the frames that a text of the stack is made of; 0 where none is made."""
    making = [
        depth
        for depth, (code, _) in enumerate(stack)
        if code.co_name in STACK_TEXTS and code.co_filename.endswith(STACK_FILE)
    ]
    frames = [places.whose(code) for code, _ in stack[making[-1] + 1 :]] if making else []
    return frames.count(DOCTOR) / len(frames) if frames else 0.0


def line_costs(charged: Charged, places: SourcePlaces) -> list[dict[str, Any]]:
    """Each sample goes to the innermost line of the user's own, itself and all it called."""
    costs: dict[tuple[str, str, CodeType, int], float] = {}
    for (phase, part, stack), seconds in charged.items():
        for code, instruction in stack:
            if places.whose(code) == USER:
                key = (phase, part, code, line_of(code, instruction))
                costs[key] = costs.get(key, 0.0) + seconds
                break
    return _rows(costs, places, sum(charged.values()))


def lines_beneath(charged: Charged, places: SourcePlaces) -> list[dict[str, Any]]:
    """Where one line of the user's own holds most of the loop, and a library runs it: the library's innermost lines; of
    the one beneath it, where that library only calls another's loop."""
    package, caller = _library_loop(charged, places)
    beneath = _library_loop(charged, places, package) if package else ("", None)
    package, caller = beneath if beneath[0] else (package, caller)
    costs: dict[tuple[str, str, CodeType, int], float] = {}
    for (phase, part, stack), seconds in charged.items():
        for code, instruction in stack:
            if places.whose(code) == USER and (not package or (code, line_of(code, instruction)) != caller):
                break  # the user's own code again, called back by the library: not beneath
            if package and _package(code, places) == package:
                key = (phase, part, code, line_of(code, instruction))
                costs[key] = costs.get(key, 0.0) + seconds
                break
    return _rows(costs, places, sum(charged.values())) if package else []


def _library_loop(charged: Charged, places: SourcePlaces, above: str = "") -> tuple[str, tuple[CodeType, int] | None]:
    """The package that runs the loop, and the line of the user's, or of the package above it, that calls it; ("", None)
    where the user's own code runs it."""
    costs: dict[tuple[str, tuple[CodeType, int]], float] = {}
    for (phase, _, stack), seconds in charged.items():
        found = _innermost_own(stack, places, above) if phase not in OUTSIDE else None
        if found is not None:
            costs[found] = costs.get(found, 0.0) + seconds
    (package, caller), seconds = max(costs.items(), key=lambda item: item[1], default=(("", None), 0.0))
    total = sum(seconds for (phase, _, _), seconds in charged.items() if phase not in OUTSIDE)
    many_phases = {phase for (phase, _, stack) in charged if _innermost_own(stack, places, above) == (package, caller)}
    runs_it = seconds > A_CALL * total and len(many_phases - set(OUTSIDE)) >= 3 and package not in ("", "torch")
    return (package, caller) if runs_it else ("", None)


def _innermost_own(stack: Stack, places: SourcePlaces, above: str) -> tuple[str, tuple[CodeType, int]] | None:
    """The package called from the innermost line of the user's own, or of the package `above`, and that line."""
    called = ""
    for code, instruction in stack:
        whose = places.whose(code)
        package = "" if whose == DOCTOR else _package(code, places)
        if whose == USER or (above and package == above):
            return (called, (code, line_of(code, instruction))) if called else None
        called = package or called
    return None


def _package(code: CodeType, places: SourcePlaces) -> str:
    return places.name(code.co_filename).replace(os.sep, "/").partition("/")[0]


def _rows(
    costs: Mapping[tuple[str, str, CodeType, int], float], places: SourcePlaces, whole: float
) -> list[dict[str, Any]]:
    rows = []
    for (phase, part, code, line), seconds in sorted(costs.items(), key=lambda item: -item[1]):
        if seconds < LEAST_SHARE * whole:
            continue
        syntax = read_syntax(code.co_filename)
        rows.append(
            dict(
                where=places.where(code.co_filename, line),
                function=qualified_name(code),
                source=syntax.source(line),
                phase=phase,
                seconds=seconds,
                features=syntax.features(line) if places.whose(code) == USER else (),
                part=part,
            )
        )
    return rows


def stack_costs(charged: Charged, places: SourcePlaces) -> list[dict[str, Any]]:
    costs: dict[tuple[str, str, tuple[str, ...]], float] = {}
    for (phase, part, stack), seconds in charged.items():
        frames = tuple(places.frame(*frame) for frame in reversed(list(_own(stack, places))))
        costs[phase, part, frames] = costs.get((phase, part, frames), 0.0) + seconds
    dearest = sorted(costs.items(), key=lambda item: -item[1])[:MOST_STACKS]
    return [dict(phase=one[0], part=one[1], frames=one[2], seconds=seconds) for one, seconds in dearest]


def loops_around(charged: Charged, places: SourcePlaces) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Of the user's own lines in stacks, where the loops around them begin; and what stands on both."""
    loops: dict[str, list[str]] = {}
    sources: dict[str, str] = {}
    for file, line in _own_lines(charged, places):
        syntax = read_syntax(file)
        heads = syntax.loops(line)
        loops[places.where(file, line)] = [places.where(file, head) for head in heads]
        for one in (line, *heads):
            sources[places.where(file, one)] = syntax.source(one)
    return loops, sources


def _own_lines(charged: Charged, places: SourcePlaces) -> Iterator[tuple[str, int]]:
    seen: set[tuple[str, int]] = set()
    for _, _, stack in charged:
        for code, instruction in stack:
            place = (code.co_filename, line_of(code, instruction))
            if places.whose(code) == USER and place not in seen:
                seen.add(place)
                yield place


def waiting_seconds(charged: Charged) -> float:
    """Time in which the loop only waited for another process or thread."""
    return sum(seconds for (_, _, stack), seconds in charged.items() if waits_for_others(stack))


def waits_for_others(stack: Stack) -> bool:
    for code, _ in stack[:4]:
        if code.co_filename.endswith(WAITING_FILES) or qualified_name(code) in ("Condition.wait", "Connection.recv"):
            return True
    return False


def waits_by_itself(stack: Stack) -> bool:
    """For others, or in a call of its innermost line that sleeps."""
    if waits_for_others(stack):
        return True
    if not stack:
        return False
    code, instruction = stack[0]
    return bool(SLEEPING.search(read_syntax(code.co_filename).source(line_of(code, instruction))))


def _own(stack: Stack, places: SourcePlaces) -> Iterable[tuple[CodeType, int]]:
    """Without the doctor's own frames and what stands below the script."""
    for code, line in stack:
        if places.whose(code) != DOCTOR and not code.co_filename.startswith("<frozen importlib"):
            yield code, line
