"""All that a run's files say, read so that a damaged or missing one costs its own part of the page and no more."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hotloop.core.errors import CheckpointError, HotloopError, RunError
from hotloop.loop.journal import LANE
from hotloop.report.numbers import number_in
from hotloop.runs.directory import ABOUT, RESULT, Run, is_run
from hotloop.runs.listing import summarise
from hotloop.runs.manifest import check_sizes, is_part_name, read_manifest

MOST_NOTES = 12
_LONGEST_LINE = 16 * 2**20
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class RunFacts:
    """What is missing is empty, and `notes` say so."""

    run: Run
    label: str
    status: str  # "finished", "running" or "stopped"
    settings: dict[str, Any]
    about: dict[str, Any] = field(default_factory=dict)
    lane: dict[str, Any] = field(default_factory=dict)
    result: dict[str, Any] = field(default_factory=dict)
    rows: Rows = field(default_factory=list)
    checkpoints: tuple[str, ...] = ()  # names of those whose files are all there, oldest first
    notes: tuple[str, ...] = ()

    def rows_of(self, event: str) -> Rows:
        return [row for row in self.rows if row.get("event") == event]

    def latest(self, name: str) -> float | None:
        """A counter as it stands: from the result, or from the last row that has it."""
        found = (number_in(row, name) for row in [self.result, *reversed(self.rows_of("progress")), *self.rows[::-1]])
        return next((value for value in found if value is not None), None)

    @property
    def env_steps(self) -> int:
        steps = [number_in(row, "env_steps") for row in [self.result, *self.rows]]
        return int(max((step for step in steps if step is not None), default=0))

    @property
    def machine(self) -> dict[str, Any]:
        found = next((row.get("machine") for row in self.rows_of("start")), None)
        return found if isinstance(found, dict) else {}


def read_facts(path: Path) -> RunFacts:
    """Raises RunError only where there is no run at all."""
    run = Run(path) if is_run(path) else Run.open(path)
    summary = summarise(path)
    notes: list[str] = []
    rows = _read_rows(run.events, notes)
    checkpoints = _read_checkpoints(run.checkpoints, notes)
    return RunFacts(
        run=run,
        label=summary.label,
        status=summary.status,
        settings=_or_noted(run.settings, notes),
        about=_or_noted(lambda: run.read_json(ABOUT), notes),
        lane=_or_noted(lambda: run.read_json(LANE), notes) if (path / LANE).exists() else {},
        result=_or_noted(run.result, notes) if (path / RESULT).exists() else {},
        rows=rows,
        checkpoints=checkpoints,
        notes=tuple(_few(notes)),
    )


def _or_noted(read: Callable[[], dict[str, Any]], notes: list[str]) -> dict[str, Any]:
    try:
        return read()
    except HotloopError as error:
        notes.append(f"{error.message}; what it says is left out.")
        return {}


def _read_rows(path: Path, notes: list[str]) -> Rows:
    """Every line that can be read; a last one without its end is one that is being written, or was cut off."""
    rows: Rows = []
    damaged: list[int] = []
    try:
        with path.open("rb") as stream:
            number = 0
            while line := stream.readline(_LONGEST_LINE):
                number += 1
                row = _row(line)
                if row is not None:
                    rows.append(row)
                elif line.endswith(b"\n"):
                    damaged.append(number)
                else:
                    notes.append(f"The last line of {path.name} (line {number}) is cut off; it is left out.")
    except OSError as error:
        notes.append(f"{path.name} cannot be read ({error.strerror}): there are no curves.")
    if damaged:
        told = ", ".join(map(str, damaged[:5])) + (" ..." if len(damaged) > 5 else "")
        notes.append(f"{len(damaged)} lines of {path.name} cannot be read and are left out (line {told}).")
    return rows


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _read_checkpoints(folder: Path, notes: list[str]) -> tuple[str, ...]:
    """By manifest and sizes, which is cheap; that every byte is right is found out by who loads one."""
    good = []
    try:
        paths = sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        notes.append(f"The folder of the checkpoints cannot be read ({error.strerror}).")
        paths = []
    for path in paths:
        if not path.is_dir() or not is_part_name(path.name):
            continue
        try:
            check_sizes(path, read_manifest(path))
            good.append(path.name)
        except (CheckpointError, RunError) as error:
            notes.append(f"Checkpoint {path.name} cannot be used: {error.message}.")
    return tuple(good)


def _few(notes: list[str]) -> list[str]:
    more = len(notes) - MOST_NOTES
    return [*notes[:MOST_NOTES], *([f"{more} more of the kind."] if more > 0 else [])]
