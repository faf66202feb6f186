"""The table of runs as data: one row for each run, one for each arm, and the settings in which they differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hotloop.dashboard.arms import Arm, arm_score, arms_of, key_of, score_of, shared_settings, varied_settings
from hotloop.dashboard.library import Item, Library

_COUNTS = ("env_steps", "updates", "episodes", "seconds")
MOST_MEASURES = 120


def table(library: Library, control: bool = False) -> dict[str, Any]:
    """All that the first screen needs, in one answer."""
    version = library.version
    items = library.items()
    shown = sorted((item for item in items if item.kind != "doctor"), key=_newest_first)
    varied = varied_settings(shown)
    arms = arms_of(shown)
    done, of = library.scanned
    return {
        "version": version,
        "folder": _from_home(library.folder),
        "control": control,
        "scan": None if library.ready else {"done": done, "of": of},
        "notes": _notes(library),
        "settings": varied,
        "shared": shared_settings(shown),
        "measures": measures_of(shown),
        "runs": [run_row(item, varied) for item in shown],
        "arms": [arm_row(library, arm) for arm in arms],
        "reports": [
            {"id": item.id, "name": item.place, "verdict": item.about.get("verdict", "")}
            for item in items
            if item.kind == "doctor"
        ],
    }


def _from_home(folder: Path) -> str:
    """As people write it: `~/project/runs`."""
    with suppress(RuntimeError, ValueError):
        return str("~" / folder.relative_to(Path.home()))
    return str(folder)


def _newest_first(item: Item) -> tuple[bool, float, str]:
    """Those in training, then by when they began: it is what people open the page for."""
    began = item.about.get("time")
    return item.status != "running", -(began if isinstance(began, int | float) else 0.0), item.place


def _notes(library: Library) -> list[str]:
    notes = [library.problem[:1].upper() + library.problem[1:] + "."] if library.problem else []
    if not library.complete:
        notes.append("There is more below this folder than is looked at; open a folder further down.")
    return notes


def run_row(item: Item, varied: Sequence[str]) -> dict[str, Any]:
    about = item.about
    score, word = score_of(item)
    settings = about.get("settings", {})
    last = about.get("last", {})
    return {
        "id": item.id,
        "kind": item.kind,
        "name": item.place,
        "label": about.get("label") or item.place,
        "arm": key_of(item),
        "status": item.status,
        "seed": about.get("seed"),
        "env": about.get("env"),
        "algorithm": about.get("algorithm"),
        "score": score,
        "scored": word,
        "total": about.get("total_env_steps"),
        "rate": about.get("rate") or last.get("progress", {}).get("env_steps_per_second"),
        "started": about.get("started"),
        "time": about.get("time"),
        "node": about.get("node"),
        "settings": {name: settings[name] for name in varied if name in settings},
        **{name: latest(item, name) for name in _COUNTS},
    }


def latest(item: Item, name: str) -> float | None:
    """A counter as it stands: the furthest that any row says, or the result."""
    last = item.about.get("last", {})
    values = [last.get(event, {}).get(name) for event in ("progress", "evaluation")]
    values += [item.about.get("result", {}).get(name)]
    known = [value for value in values if isinstance(value, int | float)]
    return max(known, default=None)


def arm_row(library: Library, arm: Arm) -> dict[str, Any]:
    return {
        "key": arm.key,
        "label": arm.label,
        "runs": [item.id for item in arm.items],
        **arm_score(library.index, arm),
    }


def measures_of(items: Iterable[Item]) -> list[str]:
    """`KIND:NAME` of every number that can be drawn, most common first."""
    counted: dict[str, int] = {}
    for item in items:
        for event, last in item.about.get("last", {}).items():
            for name in last:
                if name not in _COUNTS and not name.startswith("phase/"):
                    counted[f"{event}:{name}"] = counted.get(f"{event}:{name}", 0) + 1
    return sorted(counted, key=lambda name: -counted[name])[:MOST_MEASURES]


def changed_rows(library: Library, version: int) -> dict[str, Any]:
    """What a page that knows `version` has to be told; a row that is None is gone."""
    now, ids = library.changed_since(version)
    items = library.items()
    varied = varied_settings(items)
    by_id = {item.id: item for item in items}
    touched = {key_of(by_id[id]) for id in ids if id in by_id and by_id[id].kind != "doctor"}
    arms = [arm for arm in arms_of(sorted(by_id.values(), key=_newest_first)) if arm.key in touched]
    done, of = library.scanned
    return {
        "version": now,
        "scan": None if library.ready else {"done": done, "of": of},
        "runs": {id: run_row(by_id[id], varied) if id in by_id else None for id in ids},
        "arms": [arm_row(library, arm) for arm in arms],
    }
