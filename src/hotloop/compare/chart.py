"""Curves as one SVG file: no library, no script, readable on a phone, on white and on dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from hotloop.compare.curves import Curve
from hotloop.compare.ticks import axis_range, nice_ticks, short_number
from hotloop.core.types import Array

WIDTH, PLOT_HEIGHT = 480, 230
_LEFT, _RIGHT, _LETTER, _LEGEND_ROW = 46, 16, 6.8, 18
_LONGEST_LABEL = 60
# Okabe & Ito's colours, told apart by colour-blind readers too, darkened or lightened to stand out from either ground.
_ON_LIGHT = ("#0072b2", "#d55e00", "#00855f", "#b4508a", "#8a6d00", "#2f9fd8", "#444444")
_ON_DARK = ("#56b4e9", "#f08030", "#1fc79a", "#e08fc0", "#f0e442", "#8ea8ff", "#c8c8c8")
_DASHES = ("", "7 3", "2 3")


@dataclass(frozen=True)
class Frame:
    """What stands around the curves."""

    title: str
    subtitle: str
    x_label: str
    threshold: float | None = None
    x_note: str = ""
    x_scale: float = 1.0  # the curves' x are divided by it: 60 shows seconds as minutes


def draw_chart(curves: Sequence[Curve], frame: Frame) -> str:
    """The text of an SVG file."""
    legend, top = _legend(curves)
    plot = _Plot(curves, frame, top)
    height = plot.bottom + (58 if frame.x_note else 44)
    body = [
        f'<rect class="page" width="{WIDTH}" height="{height}" rx="6"/>',
        _text(12, 22, frame.title, "title"),
        _text(12, 39, frame.subtitle, "small"),
        legend,
        plot.axes(),
        plot.threshold(),
        *[plot.band(curve, number) for number, curve in enumerate(curves)],
        *[plot.line(curve, number) for number, curve in enumerate(curves)],
        _text(WIDTH / 2, plot.bottom + 34, frame.x_label, "middle"),
        _text(WIDTH / 2, plot.bottom + 49, frame.x_note, "small middle") if frame.x_note else "",
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH * 3 // 2}" '
        f'height="{height * 3 // 2}" style="max-width:100%;height:auto" role="img">'
    )
    about = f"<title>{escape(frame.title)}</title><desc>{escape(_spoken(curves, frame))}</desc>"
    return "\n".join([head, about, _style(), *[part for part in body if part], "</svg>\n"])


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

    def axes(self) -> str:
        parts = []
        for tick in self._y_ticks:
            y = self.y(tick)
            parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}"/>')
            parts.append(_text(_LEFT - 6, y + 4, short_number(tick), "end"))
        for tick in self._x_ticks:
            x = self.x(tick)
            parts.append(f'<path class="axis" d="M{x:.1f} {self.bottom}v4"/>')
            parts.append(_text(x, self.bottom + 17, short_number(tick), "middle"))
        parts.append(f'<path class="axis" d="M{_LEFT} {self.bottom}H{WIDTH - _RIGHT}"/>')
        return "\n".join(parts)

    def threshold(self) -> str:
        if self._frame.threshold is None:
            return ""
        y = self.y(self._frame.threshold)
        name = f"threshold {short_number(self._frame.threshold)}"
        line = f'<path class="threshold" d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}"/>'
        return line + _text(_LEFT + 6, y - 4 if y - self.top > 14 else y + 13, name, "small")

    def band(self, curve: Curve, number: int) -> str:
        if curve.low is None or curve.high is None:
            return ""
        there, back = self._points(curve.x, curve.high), self._points(curve.x[::-1], curve.low[::-1])
        return f'<path class="b{number % len(_ON_LIGHT)}" d="M{there}L{back}Z"/>'

    def line(self, curve: Curve, number: int) -> str:
        place = f'class="c{number % len(_ON_LIGHT)}"{_dash(number)}'
        if len(curve.x) == 1:
            return (
                f'<path {place} d="M{self._points(curve.x, curve.mean)}h0.1" stroke-linecap="round" stroke-width="6"/>'
            )
        return f'<path {place} d="M{self._points(curve.x, curve.mean)}"/>'

    def _points(self, x: Array, y: Array) -> str:
        places = zip(self.x(x / self._frame.x_scale), self.y(y), strict=True)
        return "L".join(f"{right:.1f} {down:.1f}" for right, down in places)


def _legend(curves: Sequence[Curve]) -> tuple[str, float]:
    """Samples and labels in rows that fit, and where the plot may begin."""
    parts: list[str] = []
    x, y = 12.0, 58.0
    for number, curve in enumerate(curves):
        label = curve.label if len(curve.label) <= _LONGEST_LABEL else curve.label[: _LONGEST_LABEL - 1] + "…"
        width = 28 + _LETTER * len(label) + 16
        if x > 12 and x + width > WIDTH:
            x, y = 12.0, y + _LEGEND_ROW
        parts.append(f'<path class="c{number % len(_ON_LIGHT)}"{_dash(number)} d="M{x:.0f} {y - 4:.0f}h22"/>')
        parts.append(_text(x + 28, y, label, ""))
        x += width
    return "\n".join(parts), y + 16


def _dash(number: int) -> str:
    """Once the colours are used up, the next round of arms is dashed."""
    dash = _DASHES[number // len(_ON_LIGHT) % len(_DASHES)]
    return f' stroke-dasharray="{dash}"' if dash else ""


def _text(x: float, y: float, words: str, style: str) -> str:
    named = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{named}>{escape(words)}</text>'


def _spoken(curves: Sequence[Curve], frame: Frame) -> str:
    ends = [f"{curve.label} ends at {short_number(float(curve.mean[-1]))}" for curve in curves]
    return f"{frame.subtitle}, against {frame.x_label}: {'; '.join(ends)}."


def _style() -> str:
    light = _colours(_ON_LIGHT, page="#ffffff", ink="#24292f", faint="#57606a", grid="#d8dee4")
    dark = _colours(_ON_DARK, page="#161b22", ink="#e6edf3", faint="#9da7b1", grid="#373e47")
    return (
        "<style>text{font:12px system-ui,-apple-system,Segoe UI,Roboto,Helvetica,Arial,sans-serif}"
        ".title{font-size:14px;font-weight:600}.small{font-size:11px}.middle{text-anchor:middle}.end{text-anchor:end}"
        "path{fill:none}[class^=c]{stroke-width:2;stroke-linejoin:round}[class^=b]{fill-opacity:.18}"
        f".threshold{{stroke-dasharray:4 4}}{light}@media(prefers-color-scheme:dark){{{dark}}}</style>"
    )


def _colours(series: Sequence[str], *, page: str, ink: str, faint: str, grid: str) -> str:
    rules = [f".c{number}{{stroke:{colour}}}.b{number}{{fill:{colour}}}" for number, colour in enumerate(series)]
    return (
        f"text{{fill:{ink}}}.small{{fill:{faint}}}.page{{fill:{page}}}.grid{{stroke:{grid}}}"
        f".axis,.threshold{{stroke:{faint}}}{''.join(rules)}"
    )
