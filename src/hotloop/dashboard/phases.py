"""Where the time of a run went: shares of its phases on an axis of the curves, and the same as SVG and CSV files."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from hotloop.core.timer import NOT_TRAINING
from hotloop.core.types import Array
from hotloop.dashboard.events import PHASE
from hotloop.dashboard.library import Item, Library
from hotloop.doctor.facts import usable_cores
from hotloop.doctor.growth import with_growth
from hotloop.doctor.trace import Counts, Slice, Subject, Trace
from hotloop.render.chart import Curve

MOST_SLICES = 200


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
    if x == "env_steps":
        return float(part.env_steps)
    outside = sum(seconds for name, seconds in part.phases.items() if name in NOT_TRAINING)
    return part.seconds - (outside if x == "seconds" else 0.0)


def phase_curves(library: Library, item: Item, x: str) -> list[Curve]:
    """Shares in per cent, stacked: the band of each phase lies on those of the larger ones."""
    shown = phases_over_time(library, item, x)
    ends = np.array(shown["x"])
    places = np.stack([np.concatenate([[0.0], ends[:-1]]), ends], axis=1).ravel() if len(ends) else ends
    below, made = np.zeros(len(places)), []
    for name, shares in zip(shown["names"], shown["shares"], strict=True):
        above = below + 100 * np.repeat(np.array(shares), 2)
        made.append(Curve(name, places, above, below, above))
        below = above
    return made


def phase_rows(library: Library, item: Item, x: str) -> Iterator[tuple[str, float, float]]:
    """The phase, the end of a stretch on the axis, and the phase's share of that stretch."""
    shown = phases_over_time(library, item, x)
    for name, shares in zip(shown["names"], shown["shares"], strict=True):
        for end, share in zip(shown["x"], shares, strict=True):
            yield name, end, share
