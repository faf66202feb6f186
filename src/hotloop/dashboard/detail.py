"""One run by itself: where its time went, what the doctor's rules say of it, its checkpoints, and which other run
is bit-identical to it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hotloop.core.errors import HotloopError
from hotloop.core.types import Array
from hotloop.dashboard.arms import key_of
from hotloop.dashboard.events import PHASE, parse_row
from hotloop.dashboard.library import Item, Library
from hotloop.dashboard.table import latest
from hotloop.doctor.facts import usable_cores
from hotloop.doctor.finding import Finding, findings
from hotloop.doctor.growth import with_growth
from hotloop.doctor.rules import load_rules
from hotloop.doctor.trace import Counts, Slice, Subject, Trace
from hotloop.runs.checkpoint_files import newest_first
from hotloop.runs.files import opened

MOST_SLICES, MOST_CHECKPOINTS = 200, 50
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


def timeline(library: Library, item: Item) -> list[Slice]:
    """From one progress row to the next, at most `MOST_SLICES` of them: what each phase took in between."""
    names = [name for name in library.index.names(item.id).get("progress", []) if name.startswith(PHASE)]
    columns = {name: library.column(item.id, "progress", name) for name in (*_PLACES, *names)}
    steps = columns["env_steps"]
    if steps is None or len(steps) == 0 or not names:
        return []
    filled = {name: _never_less(values, len(steps)) for name, values in columns.items()}
    size = max(1, -(-len(steps) // MOST_SLICES))
    ends = [*range(size - 1, len(steps) - 1, size), len(steps) - 1]
    return [_slice(filled, names, before, end) for before, end in itertools.pairwise([-1, *ends])]


_PLACES = ("env_steps", "updates", "episodes", "seconds")


def _never_less(values: Array | None, count: int) -> Array:
    """Totals where rows have none: those of the previous row."""
    if values is None:
        return np.zeros(count)
    return np.maximum.accumulate(np.where(np.isfinite(values), values, 0.0))


def _slice(columns: Mapping[str, Array], names: list[str], before: int, end: int) -> Slice:
    def grown(name: str) -> float:
        return float(columns[name][end] - (columns[name][before] if before >= 0 else 0.0))

    return Slice(
        start_seconds=float(columns["seconds"][before]) if before >= 0 else 0.0,
        seconds=grown("seconds"),
        env_steps=int(grown("env_steps")),
        episodes=int(grown("episodes")),
        updates=int(grown("updates")),
        phases={name.removeprefix(PHASE): grown(name) for name in names},
    )


def trace_of(library: Library, item: Item) -> Trace | None:
    """What a run wrote down about its own time, as the doctor's rules take it; None where it wrote nothing."""
    slices = timeline(library, item)
    if not slices:
        return None
    phases: dict[str, float] = {}
    for part in slices:
        for name, seconds in part.phases.items():
            phases[name] = phases.get(name, 0.0) + seconds
    machine = item.about.get("machine")
    made = Trace(
        subject=Subject(kind="preset", name=str(item.about.get("label")), ending="finished"),
        machine={"cores": usable_cores(), "denormals_flushed": True} | (machine if isinstance(machine, dict) else {}),
        seconds=sum(phases.values()),
        phases=phases,
        counts=_counts(item, slices),
        timeline=tuple(slices),
    )
    return with_growth(made, 0, {})


def _counts(item: Item, slices: list[Slice]) -> Counts:
    env_steps = sum(part.env_steps for part in slices)
    num_envs = item.about.get("settings", {}).get("env.num_envs")
    at_once = num_envs if isinstance(num_envs, int) and num_envs > 0 else 1
    return Counts(
        env_steps=env_steps,
        env_calls=max(1, env_steps // at_once),
        envs=1,
        episodes=sum(part.episodes for part in slices),
        updates=sum(part.updates for part in slices),
    )


def phase_shares(trace: Trace) -> list[dict[str, Any]]:
    """Of all seconds, the largest first."""
    total = sum(trace.phases.values()) or 1.0
    rows = sorted(trace.phases.items(), key=lambda pair: -pair[1])
    return [{"name": name, "seconds": seconds, "share": seconds / total} for name, seconds in rows]


def phases_over_time(library: Library, item: Item, x: str) -> dict[str, Any]:
    """Shares of the phases in each stretch of the run, on an axis of the curves: for `phases[i]` from the place before
    to `x[i]`."""
    slices = timeline(library, item)
    names = [row["name"] for row in phase_shares(trace)] if (trace := trace_of(library, item)) else []
    places = np.cumsum([_width(part, x) for part in slices]).tolist()
    totals = [sum(part.phases.values()) or 1.0 for part in slices]
    shares = [
        [round(part.phases.get(name, 0.0) / all_, 5) for part, all_ in zip(slices, totals, strict=True)]
        for name in names
    ]
    return {"x": places, "names": names, "shares": shares}


def _width(part: Slice, x: str) -> float:
    from hotloop.core.timer import NOT_TRAINING

    if x == "env_steps":
        return float(part.env_steps)
    outside = sum(seconds for name, seconds in part.phases.items() if name in NOT_TRAINING)
    return part.seconds - (outside if x == "seconds" else 0.0)


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
