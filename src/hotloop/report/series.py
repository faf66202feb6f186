"""What the rows of a run say over its course: curves, and stretches with the seconds of every phase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hotloop.loop.journal import NOT_TRAINING
from hotloop.report.numbers import number_in, number_of
from hotloop.report.rows import COUNTERS as COUNTERS
from hotloop.report.rows import Rows

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
class Stretch:
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


def stretches(rows: Rows, most: int = MOST_SLICES) -> list[Stretch]:
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


def _between(before: tuple[float, dict[str, float]], after: tuple[float, dict[str, float]]) -> Stretch:
    phases = {name: max(0.0, seconds - before[1].get(name, 0.0)) for name, seconds in after[1].items()}
    return Stretch(before[0], after[0], phases)
