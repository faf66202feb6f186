"""From sampled stacks to costs of the user's own lines, with what the syntax of each line shows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import CodeType
from typing import Any

from hotloop.doctor.script.places import DOCTOR, USER, Places, line_of
from hotloop.doctor.script.sampling import Stack
from hotloop.doctor.script.syntax import Syntax, read_syntax
from hotloop.doctor.trace import LineCost, StackCost

LEAST_SHARE = 0.0005
MOST_STACKS = 2_000
WAITING_FILES = tuple(
    name.replace("/", os.sep)
    for name in ("multiprocessing/connection.py", "selectors.py", "multiprocessing/popen_fork.py", "queue.py")
)


def fit_to_phases(charged: Mapping[tuple[str, Stack], float], phases: Mapping[str, float]) -> dict[Any, float]:
    """What was sampled in each phase made to sum to the time that was measured: samples tell how it divides."""
    sampled: dict[str, float] = {}
    for (phase, _), seconds in charged.items():
        sampled[phase] = sampled.get(phase, 0.0) + seconds
    scale = {phase: phases.get(phase, seconds) / max(seconds, 1e-9) for phase, seconds in sampled.items()}
    return {key: seconds * scale[key[0]] for key, seconds in charged.items()}


def line_costs(charged: Mapping[tuple[str, Stack], float], places: Places) -> list[LineCost]:
    """Each sample goes to the innermost line of the user's own, itself and all it called."""
    costs: dict[tuple[str, CodeType, int], float] = {}
    for (phase, stack), seconds in charged.items():
        for code, instruction in stack:
            if places.whose(code) == USER:
                line = line_of(code, instruction)
                costs[phase, code, line] = costs.get((phase, code, line), 0.0) + seconds
                break
    least = LEAST_SHARE * sum(charged.values())
    files: dict[str, Syntax] = {}
    rows = []
    for (phase, code, line), seconds in sorted(costs.items(), key=lambda item: -item[1]):
        if seconds < least:
            continue
        syntax = files.setdefault(code.co_filename, read_syntax(Path(code.co_filename)))
        rows.append(
            LineCost(
                where=places.where(code.co_filename, line),
                function=code.co_qualname,
                source=syntax.source(line),
                phase=phase,
                seconds=seconds,
                features=syntax.features(line),
            )
        )
    return rows


def stack_costs(charged: Mapping[tuple[str, Stack], float], places: Places) -> list[StackCost]:
    costs: dict[tuple[str, tuple[str, ...]], float] = {}
    for (phase, stack), seconds in charged.items():
        frames = tuple(places.frame(*frame) for frame in reversed(list(_own(stack, places))))
        costs[phase, frames] = costs.get((phase, frames), 0.0) + seconds
    dearest = sorted(costs.items(), key=lambda item: -item[1])[:MOST_STACKS]
    return [StackCost(phase=phase, frames=frames, seconds=seconds) for (phase, frames), seconds in dearest]


def waiting_seconds(charged: Mapping[tuple[str, Stack], float]) -> float:
    """Time in which the loop only waited for another process or thread."""
    return sum(seconds for (_, stack), seconds in charged.items() if _waits(stack))


def _waits(stack: Stack) -> bool:
    for code, _ in stack[:4]:
        if code.co_filename.endswith(WAITING_FILES) or code.co_qualname in ("Condition.wait", "Connection.recv"):
            return True
    return False


def _own(stack: Stack, places: Places) -> Iterable[tuple[CodeType, int]]:
    """Without the doctor's own frames and what stands below the script."""
    for code, line in stack:
        if places.whose(code) != DOCTOR and not code.co_filename.startswith("<frozen importlib"):
            yield code, line
