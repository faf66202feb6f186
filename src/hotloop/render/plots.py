"""Plots whose shapes stretch with the page while their words keep their size: SVG below, HTML labels around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotloop.render.html import Child, Html, element, join, phase_class
from hotloop.render.numbers import axis_range, nice_ticks, tick_label

LAST_CENTRED = 85.0
"""Per cent of a plot's width up to which a label below it is centred under its tick."""


def legend(names: Sequence[str]) -> Html:
    shown = (element("span", element("i", class_=f"swatch {phase_class(name)}"), name) for name in names)
    return element("div", *shown, class_="legend", aria_hidden="true")


@dataclass(frozen=True)
class Axes:
    """From data to a square of 100 by 100, whose y points down."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float
    x_label: str = "env steps"
    y_label: str = ""
    percent: bool = False

    def x(self, value: float) -> float:
        return _within(100 * (value - self.x_low) / ((self.x_high - self.x_low) or 1.0))

    def y(self, value: float) -> float:
        return _within(100 - 100 * (value - self.y_low) / ((self.y_high - self.y_low) or 1.0))


def _within(place: float) -> float:
    return min(100.0, max(0.0, place))


def axes_for(xs: Sequence[float], ys: Sequence[float], x_label: str, y_label: str = "") -> Axes:
    """Around all points; x from zero."""
    low, high = axis_range(min(ys), max(ys))
    low = max(0.0, low) if min(ys) >= 0 else low  # a rate that stays zero has nothing below it
    return Axes(0.0, max(xs) if max(xs) > 1e-9 else 1.0, low, high, x_label, y_label)


def plot(axes: Axes, shapes: Child, spoken: str, over: Child = None) -> Html:
    """`over` is laid above the drawing: words at places in percent."""
    heights = nice_ticks(axes.y_low, axes.y_high, at_most=6)
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
    marks = (element("span", _mark(axes, tick), style=f"top:{axes.y(tick):.4g}%") for tick in heights)
    below = (
        element("span", tick_label(tick), style=below_axis(axes.x(tick)))
        for tick in nice_ticks(axes.x_low, axes.x_high, at_most=5)
    )
    frame = element("div", element("div", *marks, class_="y", aria_hidden="true"), drawing, over, class_="frame")
    above = element("p", axes.y_label, class_="label") if axes.y_label else None
    under = element("p", axes.x_label, class_="label x-label")
    return element("div", above, frame, element("div", *below, class_="x", aria_hidden="true"), under, class_="plot")


def below_axis(percent: float) -> str:
    """Of a label below the axis: centred, but at the right end within the plot, or a phone's page scrolls sideways."""
    aside = f";transform:translateX(-{percent:.4g}%)" if percent > LAST_CENTRED else ""
    return f"left:{percent:.4g}%{aside}"


def _mark(axes: Axes, tick: float) -> str:
    return f"{100 * tick:.0f} %" if axes.percent else tick_label(tick)


def line(axes: Axes, xs: Sequence[float], ys: Sequence[float], style: str) -> Html:
    """Joined points; a single one is a dot."""
    return element("path", class_=style if len(xs) > 1 else f"{style} dot", d=_way(axes, xs, ys))


def dots(axes: Axes, xs: Sequence[float], ys: Sequence[float], style: str) -> Html:
    return element("path", class_=style, d="".join(f"M{_place(axes, x, y)}h0" for x, y in zip(xs, ys, strict=True)))


def band(axes: Axes, xs: Sequence[float], lows: Sequence[float], highs: Sequence[float], style: str) -> Html:
    there = _way(axes, xs, highs)
    back = "L".join(_place(axes, x, y) for x, y in zip(reversed(xs), reversed(lows), strict=True))
    return element("path", class_=style, d=f"{there}L{back}z")


def _way(axes: Axes, xs: Sequence[float], ys: Sequence[float]) -> str:
    return "M" + "L".join(_place(axes, x, y) for x, y in zip(xs, ys, strict=True)) + ("h0" if len(xs) == 1 else "")


def _place(axes: Axes, x: float, y: float) -> str:
    return f"{axes.x(x):.4g} {axes.y(y):.4g}"


def hover(axes: Axes, start: float, end: float, words: str) -> Html:
    """An invisible column that says its numbers."""
    left, right = axes.x(start), axes.x(end)
    return element("rect", element("title", words), class_="hover", x=left, y=0, width=right - left, height=100)


def small_plots(plots: Sequence[Html]) -> Html | None:
    return element("div", join(plots), class_="growths") if any(plots) else None
