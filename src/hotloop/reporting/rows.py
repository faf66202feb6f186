"""The rows of a run's events.jsonl, however many there are: read once, in bounded memory, thinned out for drawing.

A page has some hundred points to a curve. Of each kind of row at most `MOST_ROWS` are held: beyond that, neighbors
are averaged two by two, as the curves do with what is left. The last row of a kind and the best evaluation are never
averaged. Of a very long file only some progress rows are parsed; where that is so, the page says it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from hotloop.render.numbers import number_in
from hotloop.runs.files import opened, parse_strict

MOST_ROWS = 4_000
LONGEST_LINE = 64 * 2**10
MOST_FIELDS = 200
PARSED_BYTES = 32 * 2**20
"""About what is parsed of a file of any length; its other lines are only skipped over, at the speed of the disk."""
MOST_EVALUATIONS = 20_000
COUNTERS = ("event", "env_steps", "updates", "episodes", "seconds", "env_steps_per_second", "phases", "schema", "time")
Rows = list[dict[str, Any]]


@dataclass(slots=True)
class _Held:
    """A row, or the mean of `weight` neighbors; `number` is its line."""

    number: int
    weight: int
    row: dict[str, Any]


@dataclass
class EventRows:
    """What was read: `rows` in their order, and what there is to say about it."""

    rows: Rows = field(default_factory=list)
    lines: int = 0
    parsed: int = 0
    averaged: bool = False
    damaged: list[int] = field(default_factory=list)  # the first lines that are no rows
    num_damaged: int = 0
    cut_off: int = 0  # the last line, where it has no end

    def told(self, name: str) -> str:
        """How much of the file the page was drawn from; empty where that is all of it."""
        if self.parsed + self.num_damaged + bool(self.cut_off) < self.lines:
            return (
                f"{name} has {self.lines:,} rows; {self.parsed:,} of them were read, evenly, and averaged to draw them."
            )
        return f"{name} has {self.lines:,} rows; neighbors were averaged to draw them." if self.averaged else ""


def read_rows(path: Path) -> EventRows:
    """Raises OSError where the file cannot be read."""
    found, kinds = EventRows(), {name: _Kind() for name in ("start", "progress", "evaluation", "")}
    with opened(path) as (descriptor, size):
        every = max(1, size // PARSED_BYTES)
        evaluations = 0
        for line, is_last in _lines(descriptor):
            found.lines += 1
            is_evaluation = line.startswith(b'{"event":"evaluation"')
            evaluations += is_evaluation
            if found.lines % every and not is_last and not (is_evaluation and evaluations <= MOST_EVALUATIONS):
                continue
            row = _row(line)
            if row is not None:
                found.parsed += 1
                kind = row.get("event")
                kinds[kind if isinstance(kind, str) and kind in kinds else ""].add(found.lines, row)
            elif line.endswith(b"\n"):
                found.num_damaged += 1
                found.damaged += [found.lines] if len(found.damaged) < 6 else []
            else:
                found.cut_off = found.lines
    held = sorted((one for kind in kinds.values() for one in kind.held), key=lambda one: one.number)
    found.rows = [one.row for one in held]
    found.averaged = any(one.weight > 1 for one in held)
    return found


def _lines(descriptor: int) -> Iterator[tuple[bytes, bool]]:
    """Each line, of one that is too long its beginning, and whether it is the last."""
    with os.fdopen(os.dup(descriptor), "rb") as stream:
        line = _line(stream)
        while line:
            after = _line(stream)
            yield line, not after
            line = after


def _line(stream: IO[bytes]) -> bytes:
    line = stream.readline(LONGEST_LINE)
    part = line
    while len(part) == LONGEST_LINE and not part.endswith(b"\n"):
        part = stream.readline(LONGEST_LINE)
        if part.endswith(b"\n"):
            return b"too long\n"
    return line


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = parse_strict(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict) or len(row) > MOST_FIELDS:
        return None
    return row


class _Kind:
    """The rows of one kind, at most `2 * MOST_ROWS`."""

    def __init__(self) -> None:
        self.held: list[_Held] = []
        self._best: _Held | None = None

    def add(self, number: int, row: dict[str, Any]) -> None:
        one = _Held(number, 1, row)
        self.held.append(one)
        if _score(one) >= _score(self._best):
            self._best = one
        if len(self.held) > 2 * MOST_ROWS:
            self.held = [*self._halved(), one]

    def _halved(self) -> Iterator[_Held]:
        """All but the last; those of which one is the best stay apart."""
        before = self.held[:-1]
        for one, other in zip(before[::2], before[1::2], strict=False):
            if self._best in (one, other):
                yield from (one, other)
            else:
                yield _averaged(one, other)
        if len(before) % 2:
            yield before[-1]


def _score(one: _Held | None) -> float:
    """Of an evaluation; minus infinity where it has none."""
    value = None if one is None else number_in(one.row, "mean_return")
    return float("-inf") if value is None else value


def _averaged(one: _Held, other: _Held) -> _Held:
    """Means of measurements, at the place and with the counters of the later row."""
    row, weight = dict(other.row), one.weight + other.weight
    for name in row.keys() - set(COUNTERS):
        before, after = number_in(one.row, name), number_in(row, name)
        if before is not None and after is not None:
            row[name] = (one.weight * before + other.weight * after) / weight
    return _Held(other.number, weight, row)
