"""All that a run's files say, read so that a damaged or missing one costs its own part of the page and no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hotloop.core.errors import CheckpointError, HotloopError, RunError
from hotloop.loop.journal import LANE
from hotloop.report.numbers import number_in
from hotloop.report.rows import EventRows, Rows, read_rows
from hotloop.runs.checkpoint_files import newest_first
from hotloop.runs.directory import ABOUT, RESULT, Run, is_run
from hotloop.runs.listing import summarise
from hotloop.runs.manifest import check_sizes, read_manifest

MOST_NOTES = 12


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
    thinned: str = ""  # how many rows there were, where not each of them is drawn

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
    events = _read_rows(run.events, notes)
    checkpoints = _read_checkpoints(run.checkpoints, notes)
    return RunFacts(
        run=run,
        label=summary.label,
        status=summary.status,
        settings=_or_noted(run.settings, notes),
        about=_or_noted(lambda: run.read_json(ABOUT), notes),
        lane=_or_noted(lambda: run.read_json(LANE), notes) if (path / LANE).exists() else {},
        result=_or_noted(lambda: run.read_json(RESULT), notes) if (path / RESULT).exists() else {},
        rows=events.rows,
        checkpoints=checkpoints,
        notes=tuple(_few(notes)),
        thinned=events.told(run.events.name),
    )


def _or_noted(read: Callable[[], dict[str, Any]], notes: list[str]) -> dict[str, Any]:
    try:
        return read()
    except HotloopError as error:
        notes.append(f"{error.message}; what it says is left out.")
        return {}


def _read_rows(path: Path, notes: list[str]) -> EventRows:
    """Every line that can be read; a last one without its end is one that is being written, or was cut off."""
    try:
        found = read_rows(path)
    except OSError as error:
        notes.append(f"{path.name} cannot be read ({error.strerror}): there are no curves.")
        return EventRows()
    if found.cut_off:
        notes.append(f"The last line of {path.name} (line {found.cut_off}) is cut off; it is left out.")
    if found.num_damaged:
        lines = ", ".join(map(str, found.damaged[:5])) + (" ..." if found.num_damaged > 5 else "")
        notes.append(f"{found.num_damaged} lines of {path.name} cannot be read and are left out (line {lines}).")
    return found


def _read_checkpoints(folder: Path, notes: list[str]) -> tuple[str, ...]:
    """By manifest and sizes, which is cheap; that every byte is right is found out by who loads one."""
    good = []
    try:
        paths = newest_first(folder)[::-1]
    except RunError as error:
        notes.append(f"The checkpoints cannot be read: {error.message}.")
        paths = []
    for path in paths:
        try:
            check_sizes(path, read_manifest(path))
            good.append(path.name)
        except (CheckpointError, RunError) as error:
            notes.append(f"Checkpoint {path.name} cannot be used: {error.message}.")
    return tuple(good)


def _few(notes: list[str]) -> list[str]:
    more = len(notes) - MOST_NOTES
    return [*notes[:MOST_NOTES], *([f"{more} more of the kind."] if more > 0 else [])]
