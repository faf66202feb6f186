"""The rows of a run's events.jsonl, each once, however often the file is cut back and written again.

An event row as named numbers, and where a logger got to.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from hotloop.core.errors import RunError
from hotloop.runs import lock
from hotloop.runs.directory import LOCK, Run
from hotloop.runs.files import explained, opened, parse_strict

Row = dict[str, Any]
_CHUNK = 2**20
_MEMORY = 256
POLL_SECONDS, PATIENCE_SECONDS = 1.0, 10.0


class Tail:
    """`new_rows()` gives what was appended since it was asked last.

    A resumed run cuts its file back to a checkpoint and writes the rows after it again. Where the bytes before our
    place are no longer those we read, everything is read from the start; `Once` leaves out what was there before.
    """

    def __init__(self, run: Run) -> None:
        self._path = run.events
        self._offset = 0
        self._last = b""  # the bytes before it

    def new_rows(self) -> Iterator[Row]:
        if not self._path.exists():  # a run that is just being begun
            return
        with explained("read", self._path), opened(self._path) as (descriptor, _):
            if os.pread(descriptor, len(self._last), self._offset - len(self._last)) != self._last:
                self._offset, self._last = 0, b""
            rest = b""
            while chunk := os.pread(descriptor, _CHUNK, self._offset + len(rest)):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._offset += len(line) + 1
                    self._last = (self._last + line + b"\n")[-_MEMORY:]
                    yield self._row(line)

    def _row(self, line: bytes) -> Row:
        try:
            row = parse_strict(line)
        except (ValueError, RecursionError) as error:
            raise RunError(f"{self._path} has a line that is not valid JSON: {error}") from error
        if not isinstance(row, dict):
            raise RunError(f"{self._path} has a line that is not a JSON object")
        return row


class Once:
    """Lets each kind of row pass only beyond the env steps it has reached: a resumed run repeats itself exactly."""

    def __init__(self, reached: dict[str, int] | None = None) -> None:
        self.reached = dict(reached or {})

    def is_new(self, row: Row) -> bool:
        kind, env_steps = row.get("event"), row.get("env_steps")
        if not isinstance(kind, str) or not isinstance(env_steps, int):
            return False
        if env_steps <= self.reached.get(kind, -1):
            return False
        self.reached[kind] = env_steps
        return True


def rows_until_the_end(
    run: Run,
    *,
    follow: bool,
    patience: float = PATIENCE_SECONDS,
    poll: float = POLL_SECONDS,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[list[Row]]:
    """All rows there are, in lots; with `follow` also those to come, until the run is finished or nobody trains it.

    `patience`: seconds without a trainer before the run counts as stopped.
    """
    tail, alone = Tail(run), 0.0
    while True:
        # asked before the rows are read: what a run wrote before it ended is then read after
        ended, trained = run.finished, lock.is_held(run.path / LOCK)
        rows = list(tail.new_rows())
        yield rows
        alone = 0.0 if trained or rows else alone + poll
        if not follow or ended or alone >= patience:
            return
        pause(poll)


_SPEED = ("seconds", "env_steps_per_second")
_NOT_SCALARS = ("event", "env_steps", "phases", "time", "schema", "machine", *_SPEED)


class Logger(Protocol):
    """Something that shows numbers against env steps."""

    def write(self, scalars: Mapping[str, float], env_steps: int, wall_time: float) -> None: ...

    def flush(self) -> None: ...


def scalars_of(row: Row) -> dict[str, float]:
    """`progress/loss`, `evaluation/mean_return`, `speed/...`, `phases/...` in seconds; what is null is left out."""
    kind = row["event"]
    named = {f"{kind}/{name}": value for name, value in row.items() if name not in _NOT_SCALARS}
    if kind == "progress":
        named |= {f"speed/{name}": row.get(name) for name in _SPEED}
        phases = row.get("phases")
        named |= {f"phases/{name}": value for name, value in phases.items()} if isinstance(phases, dict) else {}
    return {name: float(value) for name, value in named.items() if _is_number(value)}


def result_row(result: Mapping[str, Any]) -> Row:
    """The end of a run as one more row."""
    best, last = result.get("evaluation") or {}, result.get("final_evaluation") or {}
    numbers = {f"best/{name}": value for name, value in best.items()}
    numbers |= {f"last/{name}": value for name, value in last.items()}
    return {"event": "result", "env_steps": result.get("env_steps"), "seconds": result.get("seconds"), **numbers}


class Feed:
    """From rows to a logger: each row once, at the time it was written."""

    def __init__(self, logger: Logger, once: Once) -> None:
        self._logger, self._once = logger, once
        self._began: float | None = None
        self.rows = self.scalars = 0

    def take(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if row.get("event") == "start" and _is_number(row.get("time")):
                self._began = float(row["time"])
            elif self._once.is_new(row):
                named = scalars_of(row)
                self._logger.write(named, row["env_steps"], self._wall_time(row))
                self.rows += 1
                self.scalars += len(named)
        self._logger.flush()

    def _wall_time(self, row: Row) -> float:
        seconds = row.get("seconds")
        if self._began is None or not isinstance(seconds, int | float):
            return time.time()
        return self._began + seconds


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
