"""Learning curves as a chart: laid out as shapes on a page of `WIDTH`, then written as SVG or painted as pixels.

The SVG file needs no library and no script, and is readable on a phone, on white and on dark pages. The picture is for
places that show no SVG.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from hotloop.core.types import Array
from hotloop.render.numbers import axis_range, nice_ticks, tick_label
from hotloop.render.picture import Canvas, Color


@dataclass(frozen=True)
class Curve:
    """All arrays have one entry per point; `low` and `high` are None where there is a single seed."""

    label: str
    x: Array
    mean: Array
    low: Array | None
    high: Array | None


WIDTH, PLOT_HEIGHT = 480, 230
_LEFT, _RIGHT, _LETTER, _LEGEND_ROW = 46, 16, 6.8, 18
_LONGEST_LABEL = 60
COLORS = 7
"""Arms before colors come round again; the next round is dashed."""
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
class Label:
    x: float
    y: float  # of the base line
    text: str
    style: str = ""  # of `title`, `small`, `middle`, `end`


@dataclass(frozen=True)
class Line:
    """A polyline; one of a single point is a dot."""

    x: Array
    y: Array
    style: str  # `grid`, `axis`, `threshold`, or `c` and the number of a color
    dash: tuple[float, ...] = ()


@dataclass(frozen=True)
class Band:
    """Between two lines over the same x."""

    x: Array
    top: Array
    bottom: Array
    style: str  # `b` and the number of a color


@dataclass(frozen=True)
class Chart:
    """Shapes in the order in which they are drawn."""

    height: float
    shapes: Sequence[Label | Line | Band]
    title: str
    spoken: str


def lay_out(curves: Sequence[Curve], frame: Frame) -> Chart:
    legend, top = _legend(curves)
    plot = _Plot(curves, frame, top)
    shapes = [
        Label(12, 22, frame.title, "title"),
        Label(12, 39, frame.subtitle, "small"),
        *legend,
        *plot.axes(),
        *plot.threshold(),
        *[band for number, curve in enumerate(curves) if (band := plot.band(curve, number)) is not None],
        *[plot.line(curve, number) for number, curve in enumerate(curves)],
        Label(WIDTH / 2, plot.bottom + 34, frame.x_label, "middle"),
        *([Label(WIDTH / 2, plot.bottom + 49, frame.x_note, "small middle")] if frame.x_note else []),
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

    def axes(self) -> list[Label | Line]:
        shapes: list[Label | Line] = []
        for tick in self._y_ticks:
            y = self.y(tick)
            shapes += [_across(y, "grid"), Label(_LEFT - 6, y + 4, tick_label(tick), "end")]
        for tick in self._x_ticks:
            x = self.x(tick)
            shapes.append(Line(np.array([x, x]), np.array([self.bottom, self.bottom + 4]), "axis"))
            shapes.append(Label(x, self.bottom + 17, tick_label(tick), "middle"))
        return [*shapes, _across(self.bottom, "axis")]

    def threshold(self) -> list[Label | Line]:
        if self._frame.threshold is None:
            return []
        y = self.y(self._frame.threshold)
        place = y + 13 if self.bottom - y > 18 else y - 4  # most curves start left and end above it
        name = f"threshold {tick_label(self._frame.threshold)}"
        return [_across(y, "threshold"), Label(WIDTH - _RIGHT - 4, place, name, "small end")]

    def band(self, curve: Curve, number: int) -> Band | None:
        if curve.low is None or curve.high is None:
            return None
        return Band(self._across(curve), self.y(curve.high), self.y(curve.low), f"b{number % COLORS}")

    def line(self, curve: Curve, number: int) -> Line:
        return Line(self._across(curve), self.y(curve.mean), f"c{number % COLORS}", _dash(number))

    def _across(self, curve: Curve) -> Array:
        places: Array = self.x(curve.x / self._frame.x_scale)
        return places


def _across(y: float, style: str) -> Line:
    return Line(np.array([_LEFT, WIDTH - _RIGHT], dtype=np.float64), np.array([y, y]), style)


def _legend(curves: Sequence[Curve]) -> tuple[list[Label | Line], float]:
    """Samples and labels in rows that fit, and where the plot may begin."""
    shapes: list[Label | Line] = []
    x, y = 12.0, 58.0
    for number, curve in enumerate(curves):
        label = curve.label if len(curve.label) <= _LONGEST_LABEL else curve.label[: _LONGEST_LABEL - 1] + "…"
        width = 28 + _LETTER * len(label) + 16
        if x > 12 and x + width > WIDTH:
            x, y = 12.0, y + _LEGEND_ROW
        sample = np.array([x, x + 22.0]), np.array([y - 4, y - 4])
        shapes += [Line(*sample, f"c{number % COLORS}", _dash(number)), Label(x + 28, y, label)]
        x += width
    return shapes, y + 16


def _dash(number: int) -> tuple[float, ...]:
    return _DASHES[number // COLORS % len(_DASHES)]


def _spoken(curves: Sequence[Curve], frame: Frame) -> str:
    ends = [f"{curve.label} ends at {tick_label(float(curve.mean[-1]))}" for curve in curves]
    return f"{frame.subtitle}, against {frame.x_label}: {'; '.join(ends)}."


# Okabe & Ito's colors, told apart by color-blind readers too, darkened or lightened to stand out from either ground.
ON_LIGHT = ("#0072b2", "#d55e00", "#00855f", "#b4508a", "#8a6d00", "#2f9fd8", "#444444")
_ON_DARK = ("#56b4e9", "#f08030", "#1fc79a", "#e08fc0", "#f0e442", "#8ea8ff", "#c8c8c8")
INK, FAINT, GRID, PAGE = "#24292f", "#57606a", "#d8dee4", "#ffffff"
BAND_OPACITY = 0.18


def as_svg(chart: Chart) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {chart.height:g}" width="{WIDTH * 3 // 2}" '
        f'height="{chart.height * 3 // 2:g}" style="max-width:100%;height:auto" role="img">'
    )
    about = f"<title>{escape(chart.title)}</title><desc>{escape(chart.spoken)}</desc>"
    page = f'<rect class="page" width="{WIDTH}" height="{chart.height:g}" rx="6"/>'
    return "\n".join([head, about, _style(), page, *map(_element, chart.shapes), "</svg>\n"])


def _element(shape: Label | Line | Band) -> str:
    if isinstance(shape, Label):
        named = f' class="{shape.style}"' if shape.style else ""
        return f'<text x="{shape.x:.1f}" y="{shape.y:.1f}"{named}>{escape(shape.text)}</text>'
    if isinstance(shape, Band):
        there, back = _points(shape.x, shape.top), _points(shape.x[::-1], shape.bottom[::-1])
        return f'<path class="{shape.style}" d="M{there}L{back}Z"/>'
    dash = f' stroke-dasharray="{" ".join(f"{part:g}" for part in shape.dash)}"' if shape.dash else ""
    if len(shape.x) == 1:
        dot = 'stroke-linecap="round" stroke-width="6"'
        return f'<path class="{shape.style}"{dash} d="M{_points(shape.x, shape.y)}h0.1" {dot}/>'
    return f'<path class="{shape.style}"{dash} d="M{_points(shape.x, shape.y)}"/>'


def _points(x: Array, y: Array) -> str:
    return "L".join(f"{right:.1f} {down:.1f}" for right, down in zip(x, y, strict=True))


def _style() -> str:
    light = _colors(ON_LIGHT, page=PAGE, ink=INK, faint=FAINT, grid=GRID)
    dark = _colors(_ON_DARK, page="#161b22", ink="#e6edf3", faint="#9da7b1", grid="#373e47")
    return (
        "<style>text{font:12px system-ui,-apple-system,Segoe UI,Roboto,Helvetica,Arial,sans-serif}"
        ".title{font-size:14px;font-weight:600}.small{font-size:11px}.middle{text-anchor:middle}.end{text-anchor:end}"
        f"path{{fill:none}}[class^=c]{{stroke-width:2;stroke-linejoin:round}}[class^=b]{{fill-opacity:{BAND_OPACITY}}}"
        f".threshold{{stroke-dasharray:4 4}}{light}@media(prefers-color-scheme:dark){{{dark}}}</style>"
    )


def _colors(series: Sequence[str], *, page: str, ink: str, faint: str, grid: str) -> str:
    rules = [f".c{number}{{stroke:{color}}}.b{number}{{fill:{color}}}" for number, color in enumerate(series)]
    return (
        f"text{{fill:{ink}}}.small{{fill:{faint}}}.page{{fill:{page}}}.grid{{stroke:{grid}}}"
        f".axis,.threshold{{stroke:{faint}}}{''.join(rules)}"
    )


SCALE = 2.5
"""Pixels for each unit of the chart: 1,200 across."""


def as_pixels(chart: Chart) -> Array:
    """[height, width, 3] uint8, on white."""
    canvas = Canvas(round(WIDTH * SCALE), round(chart.height * SCALE), _rgb(PAGE))
    for shape in chart.shapes:
        if isinstance(shape, Label):
            _write(canvas, shape)
        elif isinstance(shape, Band):
            there, back = np.stack([shape.x, shape.top], axis=1), np.stack([shape.x, shape.bottom], axis=1)[::-1]
            canvas.area(SCALE * np.concatenate([there, back]), _rgb(ON_LIGHT[int(shape.style[1:])]), BAND_OPACITY)
        else:
            _draw(canvas, shape)
    return canvas.finished()


def _draw(canvas: Canvas, line: Line) -> None:
    points = SCALE * np.stack([line.x, line.y], axis=1)
    curve = line.style.startswith("c")
    width = (6.0 if len(points) == 1 else 2.0 if curve else 1.0) * SCALE
    color = _rgb(ON_LIGHT[int(line.style[1:])] if curve else GRID if line.style == "grid" else FAINT)
    dash = (4.0, 4.0) if line.style == "threshold" else line.dash
    if dash and len(points) > 1:
        canvas.dashes(points, color, width, (SCALE * dash[0], SCALE * dash[1]))
    else:
        canvas.line(points, color, width)


def _write(canvas: Canvas, words: Label) -> None:
    styles = words.style.split()
    size = 14.0 if "title" in styles else 11.0 if "small" in styles else 12.0
    anchor = 0.5 if "middle" in styles else 1.0 if "end" in styles else 0.0
    color = _rgb(FAINT if "small" in styles else INK)
    place = SCALE * words.x, SCALE * words.y
    canvas.write(words.text, *place, color, size=SCALE * size, anchor=anchor, bold="title" in styles)


def _rgb(color: str) -> Color:
    red, green, blue = bytes.fromhex(color.removeprefix("#"))
    return red, green, blue
