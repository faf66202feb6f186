"""A run in its caller's hands: row by row, or to its end."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

from hotloop.core.errors import RunError
from hotloop.core.timer import PhaseTimer
from hotloop.loop.contract import ProgressRow
from hotloop.loop.running import Rows

CALLER = "caller"
"""The phase in which a row is in the caller's hands: his time, not training's."""
_under_way: list[int] = []  # ids: a reference would keep a run alive that nobody iterates any more


def to_the_end(rows: Rows) -> dict[str, Any]:
    """The result of a run whose rows nobody looks at."""
    while True:
        try:
            next(rows)
        except StopIteration as end:
            return end.value


class Iteration:
    """The log rows of a run, as it makes them: training goes on while the next row is waited for.

    Leaving the loop early ends the run as Ctrl-C would, saved and resumable. `result` is what `hotloop.train` returns,
    once the rows came to their end.
    """

    def __init__(self, rows: Iterator[ProgressRow], timer: PhaseTimer, result: dict[str, Any] | None = None) -> None:
        self._rows, self._caller = rows, timer.phase(CALLER)
        self._handed_out = self._started = False
        self.result = result
        self.run: Path | None = None
        """The run's directory, once there is a row."""

    def __iter__(self) -> Iteration:
        return self

    def __next__(self) -> ProgressRow:
        self._require_last()
        self._take_back()
        if not self._started:
            self._started = True
            _under_way.append(id(self))
        try:
            row = next(self._rows)
        except StopIteration as end:
            self.result = self.result or end.value
            self._ended()
            raise
        except BaseException:
            self._ended()
            raise
        self._caller.__enter__()
        self._handed_out, self.run = True, row.run
        return row

    def _take_back(self) -> None:
        if self._handed_out:
            self._caller.__exit__()
            self._handed_out = False

    def close(self) -> None:
        """End the run here; where it ended already, nothing happens. The end of a `with` block closes too."""
        self._require_last()
        self._take_back()
        if isinstance(self._rows, Generator):
            self._rows.close()
        self._ended()

    def __del__(self) -> None:
        self._ended()  # the generator closes itself

    def _ended(self) -> None:
        if id(self) in _under_way:
            _under_way.remove(id(self))

    def _require_last(self) -> None:
        """Each run sets threads and signal handlers and puts back what it found: the last to begin is first to end."""
        if id(self) in _under_way[:-1]:
            raise RunError(
                "another run was begun after this one and has not ended", "end it first: `break`, `close()` or `with`"
            )

    def __enter__(self) -> Iteration:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
