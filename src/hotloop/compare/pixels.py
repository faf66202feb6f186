"""A chart as pixels on white, for places that show no SVG."""

from __future__ import annotations

import numpy as np

from hotloop.compare.chart import WIDTH, Band, Chart, Line, Words
from hotloop.compare.letters import strokes_of, width_of
from hotloop.compare.svg import BAND_OPACITY, FAINT, GRID, INK, ON_LIGHT, PAGE
from hotloop.core.types import Array

SCALE = 2.5
"""Pixels for each unit of the chart: 1,200 across."""
_SIZES = {"title": 14.0, "small": 11.0, "": 12.0}
_UNIT = 1.24 / 12  # of a letter's grid, for each point of size


def as_pixels(chart: Chart) -> Array:
    """[height, width, 3] uint8."""
    size = round(chart.height * SCALE), round(WIDTH * SCALE)
    canvas = np.broadcast_to(_rgb(PAGE), (*size, 3)).astype(np.float32)
    for shape in chart.shapes:
        if isinstance(shape, Words):
            _write(canvas, shape)
        elif isinstance(shape, Band):
            _fill(canvas, shape)
        else:
            _draw(canvas, shape)
    return canvas.round().astype(np.uint8)


def _draw(canvas: Array, line: Line) -> None:
    points = np.stack([line.x, line.y], axis=1) * SCALE
    curve = line.style.startswith("c")
    width = (6.0 if len(points) == 1 else 2.0 if curve else 1.0) * SCALE
    colour = ON_LIGHT[int(line.style[1:])] if curve else GRID if line.style == "grid" else FAINT
    dash = (4.0, 4.0) if line.style == "threshold" else line.dash
    pieces = _dashes(points, np.array(dash) * SCALE) if dash else [points]
    _stroke(canvas, pieces, width, colour)


def _dashes(points: Array, dash: Array) -> list[Array]:
    """The stretches of a polyline that a pattern of stroke and gap leaves."""
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    pieces = []
    for start in np.arange(0.0, along[-1], dash.sum()):
        end = min(start + dash[0], along[-1])
        places = np.concatenate([[start], along[(along > start) & (along < end)], [end]])
        pieces.append(np.stack([np.interp(places, along, points[:, axis]) for axis in (0, 1)], axis=1))
    return pieces


def _write(canvas: Array, words: Words) -> None:
    kind = next((kind for kind in ("title", "small") if kind in words.style), "")
    unit = _SIZES[kind] * _UNIT * SCALE
    wide = width_of(words.text) * unit
    share = 0.5 if "middle" in words.style else 1.0 if "end" in words.style.split() else 0.0
    x, y = words.x * SCALE - share * wide, words.y * SCALE
    pieces = []
    for letter in words.text:
        strokes, step = strokes_of(letter)
        pieces += [stroke * unit + np.array([x, y]) for stroke in strokes]
        x += step * unit
    _stroke(canvas, pieces, (1.7 if kind == "title" else 1.15) * SCALE, FAINT if kind == "small" else INK)


def _stroke(canvas: Array, pieces: list[Array], width: float, colour: str) -> None:
    """Round-ended lines, smooth at their edges; where pieces cross they do not darken each other."""
    pieces = [piece if len(piece) > 1 else np.repeat(piece, 2, axis=0) for piece in pieces]
    if not pieces:
        return
    reach = width / 2 + 1
    corners = np.concatenate(pieces)
    left, top = np.maximum(np.floor(corners.min(axis=0) - reach), 0).astype(int)
    right, bottom = np.minimum(np.ceil(corners.max(axis=0) + reach), canvas.shape[1::-1]).astype(int) + 1
    cover = np.zeros(canvas[top:bottom, left:right].shape[:2], np.float32)
    for piece in pieces:
        for start, end in zip(piece[:-1], piece[1:], strict=True):
            _cover(cover, start - (left, top), end - (left, top), width / 2)
    _blend(canvas[top:bottom, left:right], cover, colour)


def _cover(cover: Array, start: Array, end: Array, half: float) -> None:
    low = np.maximum(np.floor(np.minimum(start, end) - half - 1), 0).astype(int)
    high = np.maximum(np.ceil(np.maximum(start, end) + half + 1), 0).astype(int)
    part = cover[low[1] : high[1], low[0] : high[0]]
    y, x = np.ogrid[low[1] : low[1] + part.shape[0], low[0] : low[0] + part.shape[1]]
    across, down = x + 0.5 - start[0], y + 0.5 - start[1]
    direction = end - start
    share = np.clip((across * direction[0] + down * direction[1]) / max(float(direction @ direction), 1e-9), 0.0, 1.0)
    distance = np.hypot(across - share * direction[0], down - share * direction[1])
    np.maximum(part, np.clip(half + 0.5 - distance, 0.0, 1.0), out=part)


def _fill(canvas: Array, band: Band) -> None:
    """Column by column, with as much of a pixel as lies between the two lines."""
    columns = np.arange(canvas.shape[1])
    inside = columns[(columns + 0.5 >= band.x[0] * SCALE) & (columns + 0.5 <= band.x[-1] * SCALE)]
    if len(inside) == 0:
        return
    top, bottom = (np.interp(inside + 0.5, band.x * SCALE, edge * SCALE) for edge in (band.top, band.bottom))
    rows = np.arange(canvas.shape[0])[:, None]
    cover = np.clip(np.minimum(rows + 1, bottom) - np.maximum(rows, top), 0.0, 1.0) * BAND_OPACITY
    _blend(canvas[:, inside[0] : inside[-1] + 1], cover, ON_LIGHT[int(band.style[1:])])


def _blend(part: Array, cover: Array, colour: str) -> None:
    part += cover[..., None].astype(np.float32) * (_rgb(colour) - part)


def _rgb(colour: str) -> Array:
    return np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)], np.float32)
