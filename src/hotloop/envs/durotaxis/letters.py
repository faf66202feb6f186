"""Small letters for pictures: dots on a grid, smoothed as they are enlarged.

As many as the pictures of durotaxis say something with; any other character is a box.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

import numpy as np

from hotloop.core.types import Array

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
