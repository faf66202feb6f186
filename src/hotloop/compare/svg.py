"""A chart as one SVG file: no library, no script, readable on a phone, on white and on dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from hotloop.compare.chart import WIDTH, Band, Chart, Line, Words
from hotloop.core.types import Array

# Okabe & Ito's colours, told apart by colour-blind readers too, darkened or lightened to stand out from either ground.
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


def _element(shape: Words | Line | Band) -> str:
    if isinstance(shape, Words):
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
    light = _colours(ON_LIGHT, page=PAGE, ink=INK, faint=FAINT, grid=GRID)
    dark = _colours(_ON_DARK, page="#161b22", ink="#e6edf3", faint="#9da7b1", grid="#373e47")
    return (
        "<style>text{font:12px system-ui,-apple-system,Segoe UI,Roboto,Helvetica,Arial,sans-serif}"
        ".title{font-size:14px;font-weight:600}.small{font-size:11px}.middle{text-anchor:middle}.end{text-anchor:end}"
        f"path{{fill:none}}[class^=c]{{stroke-width:2;stroke-linejoin:round}}[class^=b]{{fill-opacity:{BAND_OPACITY}}}"
        f".threshold{{stroke-dasharray:4 4}}{light}@media(prefers-color-scheme:dark){{{dark}}}</style>"
    )


def _colours(series: Sequence[str], *, page: str, ink: str, faint: str, grid: str) -> str:
    rules = [f".c{number}{{stroke:{colour}}}.b{number}{{fill:{colour}}}" for number, colour in enumerate(series)]
    return (
        f"text{{fill:{ink}}}.small{{fill:{faint}}}.page{{fill:{page}}}.grid{{stroke:{grid}}}"
        f".axis,.threshold{{stroke:{faint}}}{''.join(rules)}"
    )
