"""Logs of other programs as rows of numbers: Stable-Baselines3's monitor and progress files, any CSV, JSON lines, and
TensorBoard's event files. Read-only; anybody may have written them, so sizes are bounded and damage ends a file."""

from __future__ import annotations

import csv
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hotloop.core.errors import RunError
from hotloop.render.numbers import number_of
from hotloop.runs.files import read_file
from hotloop.runs.tensorboard import PREFIX, event_files, read_scalars

LogKind = Literal["monitor", "progress", "csv", "jsonl", "tensorboard"]
Event = Literal["progress", "evaluation"]
Row = tuple[Event, dict[str, float]]
MOST_COLUMNS = 200
"""Of one kind of row; what a file names beyond them is left out."""
MOST_BYTES, MOST_ROWS = 64 * 2**20, 1_000_000
STEPS = (
    *("env_steps", "time/total_timesteps", "total_timesteps", "timesteps", "global_step", "Step", "step", "steps"),
    *("frames", "iteration", "episode", "epoch"),
)
"""Columns that say how far a run was, the surest first; without one of them rows are counted."""
SECONDS = ("seconds", "time/time_elapsed", "time_elapsed", "Wall time", "wall_time", "t", "time")
RETURNS = {
    "rollout/ep_rew_mean": "mean_return",
    "charts/episodic_return": "mean_return",
    "train/mean_return": "mean_return",
    "progress/mean_return": "mean_return",
    "r": "mean_return",
}
JUDGED = {"eval/mean_reward": "mean_return", "evaluation/mean_return": "mean_return"}
"""What other programs call the return, in training and in evaluations."""


@dataclass(frozen=True)
class Log:
    """Every row has `env_steps` and `seconds`, the number of the row where the file does not tell (`timed`, `placed`).

    `began` is Unix time, `env` the env's name: None where the file does not say.
    """

    rows: Sequence[Row]
    began: float | None = None
    env: str | None = None
    placed: bool = True
    timed: bool = True


def kind_by_name(name: str) -> LogKind | None:
    """Nothing is opened: whoever reads the file finds out whether it is what its name says."""
    if name.startswith(PREFIX):
        return "tensorboard"
    if name == "monitor.csv" or name.endswith(".monitor.csv"):
        return "monitor"
    if name == "progress.csv":
        return "progress"
    if name.endswith(".csv") and not name.startswith("."):
        return "csv"
    if name.endswith((".jsonl", ".ndjson")) or name == "progress.json":  # Stable-Baselines3's is lines, too
        return "jsonl"
    return None


def read_log(path: Path) -> Log:
    """A file, or a folder of TensorBoard's event files, which are one log."""
    kind = ("tensorboard" if event_files(path) else None) if path.is_dir() else kind_by_name(path.name)
    if kind is None:
        raise RunError(
            f"{path} is no log that can be read",
            "CSV, JSON lines (.jsonl), Stable-Baselines3's monitor.csv and progress.csv, and TensorBoard's event files",
        )
    return READERS[kind](path)


def read_monitor(path: Path) -> Log:
    """Stable-Baselines3's `Monitor`: a row for each episode with its return `r`, length `l` and time `t`."""
    lines, began, env = _lines(path), None, None
    if lines and lines[0].startswith("#"):
        began, env = _monitor_head(lines[0][1:])
        lines = lines[1:]
    return Log(list(_monitor_rows(lines)), began, env)


def _monitor_rows(lines: Sequence[str]) -> Iterator[Row]:
    env_steps = 0.0
    for row in _table(lines):
        env_steps += row.get("l", 0.0)
        known = {"r": row.get("r"), "episode_length": row.get("l"), "mean_return": row.get("r")}
        more = {name: value for name, value in row.items() if name not in ("r", "l", "t")}
        every = {"env_steps": env_steps, "seconds": row.get("t"), **known, **more}
        yield "progress", {name: value for name, value in every.items() if value is not None}


def _monitor_head(text: str) -> tuple[float | None, str | None]:
    try:
        head = json.loads(text)
    except (ValueError, RecursionError):
        return None, None
    if not isinstance(head, dict):
        return None, None
    env = head.get("env_id")
    return number_of(head.get("t_start")), env[:100] if isinstance(env, str) else None


def read_csv(path: Path) -> Log:
    lines = _lines(path)
    while lines and lines[0].startswith("#"):
        lines = lines[1:]
    return _plain(_table(lines))


def read_json_lines(path: Path) -> Log:
    """A JSON object a line; tables within it are named with a slash (`eval/mean_reward`). Other lines are left out."""
    return _plain(itertools.islice(_objects(_lines(path)), MOST_ROWS))


def _objects(lines: Iterable[str]) -> Iterator[dict[str, float]]:
    for line in lines:
        try:
            table = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(table, dict):
            numbers = dict(itertools.islice(_flat(table), MOST_COLUMNS))
            if numbers:
                yield numbers


def _flat(table: Mapping[str, Any], above: str = "", depth: int = 0) -> Iterator[tuple[str, float]]:
    for name, value in table.items():
        full = f"{above}{name}"[:200]
        if isinstance(value, dict) and depth < 4:
            yield from _flat(value, f"{full}/", depth + 1)
        elif (number := _plausible(number_of(value))) is not None:
            yield full, number


def _plain(table: Iterable[dict[str, float]]) -> Log:
    rows: list[Row] = []
    placed = timed = True
    for count, row in enumerate(table, 1):
        env_steps, seconds = ([row[name] for name in names if name in row] for names in (STEPS, SECONDS))
        placed, timed = placed and bool(env_steps), timed and bool(seconds)
        place = {"env_steps": (env_steps or [float(count)])[0], "seconds": (seconds or [float(count)])[0]}
        rows += _by_event(place, row)
    return Log(rows, placed=placed, timed=timed)


def _by_event(place: Mapping[str, float], row: Mapping[str, float]) -> Iterator[Row]:
    """A table may hold training and evaluations in one row; each gets its own, with the return by one name."""
    for event, aliases in (("progress", RETURNS), ("evaluation", JUDGED)):
        numbers = {name: value for name, value in row.items() if event_of(name) == event}
        if numbers:
            named = {alias: numbers[name] for name, alias in aliases.items() if name in numbers}
            yield event, {**place, **numbers, **named}  # type: ignore[misc]


def event_of(column: str) -> Event:
    return "evaluation" if column.startswith(("eval/", "evaluation/")) else "progress"


def read_tensorboard(path: Path) -> Log:
    """One event file, or all of a folder as one log: a row for each step, with what was written for it."""
    files = event_files(path) if path.is_dir() else [path]
    found = [one for file in files for one in read_scalars(file)]
    began = min((one.time for one in found if one.time > 0), default=None)
    rows: dict[tuple[Event, int], dict[str, float]] = {}
    for one in found:
        event = event_of(one.tag)
        place = {"env_steps": float(one.step), "seconds": max(0.0, one.time - (began or 0.0))}
        row = rows.setdefault((event, one.step), place)
        if math.isfinite(one.value) and len(row) < MOST_COLUMNS:
            row[one.tag] = one.value
            alias = (JUDGED if event == "evaluation" else RETURNS).get(one.tag)
            if alias:
                row[alias] = one.value
    return Log([(event, rows[event, step]) for event, step in sorted(rows)], began)


READERS: Mapping[LogKind, Callable[[Path], Log]] = {
    "monitor": read_monitor,
    "progress": read_csv,
    "csv": read_csv,
    "jsonl": read_json_lines,
    "tensorboard": read_tensorboard,
}


def _lines(path: Path) -> list[str]:
    return read_file(path, MOST_BYTES).decode("utf-8", "replace").replace("\0", "").splitlines()


def _table(lines: Sequence[str]) -> Iterator[dict[str, float]]:
    """Each row's numbers by the names in the first line; cells that are none are left out."""
    try:
        rows = csv.reader(lines)
        names = [name.strip()[:200] for name in next(rows, [])][:MOST_COLUMNS]
        for row in itertools.islice(rows, MOST_ROWS):
            numbers = ((name, _number(cell)) for name, cell in zip(names, row, strict=False) if name)
            found = {name: value for name, value in numbers if value is not None}
            if found:
                yield found
    except csv.Error:
        return


def _number(cell: str) -> float | None:
    try:
        return _plausible(float(cell))
    except ValueError:
        return None


def _plausible(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) and abs(value) < 1e150 else None
