"""Bars and whiskers of the page, placed in percent so that they fit any width."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hotloop.doctor.trace import OUTSIDE, UPDATE, Experiment, Trace
from hotloop.doctor.views.html import Child, Html, element, join, phase_class, table
from hotloop.doctor.views.numbers import duration, interval, number, percent, times
from hotloop.doctor.views.summary import KINDS, CostRow, cost_row, phase_rows, update_rows

_PARTS = ("u-forward", "u-backward", "u-optimiser", "u-rest")


def phase_bars(trace: Trace) -> Html:
    """One bar of the whole loop, the update's parts right below the update, and the table they are drawn from."""
    loop = [row for row in phase_rows(trace) if row.name not in OUTSIDE and row.seconds > 0]
    parts = update_rows(trace)
    whole = _stacked([(row, phase_class(row.name)) for row in loop])
    return join([whole, _update_bar(loop, parts), _costs(trace, loop, parts)])


def _update_bar(loop: Sequence[CostRow], parts: Sequence[CostRow]) -> Html | None:
    names = [row.name for row in loop]
    if UPDATE not in names or not any(part.seconds > 0 for part in parts):
        return None
    styles = zip(parts, _PARTS, strict=False)
    return join(
        [element("p", "and of the update", class_="label"), _stacked([pair for pair in styles if pair[0].seconds > 0])]
    )


def _stacked(rows: Sequence[tuple[CostRow, str]]) -> Html:
    total = sum(row.seconds for row, _ in rows) or 1.0
    pieces = (_piece(row, style, row.seconds / total) for row, style in rows)
    return element("div", *pieces, class_="stacked", role="img", aria_label="; ".join(_spoken(row) for row, _ in rows))


def _piece(row: CostRow, style: str, width: float) -> Html:
    hover = f"{row.name}: {duration(row.seconds)}, {percent(row.share)} of the loop"
    label = element("span", row.name, element("small", percent(row.share)))
    return element("div", label, class_=f"piece {style}", style=f"width:{100 * width:.4g}%", title=hover)


def legend(names: Sequence[str]) -> Html:
    shown = (element("span", element("i", class_=f"swatch {phase_class(name)}"), name) for name in names)
    return element("div", *shown, class_="legend", aria_hidden="true")


def _spoken(row: CostRow) -> str:
    return f"{row.name} {percent(row.share)}"


def _costs(trace: Trace, loop: Sequence[CostRow], parts: Sequence[CostRow]) -> Html:
    rows: list[list[Child]] = []
    widest = max((row.share for row in loop), default=1.0)
    for row in loop:
        rows.append(_cells(row, phase_class(row.name), widest))
        if row.name == UPDATE:
            rows += [_cells(part, f"part {style}", widest) for part, style in zip(parts, _PARTS, strict=False)]
    rows.append(_cells(cost_row(trace, "the loop", trace.loop_seconds), "total", widest))
    rows += [_cells(row, phase_class(row.name), widest) for row in phase_rows(trace) if row.name in OUTSIDE]
    return table(["phase", "", "share", "seconds", "us / env step", "us / update"], rows, class_="costs")


def _cells(row: CostRow, style: str, widest: float) -> list[Child]:
    swatch = bar = None
    if style != "total":
        swatch = element("i", class_=f"swatch {style}", aria_hidden="true")
        bar = element("i", class_=style, style=f"width:{100 * row.share / widest:.4g}%")
    label = element("span", swatch, row.name, class_=style.split()[0])
    costs = [f"{row.seconds:.2f}", number(row.us_per_env_step), number(row.us_per_update)]
    return [label, element("div", bar, class_="track"), percent(row.share) if row.share else "-", *costs]


@dataclass(frozen=True)
class RatioScale:
    """Ratios on a line from 0 to 100, in logarithms: twice as fast and twice as slow are equally far from 1."""

    low: float
    high: float

    @classmethod
    def around(cls, ratios: Sequence[float]) -> RatioScale:
        ends = [math.log(ratio) for ratio in (*ratios, 0.9, 1.1) if ratio > 0]
        room = 0.06 * (max(ends) - min(ends))
        return cls(min(ends) - room, max(ends) + room)

    def place(self, ratio: float) -> float:
        return min(100.0, max(0.0, 100 * (math.log(max(ratio, 1e-9)) - self.low) / (self.high - self.low)))


def whiskers(experiments: Sequence[Experiment]) -> Html:
    """One row per experiment: a dot, its interval, and a line where nothing would have changed."""
    if not experiments:
        return Html("")
    scale = RatioScale.around([end for one in experiments for end in (one.low, one.high, one.ratio)])
    return element("div", *(_experiment(one, scale) for one in experiments), class_="whiskers")


def _experiment(one: Experiment, scale: RatioScale) -> Html:
    name = element("div", element("b", one.name), element("span", one.what, class_="what"), class_="name")
    shown = element("div", element("b", times(one.ratio)), " ", interval(one.low, one.high), class_="ratio")
    return element("div", name, _whisker(one, scale), shown, badge(one.kind), class_="experiment")


def _whisker(one: Experiment, scale: RatioScale) -> Html:
    style = "faster" if one.low > 1 else "slower" if one.high < 1 else "unclear"
    reach = f"left:{scale.place(one.low):.4g}%;width:{scale.place(one.high) - scale.place(one.low):.4g}%"
    marks = [
        element("i", class_="one", style=f"left:{scale.place(1.0):.4g}%"),
        element("i", class_="reach", style=reach),
        element("i", class_="dot", style=f"left:{scale.place(one.ratio):.4g}%"),
    ]
    spoken = f"{times(one.ratio)} {interval(one.low, one.high)}"
    return element("div", *marks, class_=f"axis {style}", role="img", aria_label=spoken)


def badge(kind: str) -> Html:
    return element("span", KINDS.get(kind, kind), class_="badge exact" if kind == "exact" else "badge learning")
