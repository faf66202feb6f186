"""Logs of other programs, and saved reports of the doctor, as the dashboard holds them; read anew whenever a file
changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hotloop.core.errors import RunError
from hotloop.dashboard.columns import Columns
from hotloop.dashboard.index import Entry
from hotloop.dashboard.reading import RunLook, note_latest, stat_of
from hotloop.render.numbers import number_of
from hotloop.runs.files import read_json_table
from hotloop.runs.logs import read_log
from hotloop.runs.tensorboard import event_files

MOST_FINDINGS = 30


def look_at_log(path: Path, entry: Entry | None) -> RunLook | None:
    """A file, or a folder of TensorBoard's event files."""
    files = event_files(path) if path.is_dir() else [path]
    stats = {file.name: stat_of(file) for file in files}
    if entry is not None and entry.stamp.get("stats") == stats:
        return None
    log = read_log(path)
    columns = {"progress": Columns(), "evaluation": Columns()}
    for event, row in log.rows:
        columns[event].add(row.items())
    about: dict[str, Any] = {"label": path.name, "last": {}, "best": None, "time": log.began, "env": log.env}
    last_change = stats[files[-1].name]
    if log.began is None and last_change is not None:
        about["time"] = last_change[2] / 1e9
    note_latest(about, columns)
    return RunLook({"stats": stats}, about, True, columns)


def look_at_report(path: Path, entry: Entry | None) -> RunLook | None:
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
    return RunLook({"stats": stats}, about, True)


def _finding(data: Mapping[str, Any]) -> dict[str, Any]:
    texts = ("title", "evidence", "remedy", "rule", "kind", "before", "after", "where")
    numbers = {name: number_of(data.get(name)) or default for name, default in (("share", 0.0), ("expected_gain", 1.0))}
    return {name: _text(data.get(name)) for name in texts} | numbers


def _text(value: Any) -> str:
    return value[:4_000] if isinstance(value, str) else ""
