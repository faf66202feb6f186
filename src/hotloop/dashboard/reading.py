"""A run of ours as the dashboard holds it: its columns, and one small table about it for lists.

Read again only where a file changed; of events only what was added.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hotloop.core.errors import HotloopError
from hotloop.core.settings import flatten
from hotloop.dashboard.columns import Columns
from hotloop.dashboard.events import Bookmark, Read, bookmark_from, read_on
from hotloop.dashboard.index import Entry, fingerprint
from hotloop.render.numbers import number_in, number_of
from hotloop.runs.directory import ABOUT, EVENTS, RESULT, SETTINGS, Run

NOT_LEARNING = ("run_dir", "trust", "seed")
"""Settings in which two seeds of an arm may differ."""
SMALL = (SETTINGS, ABOUT, RESULT, "lane.json")
MOST_SETTINGS, LONGEST_VALUE = 400, 200
RETURN = "mean_return"


@dataclass
class RunLook:
    """What changed since an entry was made: its new stamp and summary, and rows to add (all of them where `anew`)."""

    stamp: dict[str, Any]
    about: dict[str, Any]
    anew: bool = False
    columns: dict[str, Columns] = field(default_factory=dict)


def look_at_run(path: Path, entry: Entry | None) -> RunLook | None:
    """None where nothing changed."""
    stats = {name: stat_of(path / name) for name in (*SMALL, EVENTS)}
    if entry is not None and entry.stamp.get("stats") == stats:
        return None
    before = entry.stamp if entry is not None else {}
    read = _read(path / EVENTS, bookmark_from(before["events"]) if "events" in before else Bookmark())
    about = copy.deepcopy(entry.about) if entry is not None and not read.anew else {"last": {}, "best": None}
    small_before = {name: before.get("stats", {}).get(name) for name in SMALL}
    if entry is None or small_before != {name: stats[name] for name in SMALL}:
        about.update(_from_small_files(Run(path)))
    note_latest(about, read.columns)
    about["machine"], about["time"] = read.bookmark.start.get("machine"), number_of(read.bookmark.start.get("time"))
    about["damaged"], about["notes"] = read.bookmark.damaged, list(read.bookmark.notes)
    return RunLook({"stats": stats, "events": read.bookmark.as_data()}, about, read.anew, read.columns)


def stat_of(path: Path) -> list[int] | None:
    """What tells whether a file changed."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return [found.st_ino, found.st_size, found.st_mtime_ns]


def _read(path: Path, bookmark: Bookmark) -> Read:
    try:
        return read_on(path, bookmark)
    except OSError:  # none yet, or not readable: what was there is gone
        return Read(Bookmark(), True, {})


def _from_small_files(run: Run) -> dict[str, Any]:
    """What is missing or damaged is empty; `hotloop report` says what is wrong with it."""
    settings, about = _or_empty(run.settings), _or_empty(lambda: run.read_json(ABOUT))
    lane = _or_empty(lambda: run.read_json("lane.json"))
    result = _or_empty(run.result) if run.finished else {}
    flat = _plain(flatten(settings))
    learning = {name: value for name, value in flat.items() if name.partition(".")[0] not in NOT_LEARNING}
    judged = result.get("evaluation")
    return {
        "label": _text(about.get("label")) or run.path.name,
        "env": _text(flat.get("env.id")) or _text(flat.get("env")),
        "algorithm": _text(flat.get("algorithm")),
        "seed": flat.get("seed"),
        "settings": flat,
        "settings_key": fingerprint(learning),
        "total_env_steps": number_of(flat.get("total_env_steps")),
        "started": _text(about.get("started")),
        "node": _text(about.get("node")),
        "hotloop": _text(about.get("hotloop")),
        "lane": _text(lane.get("lane")) or _text(result.get("lane")),
        "lane_reason": _text(lane.get("reason")),
        "finished": bool(result),
        "digest": _text(result.get("digest")),
        "judged": _numbers_of(judged),
        "result": {name: number_in(result, name) for name in ("env_steps", "updates", "episodes", "seconds")},
        "rate": number_in(result, "env_steps_per_second"),
    }


def _or_empty(read: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    with suppress(HotloopError):
        return read()
    return {}


def _text(value: Any) -> str | None:
    return value[:LONGEST_VALUE] if isinstance(value, str) and value else None


def _plain(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as values that JSON has, short enough for a cell."""
    kept = list(flat.items())[:MOST_SETTINGS]
    return {str(name)[:LONGEST_VALUE]: _plain_value(value) for name, value in kept}


def _plain_value(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return value if number_of(value) is not None else None
    if isinstance(value, list):
        return [_plain_value(item) for item in value[:40]]
    return str(value)[:LONGEST_VALUE]


def _numbers_of(table: Any) -> dict[str, float]:
    pairs = table.items() if isinstance(table, dict) else ()
    return {str(name)[:60]: number for name, value in list(pairs)[:60] if (number := number_of(value)) is not None}


def note_latest(about: dict[str, Any], columns: Mapping[str, Columns]) -> None:
    """The last number of every column, and the best evaluation: what a list shows, whatever the file's length."""
    for event, rows in columns.items():
        if rows.count == 0:
            continue
        latest = about["last"].setdefault(event, {})
        arrays = rows.arrays()
        for name, values in arrays.items():
            known = np.flatnonzero(np.isfinite(values))
            if len(known):
                latest[name] = float(values[known[-1]])
        if event == "evaluation" and {RETURN, "env_steps"} <= arrays.keys():
            _note_best(about, arrays["env_steps"], arrays[RETURN])


def _note_best(about: dict[str, Any], env_steps: np.ndarray, returns: np.ndarray) -> None:
    known = np.isfinite(env_steps) & np.isfinite(returns)
    if not known.any():
        return
    place = int(np.flatnonzero(returns == returns[known].max())[-1])
    if about["best"] is None or returns[place] >= about["best"][1]:
        about["best"] = [float(env_steps[place]), float(returns[place])]
