"""Letters as strokes, for pictures without a font library: enough for labels, numbers and titles in English.

A letter is strokes between `|`, each a row of points `xy` on a grid: capitals stand between y = 0 and 7, small letters
begin at 2, tails end at 9. A stroke with `~` in front has its corners rounded, one with `@` is closed as well.
"""

from __future__ import annotations

import functools

import numpy as np

from hotloop.core.types import Array

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
    strokes = [_stroke(text) for text in _LETTERS.get(letter, _UNKNOWN).split("|")]
    return strokes, max(float(stroke[:, 0].max()) for stroke in strokes) + _GAP


def _stroke(text: str) -> Array:
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
