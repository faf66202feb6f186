"""A picture to draw on: boxes, curves, lines, discs and words, smooth at their edges."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hotloop.core.types import Array
from hotloop.envs.durotaxis.letters import STANDING, cover_of

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
