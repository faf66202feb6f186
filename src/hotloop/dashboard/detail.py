"""One run by itself: what it says of itself, its checkpoints, and which other run is bit-identical to it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hotloop.core.errors import HotloopError
from hotloop.dashboard.arms import key_of
from hotloop.dashboard.events import parse_row
from hotloop.dashboard.library import Item, Library
from hotloop.dashboard.phases import phase_shares, trace_of
from hotloop.dashboard.table import latest
from hotloop.doctor.finding import Finding, findings
from hotloop.doctor.rules import load_rules
from hotloop.runs.checkpoint_files import newest_first
from hotloop.runs.files import opened

MOST_CHECKPOINTS = 50
MOST_COMPARED_BYTES, MOST_ALIKE = 64 * 2**20, 20
CLOCK_FIELDS = ("seconds", "env_steps_per_second", "phases", "time", "machine")
"""In which two bit-identical runs may differ."""


def detail(library: Library, item: Item) -> dict[str, Any]:
    about = item.about
    if item.kind == "doctor":
        return {"id": item.id, "name": item.place, "verdict": about["verdict"], "findings": about["findings"]}
    trace = trace_of(library, item) if item.kind == "run" else None
    return {
        "id": item.id,
        "name": item.place,
        "kind": item.kind,
        "label": about.get("label") or item.place,
        "arm": key_of(item),
        "status": item.status,
        "settings": about.get("settings", {}),
        "judged": about.get("judged", {}),
        "best": about.get("best"),
        "lane": about.get("lane"),
        "lane_reason": about.get("lane_reason"),
        "machine": about.get("machine"),
        "hotloop": about.get("hotloop"),
        "node": about.get("node"),
        "notes": _notes(about),
        "names": library.index.names(item.id),
        "last": about.get("last", {}),
        "path": str(library.path_of(item)),
        "counts": {name: latest(item, name) for name in ("env_steps", "updates", "episodes", "seconds")},
        "phases": [] if trace is None else phase_shares(trace),
        "findings": [] if trace is None else [_shown(found) for found in findings(trace, load_rules())],
        "checkpoints": checkpoints(library, item),
        "digest": about.get("digest"),
    }


def _notes(about: Mapping[str, Any]) -> list[str]:
    notes = [f"{about['damaged']:,} lines of events.jsonl cannot be read."] if about.get("damaged") else []
    for row in about.get("notes", [])[:10]:
        shown = {name: value for name, value in row.items() if name not in (*CLOCK_FIELDS, "event", "schema")}
        notes.append(f"{row.get('event')}: {json.dumps(shown)[:200]}")
    return notes


def checkpoints(library: Library, item: Item) -> list[str]:
    """Names, the newest first; that one can be loaded is found out by who loads it."""
    if item.kind != "run":
        return []
    try:
        return [path.name for path in newest_first(library.path_of(item) / "checkpoints")][:MOST_CHECKPOINTS]
    except HotloopError:
        return []


def _shown(found: Finding) -> dict[str, Any]:
    names = ("title", "evidence", "remedy", "share", "expected_gain", "rule", "kind")
    return {name: getattr(found, name) for name in names}


def alike(library: Library, item: Item) -> list[dict[str, Any]]:
    """Runs of the same settings and seed, which should be bit-identical: whether they are, and if not from where on."""
    same = [
        other
        for other in library.items()
        if other.id != item.id
        and other.kind == "run"
        and item.kind == "run"
        and key_of(other) == key_of(item)
        and other.about.get("seed") == item.about.get("seed")
    ]
    return [_likeness(library, item, other) for other in same[:MOST_ALIKE]]


def _likeness(library: Library, item: Item, other: Item) -> dict[str, Any]:
    mine, its = item.about.get("digest"), other.about.get("digest")
    said = {"id": other.id, "name": other.place}
    if mine and mine == its:
        return said | {"words": f"identical to {other.place}: equal digests"}
    differs = first_difference(*(library.path_of(one) / "events.jsonl" for one in (item, other)))
    if differs is not None:
        return said | {"words": f"differs from {other.place} from env step {differs:,} on"}
    if mine and its:
        return said | {"words": f"equal rows to {other.place}, but another digest"}
    return said | {"words": f"equal to {other.place} as far as both have come"}


def first_difference(one: Path, other: Path) -> int | None:
    """Env steps of the first row in which two runs differ, clocks aside; None where one is the other's beginning."""
    for mine, its in zip(_rows(one), _rows(other), strict=False):
        if mine != its:
            steps = [row.get("env_steps") for row in (mine, its)]
            return min((int(step) for step in steps if isinstance(step, int | float)), default=0)
    return None


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with opened(path) as (descriptor, _), open(descriptor, "rb", closefd=False) as stream:
            read = 0
            while (line := stream.readline(2**16)).endswith(b"\n") and (read := read + len(line)) < MOST_COMPARED_BYTES:
                row = parse_row(line)
                if row is not None:
                    yield {name: value for name, value in row.items() if name not in CLOCK_FIELDS}
    except OSError:
        return
