"""All that a run's files say, read so that a damaged or missing one costs its own part of the page and no more.

What the rows of a run say over its course: curves, and stretches with the seconds of every phase.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hotloop.core.errors import CheckpointError, HotloopError, RunError
from hotloop.core.timer import NOT_TRAINING
from hotloop.loop.journal import LANE
from hotloop.render.numbers import number_in, number_of
from hotloop.reporting.rows import COUNTERS as COUNTERS
from hotloop.reporting.rows import EventRows, Rows, read_rows
from hotloop.runs.checkpoint_files import newest_first
from hotloop.runs.directory import ABOUT, RESULT, Run, is_run
from hotloop.runs.listing import summarize
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
    summary = summarize(path)
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


MOST_POINTS, MOST_SLICES, MOST_NAMES = 400, 60, 40
RETURNS = ("mean_return", "std_return", "mean_length")


@dataclass(frozen=True)
class Series:
    """One quantity; all lists have one entry per point. `seconds` are those of training alone."""

    name: str
    env_steps: list[float]
    seconds: list[float]
    values: list[float]

    def __len__(self) -> int:
        return len(self.values)

    def along(self, against: str) -> list[float]:
        return self.env_steps if against == "env_steps" else self.seconds


@dataclass(frozen=True)
class PhaseInterval:
    """Between two rows: how far it reaches, and what each phase took in it."""

    start: float  # env steps
    end: float
    phases: dict[str, float]  # seconds

    @property
    def training_seconds(self) -> float:
        return sum(seconds for name, seconds in self.phases.items() if name not in NOT_TRAINING)


def series(rows: Rows, name: str, most: int = MOST_POINTS) -> Series:
    """From the rows that have a number of that name; many points are averaged in groups."""
    points = [
        (env_steps, training_seconds(row), value)
        for row in rows
        if (env_steps := number_in(row, "env_steps")) is not None and (value := number_in(row, name)) is not None
    ]
    size = max(1, -(-len(points) // most))
    groups = [points[first : first + size] for first in range(0, len(points), size)]
    # where a group ends is where its mean was known
    columns = [(group[-1][0], group[-1][1], sum(point[2] for point in group) / len(group)) for group in groups]
    return Series(name, *([column[place] for column in columns] for place in range(3)))


def names_of(rows: Rows, apart_from: Sequence[str]) -> list[str]:
    """The numbers that rows have, in the order in which they appear."""
    names: dict[str, None] = {}
    for row in rows:
        for name in row:
            if name not in apart_from and number_in(row, name) is not None:
                names[name] = None
    return list(names)[:MOST_NAMES]


def best_row(rows: Rows) -> dict[str, Any] | None:
    """The evaluation whose weights the run keeps: the highest mean return, the later where two are equal."""
    best: dict[str, Any] | None = None
    for row in rows:
        value = number_in(row, "mean_return")
        if value is None or number_in(row, "env_steps") is None:
            continue
        if best is None or value >= best["mean_return"]:
            best = row
    return best


def phases_of(row: Mapping[str, Any]) -> dict[str, float]:
    """Seconds by phase; a result has tables that hold them."""
    found = row.get("phases")
    phases = found if isinstance(found, dict) else {}
    pairs = ((name, value.get("seconds") if isinstance(value, dict) else value) for name, value in phases.items())
    return {name: max(0.0, number) for name, value in pairs if (number := number_of(value)) is not None}


def training_seconds(row: Mapping[str, Any]) -> float:
    """Without start-up, compilation, evaluation and checkpoints: what `hotloop compare` counts."""
    return sum(seconds for name, seconds in phases_of(row).items() if name not in NOT_TRAINING)


def stretches(rows: Rows, most: int = MOST_SLICES) -> list[PhaseInterval]:
    """From one row to the next that is further on, joined until there are few enough."""
    places: list[tuple[float, dict[str, float]]] = [(0.0, {})]
    for row in rows:
        env_steps, phases = number_in(row, "env_steps"), phases_of(row)
        if env_steps is None or not phases or env_steps < places[-1][0]:
            continue
        if env_steps == places[-1][0] and len(places) > 1:
            places.pop()
        places.append((env_steps, phases))
    size = max(1, -(-(len(places) - 1) // most))
    kept = [*places[:-1:size], places[-1]]
    return [_between(before, after) for before, after in zip(kept, kept[1:], strict=False) if after[0] > before[0]]


def _between(before: tuple[float, dict[str, float]], after: tuple[float, dict[str, float]]) -> PhaseInterval:
    phases = {name: max(0.0, seconds - before[1].get(name, 0.0)) for name, seconds in after[1].items()}
    return PhaseInterval(before[0], after[0], phases)
