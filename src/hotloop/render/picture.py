"""Pictures from arrays: lines, letters of strokes and of dots, PNG files.

A chart as pixels on white, for places that show no SVG.

Letters as strokes, for pictures without a font library: enough for labels, numbers and titles in English.

A letter is strokes between `|`, each a row of points `xy` on a grid: capitals stand between y = 0 and 7, small letters
begin at 2, tails end at 9. A stroke with `~` in front has its corners rounded, one with `@` is closed as well.

A picture to draw on: boxes, curves, lines, discs and words, smooth at their edges.

Small letters for pictures: dots on a grid, smoothed as they are enlarged.

As many as the pictures of durotaxis say something with; any other character is a box.

PNG files, written here: twenty lines against one more dependency.
"""

from __future__ import annotations

import functools
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hotloop.core.types import Array
from hotloop.render.chart import BAND_OPACITY, FAINT, GRID, INK, ON_LIGHT, PAGE, WIDTH, Band, Chart, Label, Line

_GAP, _SPACE = 1.9, 3.2
_UNKNOWN = "00 40 47 07 00"
_LETTERS = {
    **{"A": "07 20 47|14 34", "B": "00 07|~00 40 43 03|~03 43 47 07", "C": "~41 40 00 07 47 46"},
    **{"D": "00 07|~00 40 47 07", "E": "40 00 07 47|03 33", "F": "40 00 07|03 33", "G": "~41 40 00 07 47 44|44 24"},
    **{"H": "00 07|40 47|03 43", "I": "00 07", "J": "~30 37 07 05", "K": "00 07|40 04|13 47", "L": "00 07 47"},
    **{"M": "07 00 35 60 67", "N": "07 00 47 40", "O": "@00 40 47 07", "P": "07 00|~00 40 44 04"},
    **{"Q": "@00 40 47 07|25 48", "R": "07 00|~00 40 44 04|24 47", "S": "~41 40 00 03 43 47 07 06"},
    **{"T": "00 40|20 27", "U": "~00 07 47 40", "V": "00 27 40", "W": "00 17 32 57 60", "X": "00 47|40 07"},
    **{"Y": "00 23 40|23 27", "Z": "00 40 07 47", "a": "@02 42 47 07|42 47", "b": "00 07|@02 42 47 07"},
    **{"c": "~43 42 02 07 47 46", "d": "40 47|@02 42 47 07", "e": "04 44|~44 42 02 07 47 46", "f": "~30 10 17|02 32"},
    **{"g": "@02 42 47 07|~42 49 09 08", "h": "00 07|~04 02 42 47", "i": "02 07|00 00", "j": "~22 29 09|20 20"},
    **{"k": "00 07|32 05|14 37", "l": "00 07", "m": "02 07|~04 02 32 37|~34 32 62 67", "n": "02 07|~04 02 42 47"},
    **{"o": "@02 42 47 07", "p": "02 09|@02 42 47 07", "q": "42 49|@02 42 47 07", "r": "02 07|~04 02 32"},
    **{"s": "~33 32 02 04 35 37 07 06", "t": "~10 17 37|02 32", "u": "~02 07 47 45|42 47", "v": "02 27 42"},
    **{"w": "02 17 33 57 62", "x": "02 47|42 07", "y": "02 27|42 19", "z": "02 42 07 47"},
    **{"0": "@00 40 47 07", "1": "02 20 27", "2": "~01 00 40 43 07|07 47", "3": "~01 00 40 43 13|~13 43 47 07 06"},
    **{"4": "30 05 45|30 37", "5": "40 00 03|~03 43 47 07 06", "6": "@03 43 47 07|~40 00 05", "7": "00 40 17"},
    **{"8": "@00 40 43 03|@03 43 47 07", "9": "@00 40 44 04|~42 47 07", ".": "07 07", ",": "17 08", ":": "03 03|07 07"},
    **{";": "13 13|17 08", "-": "04 34", "+": "04 44|22 26", "=": "03 43|05 45", "/": "07 40", "\\": "00 47"},
    **{"(": "~20 01 06 27", ")": "~00 21 26 07", "[": "20 00 07 27", "]": "00 20 27 07", "|": "00 09", "_": "08 48"},
    **{"%": "@00 20 22 02|@35 55 57 37|50 07", "'": "00 02", '"': "00 02|20 22", "<": "42 04 46", ">": "02 44 06"},
    **{"!": "00 05|07 07", "?": "~01 00 40 43 24 25|27 27", "…": "07 07|27 27|47 47", "±": "03 43|21 25|07 47"},
    **{"*": "20 24|03 41|01 43", "#": "10 07|30 27|02 42|05 45", "&": "47 01 00 30 03 07 27 44", "`": "00 11"},
    **{"{": "~20 10 14 04|~04 14 17 27", "}": "~00 10 14 24|~24 14 17 07", "×": "02 46|42 06", "@": "@00 60 67 07"},
}


@functools.cache
def strokes_of(letter: str) -> tuple[list[Array], float]:
    """Polylines [n, 2] (x, y from the base line down) in grid units, and how far the next letter stands."""
    if letter.isspace():
        return [], _SPACE
    strokes = [_letter_stroke(text) for text in _LETTERS.get(letter, _UNKNOWN).split("|")]
    return strokes, max(float(stroke[:, 0].max()) for stroke in strokes) + _GAP


def _letter_stroke(text: str) -> Array:
    points = np.array([[float(place[0]), float(place[1]) - 7.0] for place in text.lstrip("~@").split()])
    if text[0] == "@":
        closed = _rounded(np.concatenate([points, points[:1]]), closed=True)
        return np.concatenate([closed, closed[:1]])
    return _rounded(points, closed=False) if text[0] == "~" else points


def _rounded(points: Array, closed: bool) -> Array:
    """Corners cut at a quarter from either side, twice (Chaikin)."""
    for _ in range(2):
        start, end = points[:-1], points[1:]
        cut = np.stack([0.75 * start + 0.25 * end, 0.25 * start + 0.75 * end], axis=1).reshape(-1, 2)
        points = np.concatenate([cut, cut[:1]]) if closed else np.concatenate([points[:1], cut[1:-1], points[-1:]])
    return points


def width_of(text: str) -> float:
    return sum(strokes_of(letter)[1] for letter in text) - _GAP if text else 0.0


SCALE = 2.5
"""Pixels for each unit of the chart: 1,200 across."""
_SIZES = {"title": 14.0, "small": 11.0, "": 12.0}
_UNIT = 1.24 / 12  # of a letter's grid, for each point of size


def as_pixels(chart: Chart) -> Array:
    """[height, width, 3] uint8."""
    size = round(chart.height * SCALE), round(WIDTH * SCALE)
    canvas = np.broadcast_to(_rgb(PAGE), (*size, 3)).astype(np.float32)
    for shape in chart.shapes:
        if isinstance(shape, Label):
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


def _write(canvas: Array, words: Label) -> None:
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


ROWS = 9  # of dots; the seventh stands on the line, two hang below it
STANDING = 7
SPACE = 3  # dots
FINE = 6  # pixels of a dot before it is brought down to its size
REACH = 2  # of a blur, in those pixels
_DRAWN = """
a b c d e f g h i j k l m n o
..... #.... .... ....# ..... ..## ..... #.... # .# #... #. ..... ..... .....
..... #.... .... ....# ..... .#.. ..... #.... . .. #... #. ..... ..... .....
.###. ####. .### .#### .###. ###. .#### ####. # .# #..# #. ##.#. ####. .###.
....# #...# #... #...# #...# .#.. #...# #...# # .# #.#. #. #.#.# #...# #...#
.#### #...# #... #...# ##### .#.. #...# #...# # .# ##.. #. #.#.# #...# #...#
#...# #...# #... #...# #.... .#.. #...# #...# # .# #.#. #. #.#.# #...# #...#
.#### ####. .### .#### .#### .#.. .#### #...# # .# #..# .# #.#.# #...# .###.
..... ..... .... ..... ..... .... ....# ..... . .# .... .. ..... ..... .....
..... ..... .... ..... ..... .... .###. ..... . #. .... .. ..... ..... .....
p q r s t u v w x y z
..... ..... .... ..... .#.. ..... ..... ..... ..... ..... .....
..... ..... .... ..... .#.. ..... ..... ..... ..... ..... .....
####. .#### #.## .#### ###. #...# #...# #...# #...# #...# #####
#...# #...# ##.. #.... .#.. #...# #...# #...# .#.#. #...# ...#.
#...# #...# #... .###. .#.. #...# #...# #.#.# ..#.. #...# ..#..
#...# #...# #... ....# .#.. #...# .#.#. #.#.# .#.#. #...# .#...
####. .#### #... ####. ..## .#### ..#.. .#.#. #...# .#### #####
#.... ....# .... ..... .... ..... ..... ..... ..... ....# .....
#.... ....# .... ..... .... ..... ..... ..... ..... .###. .....
0 1 2 3 4 5 6 7 8 9
.###. ..#.. .###. .###. ...#. ##### .###. ##### .###. .###.
#...# .##.. #...# #...# ..##. #.... #.... ....# #...# #...#
#...# ..#.. ....# ....# .#.#. ####. ####. ...#. #...# #...#
#...# ..#.. ..##. ..##. #..#. ....# #...# ...#. .###. #...#
#...# ..#.. .#... ....# ##### ....# #...# ..#.. #...# .####
#...# ..#.. #.... #...# ...#. #...# #...# ..#.. #...# ....#
.###. .###. ##### .###. ...#. .###. .###. ..#.. .###. .###.
..... ..... ..... ..... ..... ..... ..... ..... ..... .....
..... ..... ..... ..... ..... ..... ..... ..... ..... .....
. , - + = % ( ) / : I
. .. ... ..... .... ##..# .# #. ...# . ###
. .. ... ..#.. .... ##.#. #. .# ...# . .#.
. .. ... ..#.. #### ...#. #. .# ..#. # .#.
. .. ### ##### .... ..#.. #. .# ..#. . .#.
. .. ... ..#.. #### .#... #. .# .#.. . .#.
. .. ... ..#.. .... .#.## #. .# .#.. # .#.
# .# ... ..... .... #..## #. .# #... . ###
. .# ... ..... .... ..... .# #. #... . ...
. #. ... ..... .... ..... .. .. .... . ...
"""
_BOX = "##### #...# #...# #...# #...# #...# ##### ..... ....."


def _dots(rows: Iterable[str]) -> Array:
    return np.array([[dot == "#" for dot in row] for row in rows])


def _read(drawn: str) -> dict[str, Array]:
    """Of each block the first line names its letters; below them stand their dots, a space between two letters."""
    lines, found = drawn.strip().split("\n"), {" ": np.zeros((ROWS, SPACE), np.bool_)}
    for first in range(0, len(lines), ROWS + 1):
        columns = zip(*(line.split() for line in lines[first + 1 : first + 1 + ROWS]), strict=True)
        found |= {name: _dots(rows) for name, rows in zip(lines[first].split(), columns, strict=True)}
    return found


DOTS, UNKNOWN = _read(_DRAWN), _dots(_BOX.split())


def cover_of(text: str, size: float) -> Array:
    """How much of each pixel [height, width] the text covers, with dots `size` pixels wide: 1, 1.5, 2 or 3."""
    fine = np.concatenate([_enlarged(letter) for letter in text], axis=1)
    block = round(FINE / size)
    fine = np.pad(fine, [(0, -length % block) for length in fine.shape])
    height, width = (length // block for length in fine.shape)
    return fine.reshape(height, block, width, block).mean(axis=(1, 3))


@functools.cache
def _enlarged(letter: str) -> Array:
    """Blurred and made sharp again: corners become round, and dots that touch at a corner join. With half a dot of room
    on either side, one above and one below."""
    dots = np.pad(DOTS.get(letter, UNKNOWN), 1).repeat(FINE, axis=0).repeat(FINE, axis=1).astype(np.float32)
    for axis in (0, 1):
        for _ in range(2):
            dots = np.mean([np.roll(dots, shift, axis) for shift in range(-REACH, REACH + 1)], axis=0)
    return np.clip(4 * (dots - 0.42) + 0.5, 0.0, 1.0)[:, FINE // 2 : -FINE // 2]


Colour = tuple[int, int, int]


class Box(NamedTuple):
    """In pixels, `right` and `bottom` being just outside."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def width(self) -> int:
        return self.right - self.left

    @property
    def height(self) -> int:
        return self.bottom - self.top


class Canvas:
    def __init__(self, width: int, height: int, colour: Colour) -> None:
        self._pixels = np.empty((height, width, 3), np.float32)
        self._pixels[...] = colour

    def finished(self) -> Array:
        """[height, width, 3] uint8."""
        return self._pixels.round().astype(np.uint8)

    def fill(self, box: Box, colour: Colour | Array, opacity: float = 1.0) -> None:
        """With one colour, or one for each column [width, 3]."""
        part = self._part(box)
        part += opacity * (np.asarray(colour, np.float32) - part)

    def frame(self, box: Box, colour: Colour) -> None:
        for side in (
            Box(box.left - 1, box.top - 1, box.right + 1, box.top),
            Box(box.left - 1, box.bottom, box.right + 1, box.bottom + 1),
            Box(box.left - 1, box.top, box.left, box.bottom),
            Box(box.right, box.top, box.right + 1, box.bottom),
        ):
            self.fill(side, colour)

    def curve(self, box: Box, x: Array, y: Array, colour: Colour, width: float = 2.0) -> None:
        """Through points in the box, x ascending from its left and y down from its top: column by column, so that a
        thousand points cost what ten do."""
        edges = np.interp(np.arange(box.width + 1), x, y)
        upper, lower = np.minimum(edges[:-1], edges[1:]), np.maximum(edges[:-1], edges[1:])
        self.band(box, upper - width / 2, lower + width / 2, colour, until=float(x[-1]), since=float(x[0]))

    def band(
        self, box: Box, upper: Array, lower: Array, colour: Colour, opacity: float = 1.0, *, since: float, until: float
    ) -> None:
        """Between two rows [width], each for every column of the box from `since` to `until`."""
        rows, columns = np.arange(box.height)[:, None], np.arange(box.width)
        cover = np.clip(np.minimum(rows + 1, lower) - np.maximum(rows, upper), 0.0, 1.0)
        cover *= np.clip(np.minimum(columns + 1, until) - np.maximum(columns, since), 0.0, 1.0)
        self._blend(self._part(box), opacity * cover, colour)

    def line(self, start: Array, end: Array, colour: Colour, width: float = 1.2, opacity: float = 1.0) -> None:
        part, x, y = self._around(np.minimum(start, end) - width, np.maximum(start, end) + width)
        along = end - start
        share = ((x - start[0]) * along[0] + (y - start[1]) * along[1]) / max(float(along @ along), 1e-9)
        share = np.clip(share, 0.0, 1.0)
        distance = np.hypot(x - start[0] - share * along[0], y - start[1] - share * along[1])
        self._blend(part, opacity * np.clip(width / 2 + 0.5 - distance, 0.0, 1.0), colour)

    def disc(self, centre: Array, radius: float, colour: Colour | Array) -> None:
        part, x, y = self._around(centre - radius - 1, centre + radius + 1)
        self._blend(part, np.clip(radius + 0.5 - np.hypot(x - centre[0], y - centre[1]), 0.0, 1.0), colour)

    def write(self, text: str, x: float, y: float, colour: Colour, *, size: float = 1.5, anchor: float = 0.0) -> int:
        """On the line y, beginning at x (`anchor` 0), around it (0.5) or ending there (1); returns the text's width."""
        cover = cover_of(text, size)
        left, top = round(x - anchor * cover.shape[1]), round(y - (STANDING + 1) * size)
        part = self._part(Box(left, top, left + cover.shape[1], top + cover.shape[0]))
        self._blend(part, cover[: part.shape[0], : part.shape[1]], colour)
        return cover.shape[1]

    def _part(self, box: Box) -> Array:
        return self._pixels[max(box.top, 0) : max(box.bottom, 0), max(box.left, 0) : max(box.right, 0)]

    def _around(self, low: Array, high: Array) -> tuple[Array, Array, Array]:
        """The pixels between two corners, and where their middles lie."""
        (left, top), (right, bottom) = np.floor(low).astype(int), np.ceil(high).astype(int)
        box = Box(max(left, 0), max(top, 0), right + 1, bottom + 1)
        part = self._part(box)
        return part, np.arange(part.shape[1]) + box.left + 0.5, np.arange(part.shape[0])[:, None] + box.top + 0.5

    @staticmethod
    def _blend(part: Array, cover: Array, colour: Colour | Array) -> None:
        part += cover[..., None].astype(np.float32) * (np.asarray(colour, np.float32) - part)


SIGNATURE = b"\x89PNG\r\n\x1a\n"
EIGHT_BIT_RGB = bytes([8, 2, 0, 0, 0])  # depth, colour type, and the only compression, filter and interlace there are


def png_bytes(frame: Array) -> bytes:
    """A picture [height, width, 3] uint8 as a PNG file, without loss."""
    height, width, _ = frame.shape
    rows = np.zeros((height, 1 + 3 * width), np.uint8)  # every row starts with its filter: 0, none
    rows[:, 1:] = frame.reshape(height, 3 * width)
    header = struct.pack(">II", width, height) + EIGHT_BIT_RGB
    data = zlib.compress(rows.tobytes(), 6)
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def write_png(path: Path, frame: Array) -> None:
    path.write_bytes(png_bytes(frame))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
