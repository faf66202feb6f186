"""An event row as named numbers, and where a logger got to."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from hotloop.export.follow import Once, Row

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
