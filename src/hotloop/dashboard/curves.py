"""The curves of chosen runs, for a screen of so many pixels; and the same as SVG and CSV files.

A run by itself is drawn by the lowest and the highest value in each pixel. An arm of several seeds is their mean with a
95 % bootstrap band, as `hotloop compare` draws it; where a seed has many points, all those of a stretch are averaged
first. Neither leaves points out.
"""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

import numpy as np

from hotloop.comparison.measures import MOST_POINTS, mean_curve
from hotloop.core.errors import SettingsError
from hotloop.core.types import Array
from hotloop.dashboard.arms import Arm, arms_of
from hotloop.dashboard.columns import Points, cell_means, decimate, finite
from hotloop.dashboard.events import TRAINING_SECONDS
from hotloop.dashboard.library import Item, Library
from hotloop.dashboard.phases import phase_curves, phase_rows
from hotloop.render.chart import Curve, Frame, as_svg, lay_out
from hotloop.render.numbers import time_unit

AXES = {
    "env_steps": "env steps",
    "seconds": "seconds of training",
    "clock": "seconds, all of them",
}
SCORE = "score"
"""The return in evaluations, or, where a run has none, in training."""
RETURN = "mean_return"
PHASES = "phases"
"""Not a number of the rows: the shares of the phases over a run."""
MOST_RUNS, MOST_WIDTH = 400, 4_000


@dataclass(frozen=True)
class Request:
    """What is to be drawn: `y` is `score`, or `KIND:NAME` of a column; `low` and `high` are a part of the x axis."""

    ids: tuple[str, ...]
    x: str = "env_steps"
    y: str = SCORE
    width: int = 800
    low: float | None = None
    high: float | None = None
    single: bool = False  # every run by itself, no arms

    def as_query(self) -> str:
        given = {"runs": ",".join(self.ids), "x": self.x, "y": self.y, "single": "1" if self.single else ""}
        ends = {name: None if end is None else f"{end:g}" for name, end in (("low", self.low), ("high", self.high))}
        return urlencode({name: value for name, value in (given | ends).items() if value})


def request_from(query: str | Mapping[str, str]) -> Request:
    """Raises SettingsError for what cannot be meant."""
    given = dict(parse_qsl(query)) if isinstance(query, str) else query
    x = given.get("x", "env_steps")
    if x not in AXES:
        raise SettingsError(f"`x` is `{x[:40]}`", f"one of {', '.join(AXES)}")
    ids = tuple(dict.fromkeys(id for id in given.get("runs", "").split(",") if id))[:MOST_RUNS]
    low, high = _end(given, "low"), _end(given, "high")
    width = int(_end(given, "width") or 800)
    return Request(
        ids, x, given.get("y", SCORE)[:200], max(16, min(MOST_WIDTH, width)), low, high, given.get("single") == "1"
    )


def _end(given: Mapping[str, str], name: str) -> float | None:
    text = given.get(name, "")
    try:
        value = float(text) if text else None
    except ValueError:
        raise SettingsError(f"`{name}` is `{text[:40]}`", "expected a number") from None
    if value is not None and not abs(value) < 1e18:
        raise SettingsError(f"`{name}` is `{text[:40]}`", "expected a finite number")
    return value


def points_of(library: Library, item: Item, request: Request) -> Points:
    """All points of one run, ordered by x; none where it has no such column."""
    event, name = _column(library, item, request.y)
    y = library.column(item.id, event, name)
    x = library.column(item.id, event, _x_name(item, request.x))
    if y is None or x is None:
        nothing = np.empty(0)
        return Points(nothing, nothing)
    count = min(len(x), len(y))
    return finite(x[:count], y[:count])


def _column(library: Library, item: Item, y: str) -> tuple[str, str]:
    if y != SCORE:
        event, _, name = y.partition(":")
        return event, name
    last = item.about.get("last", {})
    return ("evaluation" if RETURN in last.get("evaluation", {}) else "progress"), RETURN


def _x_name(item: Item, x: str) -> str:
    """Logs of other programs know one time only."""
    if x == "env_steps":
        return "env_steps"
    return TRAINING_SECONDS if x == "seconds" and item.kind == "run" else "seconds"


def curves(library: Library, request: Request) -> dict[str, Any]:
    """For the page: numbers of seven digits are more than a pixel shows."""
    arms = arms_of(chosen(library, request.ids))
    return {
        "x": request.x,
        "y": request.y,
        "x_label": AXES[request.x],
        "arms": [_as_data(library, arm, request) for arm in arms],
        "command": command(library, request),
    }


def chosen(library: Library, ids: Sequence[str]) -> list[Item]:
    """Those that are there, in the order in which they were asked for."""
    return [item for id in ids if (item := library.get(id)) is not None]


def _as_data(library: Library, arm: Arm, request: Request) -> dict[str, Any]:
    data: dict[str, Any] = {"key": arm.key, "label": arm.label, "seeds": len(arm.items)}
    points = [points_of(library, item, request) for item in arm.items]
    if len(points) == 1 or request.single:
        data["runs"] = [_run(item, one, request) for item, one in zip(arm.items, points, strict=True)]
        return data
    curve = arm_curve(arm.label, points, request)
    if curve is not None:
        data |= {"x": _digits(curve.x), "mean": _digits(curve.mean)}
        if curve.low is not None and curve.high is not None:
            data |= {"low": _digits(curve.low), "high": _digits(curve.high)}
    return data


def _run(item: Item, points: Points, request: Request) -> dict[str, Any]:
    shown = decimate(points, request.width, request.low, request.high)
    return {
        "id": item.id,
        "name": item.place,
        "points": len(points.x),
        "x": _digits(shown.x, 12),
        "y": _digits(shown.y),
    }


def arm_curve(label: str, seeds: Sequence[Points], request: Request) -> Curve | None:
    there = [_window(one, request) for one in seeds]
    there = [one for one in there if len(one.x)]
    if not there:
        return None
    low, high = min(float(one.x[0]) for one in there), max(float(one.x[-1]) for one in there)
    if any(len(one.x) > 2 * MOST_POINTS for one in there):
        there = [cell_means(one, MOST_POINTS, low, high) for one in there]
    return mean_curve(label, [(one.x, one.y) for one in there])


def _window(points: Points, request: Request) -> Points:
    if request.low is None and request.high is None:
        return points
    low, high = request.low, request.high
    first = 0 if low is None else max(0, int(np.searchsorted(points.x, low)) - 1)
    last = len(points.x) if high is None else int(np.searchsorted(points.x, high, "right")) + 1
    return Points(points.x[first:last], points.y[first:last])


def _digits(values: Array, digits: int = 7) -> list[float]:
    return [float(f"{value:.{digits}g}") for value in values.tolist()]


def command(library: Library, request: Request) -> str:
    """The line that makes the same chart again, without a server."""
    words = ["hotloop", "dashboard", str(library.folder), "--chart", request.as_query(), "--out", "chart.svg"]
    return shlex.join(words)


def title_of(request: Request) -> str:
    name = {SCORE: "return", PHASES: "shares of time"}.get(request.y) or request.y.partition(":")[2] or request.y
    return f"{name.replace('_', ' ').capitalize()[:80]} against {AXES[request.x].partition(',')[0]}"


def as_svg_file(library: Library, request: Request) -> str:
    """As `render.chart` draws it: arms as means with bands, single runs by their lowest and highest values."""
    drawn: list[Curve | None] = []
    for arm in arms_of(chosen(library, request.ids)):
        if request.y == PHASES:
            drawn += phase_curves(library, arm.items[0], request.x)
            continue
        points = [points_of(library, item, request) for item in arm.items]
        if len(points) > 1 and not request.single:
            drawn.append(arm_curve(arm.label, points, request))
            continue
        for item, one in zip(arm.items, points, strict=True):
            shown = decimate(one, 430, request.low, request.high)
            name = arm.label if len(points) == 1 else f"{arm.label}, {item.place}"
            drawn.append(Curve(name, shown.x, shown.y, None, None) if len(shown.x) else None)
    curves = [curve for curve in drawn if curve is not None]
    unit, scale = ("", 1.0)
    if request.x != "env_steps":
        unit, scale = time_unit(max((float(curve.x[-1]) for curve in curves), default=0.0))
    label = AXES[request.x].replace("seconds", unit) if unit else AXES[request.x]
    about = "% of each stretch" if request.y == PHASES else "arms: mean and 95 % band; runs: lowest and highest"
    frame = Frame(title_of(request), about, label, x_scale=scale)
    made = command(library, request).replace("--", "&#45;&#45;")  # a comment of XML may not hold two dashes
    return as_svg(lay_out(curves, frame)).replace("</svg>", f"<!-- {made} --></svg>")


def as_csv_file(library: Library, request: Request) -> Iterator[str]:
    """Every point, none averaged and none left out; the command in front."""
    yield f"# {command(library, request)}\n".replace("chart.svg", "chart.csv")
    what = ["phase", AXES[request.x], "share"] if request.y == PHASES else [AXES[request.x], request.y]
    yield _csv_row(["arm", "run", *what])
    for arm in arms_of(chosen(library, request.ids)):
        for item in arm.items:
            if request.y == PHASES:
                for phase, end, share in phase_rows(library, item, request.x):
                    yield _csv_row([arm.label, item.place, phase, f"{end:.12g}", repr(share)])
                continue
            x, y = points_of(library, item, request)
            inside = np.ones(len(x), dtype=bool)
            inside &= x >= request.low if request.low is not None else True
            inside &= x <= request.high if request.high is not None else True
            for right, up in zip(x[inside].tolist(), y[inside].tolist(), strict=True):
                yield _csv_row([arm.label, item.place, f"{right:.12g}", repr(up)])


def _csv_row(cells: Sequence[str]) -> str:
    """A cell that begins like a formula is text: a spreadsheet must not compute what a name says."""
    out = io.StringIO()
    safe = [
        f"'{cell}" if cell[:1] in ("=", "+", "@") or (cell[:1] == "-" and not _is_number(cell)) else cell
        for cell in cells
    ]
    csv.writer(out, lineterminator="\n").writerow(safe)
    return out.getvalue()


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
