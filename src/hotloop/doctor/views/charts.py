"""Plots whose shapes stretch with the page while their words keep their size: SVG below, HTML labels around it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hotloop.doctor.trace import PHASES, Growth, Slice, Trace
from hotloop.doctor.views.bars import legend
from hotloop.doctor.views.html import Child, Html, element, join, phase_class
from hotloop.doctor.views.numbers import duration, number, short_number, ticks_from_zero, times
from hotloop.doctor.views.summary import merged

_MOST_SLICES = 90
_OVER = {"run": "env steps into the run", "replay fill": "transitions in the replay", "num_envs": "envs at once"}


@dataclass(frozen=True)
class Axes:
    """From data to a square of 100 by 100, whose y points down."""

    x_low: float
    x_high: float
    y_high: float
    x_label: str
    y_label: str

    def x(self, value: float) -> float:
        return 100 * (value - self.x_low) / ((self.x_high - self.x_low) or 1.0)

    def y(self, value: float) -> float:
        return 100 - 100 * min(1.0, value / (self.y_high or 1.0))


def plot(axes: Axes, shapes: Child, spoken: str) -> Html:
    heights = ticks_from_zero(axes.y_high)
    grid = "".join(f"M0 {axes.y(tick):.4g}H100" for tick in heights)
    drawing = element(
        "svg",
        element("path", class_="grid", d=grid),
        shapes,
        viewBox="0 0 100 100",
        preserveAspectRatio="none",
        role="img",
        aria_label=spoken,
    )
    marks = (element("span", short_number(tick), style=f"top:{axes.y(tick):.4g}%") for tick in heights)
    places = [tick for tick in ticks_from_zero(axes.x_high) if tick >= axes.x_low]
    below = (element("span", short_number(tick), style=f"left:{axes.x(tick):.4g}%") for tick in places)
    frame = element("div", element("div", *marks, class_="y", aria_hidden="true"), drawing, class_="frame")
    above, under = element("p", axes.y_label, class_="label"), element("p", axes.x_label, class_="label x-label")
    return element("div", above, frame, element("div", *below, class_="x", aria_hidden="true"), under, class_="plot")


def growth_plot(growth: Growth) -> Html:
    points = growth.points
    if len(points) < 2:
        return Html("")
    names = _OVER.get(growth.over, growth.over), _unit(growth.what)
    axes = Axes(points[0][0], points[-1][0], 1.1 * max(cost for _, cost in points), *names)
    places = [f"{axes.x(place):.4g} {axes.y(cost):.4g}" for place, cost in points]
    line = element("path", class_="line", d="M" + "L".join(places))
    dots = element("path", class_="dots", d="".join(f"M{place}h0" for place in places))
    spoken = f"{growth.what} over {growth.over}: {number(points[0][1])} at first, {number(points[-1][1])} at last"
    # Longer episodes are mostly what learning is for.
    grown = "grew" if growth.ratio > 1.1 else "fell" if growth.ratio < 0.9 else "flat"
    grown = "flat" if "per episode" in growth.what else grown
    title = element("h3", f"{growth.what} over {growth.over} ", element("b", times(growth.ratio), class_=grown))
    return element("div", title, plot(axes, join([line, dots]), spoken), class_="growth")


def _unit(what: str) -> str:
    if "per episode" in what:
        return what
    if "per " in what:
        return f"us, {what}"
    return "us per env step" if what == "env step" else f"{what}, us per env step"


def timeline_plot(trace: Trace) -> Html:
    """Cost of one env step through the run, by phase; of one update where there is no env step."""
    per = "env step" if trace.counts.env_steps else "update"
    slices = list(_countable(merged(trace.timeline, _MOST_SLICES), per))
    if len(slices) < 2:
        return Html("")
    costs = [1e6 * one.seconds / _count(one, per) for one in slices]
    high, cut = _top(costs)
    end = slices[-1].start_seconds + slices[-1].seconds
    axes = Axes(slices[0].start_seconds, end, high, "seconds into the loop", f"us per {per}")
    shapes = join([*_layers(axes, slices, per), *(_hover(axes, one, per) for one in slices)])
    spoken = f"us per {per}: {number(costs[0])} in the first slice, {number(costs[-1])} in the last"
    beyond = f"{cut} of {len(costs)} slices reach beyond the plot, up to {number(max(costs))} us." if cut else ""
    names = _ordered({name for one in slices for name, seconds in one.phases.items() if seconds > 0})
    return join([plot(axes, shapes, spoken), legend(names), element("p", beyond, class_="note") if beyond else None])


def _count(one: Slice, per: str) -> int:
    return one.env_steps if per == "env step" else one.updates


def _countable(slices: Sequence[Slice], per: str) -> Iterator[Slice]:
    """A slice in which nothing was counted (one long update) is joined to the ones after it."""
    waiting: list[Slice] = []
    for one in slices:
        waiting.append(one)
        if _count(one, per):
            yield from merged(waiting, 1)
            waiting = []


def _top(costs: Sequence[float]) -> tuple[float, int]:
    """Where the axis ends, and how many slices reach beyond it: a single hiccup must not flatten all others."""
    middle = sorted(costs)[len(costs) // 2]
    beyond = sum(cost > 3 * middle for cost in costs)
    if beyond and beyond <= len(costs) / 10 and max(costs) > 4 * middle:
        return 3 * middle, beyond
    return 1.05 * max(costs), 0


def _ordered(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: PHASES.index(name) if name in PHASES else len(PHASES))


def _layers(axes: Axes, slices: Sequence[Slice], per: str) -> Iterator[Html]:
    floors = [0.0] * len(slices)
    for name in _ordered({name for one in slices for name in one.phases}):
        path = []
        for place, one in enumerate(slices):
            top = floors[place] + 1e6 * one.phases.get(name, 0.0) / _count(one, per)
            left, right = axes.x(one.start_seconds), axes.x(one.start_seconds + one.seconds)
            path.append(
                f"M{left:.4g} {axes.y(floors[place]):.4g}V{axes.y(top):.4g}H{right:.4g}V{axes.y(floors[place]):.4g}z"
            )
            floors[place] = top
        yield element("path", class_=phase_class(name), d="".join(path))


def _hover(axes: Axes, one: Slice, per: str) -> Html:
    parts = sorted(one.phases.items(), key=lambda item: -item[1])
    costs = "\n".join(f"{name} {number(1e6 * seconds / _count(one, per))}" for name, seconds in parts if seconds > 0)
    total = f"{number(1e6 * one.seconds / _count(one, per))} us per {per}"
    words = f"at {duration(one.start_seconds)}: {total}, {one.env_steps:,} env steps, {one.updates:,} updates\n{costs}"
    left, right = axes.x(one.start_seconds), axes.x(one.start_seconds + one.seconds)
    return element("rect", element("title", words), class_="hover", x=left, y=0, width=right - left, height=100)
