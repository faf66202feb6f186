"""Curves laid out as shapes on a page of `WIDTH`: what `svg.py` writes and `pixels.py` paints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotloop.compare.curves import Curve
from hotloop.compare.ticks import axis_range, nice_ticks, short_number
from hotloop.core.types import Array

WIDTH, PLOT_HEIGHT = 480, 230
_LEFT, _RIGHT, _LETTER, _LEGEND_ROW = 46, 16, 6.8, 18
_LONGEST_LABEL = 60
COLOURS = 7
"""Arms before colours come round again; the next round is dashed."""
_DASHES = ((), (7.0, 3.0), (2.0, 3.0))


@dataclass(frozen=True)
class Frame:
    """What stands around the curves."""

    title: str
    subtitle: str
    x_label: str
    threshold: float | None = None
    x_note: str = ""
    x_scale: float = 1.0  # the curves' x are divided by it: 60 shows seconds as minutes


@dataclass(frozen=True)
class Words:
    x: float
    y: float  # of the base line
    text: str
    style: str = ""  # of `title`, `small`, `middle`, `end`


@dataclass(frozen=True)
class Line:
    """A polyline; one of a single point is a dot."""

    x: Array
    y: Array
    style: str  # `grid`, `axis`, `threshold`, or `c` and the number of a colour
    dash: tuple[float, ...] = ()


@dataclass(frozen=True)
class Band:
    """Between two lines over the same x."""

    x: Array
    top: Array
    bottom: Array
    style: str  # `b` and the number of a colour


@dataclass(frozen=True)
class Chart:
    """Shapes in the order in which they are drawn."""

    height: float
    shapes: Sequence[Words | Line | Band]
    title: str
    spoken: str


def lay_out(curves: Sequence[Curve], frame: Frame) -> Chart:
    legend, top = _legend(curves)
    plot = _Plot(curves, frame, top)
    shapes = [
        Words(12, 22, frame.title, "title"),
        Words(12, 39, frame.subtitle, "small"),
        *legend,
        *plot.axes(),
        *plot.threshold(),
        *[band for number, curve in enumerate(curves) if (band := plot.band(curve, number)) is not None],
        *[plot.line(curve, number) for number, curve in enumerate(curves)],
        Words(WIDTH / 2, plot.bottom + 34, frame.x_label, "middle"),
        *([Words(WIDTH / 2, plot.bottom + 49, frame.x_note, "small middle")] if frame.x_note else []),
    ]
    return Chart(plot.bottom + (58 if frame.x_note else 44), shapes, frame.title, _spoken(curves, frame))


class _Plot:
    """The rectangle of the curves: from data to places on the page."""

    def __init__(self, curves: Sequence[Curve], frame: Frame, top: float) -> None:
        self._frame = frame
        self.top, self.bottom = top, top + PLOT_HEIGHT
        xs = np.concatenate([curve.x for curve in curves]) / frame.x_scale if curves else np.array([0.0, 1.0])
        parts = [part for curve in curves for part in (curve.mean, curve.low, curve.high) if part is not None]
        ys = (
            np.concatenate([*parts, [] if frame.threshold is None else [frame.threshold]]) if parts else np.array([0.0])
        )
        self._low, self._high = axis_range(float(ys.min()), float(ys.max()))
        self._x_end = float(xs.max()) or 1.0
        self._y_ticks, self._x_ticks = nice_ticks(self._low, self._high), nice_ticks(0.0, self._x_end)

    def x(self, value: Any) -> Any:
        return _LEFT + value / self._x_end * (WIDTH - _LEFT - _RIGHT)

    def y(self, value: Any) -> Any:
        return self.bottom - (value - self._low) / (self._high - self._low) * PLOT_HEIGHT

    def axes(self) -> list[Words | Line]:
        shapes: list[Words | Line] = []
        for tick in self._y_ticks:
            y = self.y(tick)
            shapes += [_across(y, "grid"), Words(_LEFT - 6, y + 4, short_number(tick), "end")]
        for tick in self._x_ticks:
            x = self.x(tick)
            shapes.append(Line(np.array([x, x]), np.array([self.bottom, self.bottom + 4]), "axis"))
            shapes.append(Words(x, self.bottom + 17, short_number(tick), "middle"))
        return [*shapes, _across(self.bottom, "axis")]

    def threshold(self) -> list[Words | Line]:
        if self._frame.threshold is None:
            return []
        y = self.y(self._frame.threshold)
        place = y + 13 if self.bottom - y > 18 else y - 4  # most curves start left and end above it
        name = f"threshold {short_number(self._frame.threshold)}"
        return [_across(y, "threshold"), Words(WIDTH - _RIGHT - 4, place, name, "small end")]

    def band(self, curve: Curve, number: int) -> Band | None:
        if curve.low is None or curve.high is None:
            return None
        return Band(self._across(curve), self.y(curve.high), self.y(curve.low), f"b{number % COLOURS}")

    def line(self, curve: Curve, number: int) -> Line:
        return Line(self._across(curve), self.y(curve.mean), f"c{number % COLOURS}", _dash(number))

    def _across(self, curve: Curve) -> Array:
        return self.x(curve.x / self._frame.x_scale)


def _across(y: float, style: str) -> Line:
    return Line(np.array([_LEFT, WIDTH - _RIGHT], dtype=np.float64), np.array([y, y]), style)


def _legend(curves: Sequence[Curve]) -> tuple[list[Words | Line], float]:
    """Samples and labels in rows that fit, and where the plot may begin."""
    shapes: list[Words | Line] = []
    x, y = 12.0, 58.0
    for number, curve in enumerate(curves):
        label = curve.label if len(curve.label) <= _LONGEST_LABEL else curve.label[: _LONGEST_LABEL - 1] + "…"
        width = 28 + _LETTER * len(label) + 16
        if x > 12 and x + width > WIDTH:
            x, y = 12.0, y + _LEGEND_ROW
        sample = np.array([x, x + 22.0]), np.array([y - 4, y - 4])
        shapes += [Line(*sample, f"c{number % COLOURS}", _dash(number)), Words(x + 28, y, label)]
        x += width
    return shapes, y + 16


def _dash(number: int) -> tuple[float, ...]:
    return _DASHES[number // COLOURS % len(_DASHES)]


def _spoken(curves: Sequence[Curve], frame: Frame) -> str:
    ends = [f"{curve.label} ends at {short_number(float(curve.mean[-1]))}" for curve in curves]
    return f"{frame.subtitle}, against {frame.x_label}: {'; '.join(ends)}."
