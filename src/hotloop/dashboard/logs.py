"""Logs of other programs that are tables: Stable-Baselines3's monitor and progress files, any CSV with numbers; and
saved reports of the doctor. Read-only, and anew whenever the file changed."""

from __future__ import annotations

import csv
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hotloop.core.errors import RunError
from hotloop.dashboard.columns import MOST_COLUMNS, Columns
from hotloop.dashboard.index import Entry
from hotloop.dashboard.reading import Look, note_latest, stat_of
from hotloop.dashboard.tensorboard import JUDGED, RETURNS
from hotloop.render.numbers import number_of
from hotloop.runs.files import read_file, read_json_table

MOST_BYTES, MOST_ROWS = 64 * 2**20, 1_000_000
STEPS = (
    *("env_steps", "time/total_timesteps", "total_timesteps", "timesteps", "global_step", "Step", "step", "steps"),
    *("frames", "iteration", "episode", "epoch"),
)
"""Columns that say how far a run was, the surest first; without one of them rows are counted."""
SECONDS = ("seconds", "time/time_elapsed", "time_elapsed", "Wall time", "wall_time", "t", "time")
MOST_FINDINGS = 30


def look_at_monitor(path: Path, entry: Entry | None) -> Look | None:
    """Stable-Baselines3's `Monitor`: a row for each episode with its return `r`, length `l` and time `t`."""
    return _look(path, entry, _monitor_rows)


def look_at_csv(path: Path, entry: Entry | None) -> Look | None:
    return _look(path, entry, _plain_rows)


def _look(path: Path, entry: Entry | None, read: Any) -> Look | None:
    stats = {path.name: stat_of(path)}
    if entry is not None and entry.stamp.get("stats") == stats:
        return None
    columns = {"progress": Columns(), "evaluation": Columns()}
    about: dict[str, Any] = {"label": path.name, "last": {}, "best": None, "time": None}
    for event, row in read(_lines(path), about):
        columns[event].add(row.items())
    if about["time"] is None and stats[path.name] is not None:
        about["time"] = stats[path.name][2] / 1e9  # type: ignore[index]
    note_latest(about, columns)
    return Look({"stats": stats}, about, True, columns)


def _lines(path: Path) -> list[str]:
    return read_file(path, MOST_BYTES).decode("utf-8", "replace").replace("\0", "").splitlines()


Rows = Iterator[tuple[str, dict[str, float]]]


def _monitor_rows(lines: list[str], about: dict[str, Any]) -> Rows:
    if lines and lines[0].startswith("#"):
        about.update(_monitor_head(lines[0][1:]))
        lines = lines[1:]
    env_steps = 0.0
    for row in _numbers(lines):
        env_steps += row.get("l", 0.0)
        known = {"r": row.get("r"), "episode_length": row.get("l"), "mean_return": row.get("r")}
        more = {name: value for name, value in row.items() if name not in ("r", "l", "t")}
        place = {"env_steps": env_steps, "seconds": row.get("t")}
        every = {**place, **known, **more}
        yield "progress", {name: value for name, value in every.items() if value is not None}


def _monitor_head(text: str) -> dict[str, Any]:
    try:
        head = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(head, dict):
        return {}
    env = head.get("env_id")
    return {"time": number_of(head.get("t_start")), "env": env[:100] if isinstance(env, str) else None}


def _plain_rows(lines: list[str], about: dict[str, Any]) -> Rows:
    while lines and lines[0].startswith("#"):
        lines = lines[1:]
    for count, row in enumerate(_numbers(lines), 1):
        place = {
            "env_steps": next((row[name] for name in STEPS if name in row), float(count)),
            "seconds": next((row[name] for name in SECONDS if name in row), float(count)),
        }
        for event, names in (("progress", RETURNS), ("evaluation", JUDGED)):
            is_event = {
                name: value for name, value in row.items() if name.startswith("eval/") == (event == "evaluation")
            }
            aliases = {alias: is_event[name] for name, alias in names.items() if name in is_event}
            if is_event:
                yield event, {**place, **is_event, **aliases}


def _numbers(lines: Sequence[str]) -> Iterator[dict[str, float]]:
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
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) and abs(value) < 1e150 else None


def look_at_report(path: Path, entry: Entry | None) -> Look | None:
    """A saved report of the doctor: its verdict and its findings. RunError where the file is something else."""
    stats = {path.name: stat_of(path)}
    if entry is not None and entry.stamp.get("stats") == stats:
        return None
    data = read_json_table(path, 16 * 2**20)
    found = data.get("findings")
    if not isinstance(found, list) or "verdict" not in data:
        raise RunError(f"{path} is no report of the doctor")
    about = {
        "label": path.name,
        "verdict": _text(data.get("verdict")),
        "findings": [_finding(one) for one in found[:MOST_FINDINGS] if isinstance(one, dict)],
    }
    return Look({"stats": stats}, about, True)


def _finding(data: Mapping[str, Any]) -> dict[str, Any]:
    texts = ("title", "evidence", "remedy", "rule", "kind", "before", "after", "where")
    numbers = {name: number_of(data.get(name)) or default for name, default in (("share", 0.0), ("expected_gain", 1.0))}
    return {name: _text(data.get(name)) for name in texts} | numbers


def _text(value: Any) -> str:
    return value[:4_000] if isinstance(value, str) else ""
