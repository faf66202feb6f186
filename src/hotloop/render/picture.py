"""Pictures through Pillow: a canvas with smooth edges and words, and arrays as PNG files.

Pillow is imported when the first picture is painted: pages and SVG files do without it, and so does `import hotloop`.
"""

from __future__ import annotations

import functools
import io
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hotloop.core.extras import is_installed
from hotloop.core.types import Array

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

Color = tuple[int, int, int]
_ANCHORS = {0.0: "ls", 0.5: "ms", 1.0: "rs"}
"""Left, middle and right on the base line."""


def mixed(one: Color, other: Color, share: float) -> Color:
    """From `one` at 0 to `other` at 1."""
    red, green, blue = (round(start + share * (end - start)) for start, end in zip(one, other, strict=True))
    return red, green, blue


class Box(NamedTuple):
    """In pixels, `right` and `bottom` being just outside."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top


def can_paint() -> bool:
    """Whether Pillow is installed."""
    return is_installed("PIL")


class Canvas:
    """Painted `finer` times larger and averaged down, which smooths every edge. Places are in pixels of the finished
    picture, (0, 0) being its upper left corner; what lies outside is not painted."""

    def __init__(self, width: int, height: int, color: Color, *, finer: int = 2) -> None:
        from PIL import Image, ImageDraw

        self._finer = finer
        self._image = Image.new("RGB", (finer * width, finer * height), color)
        self._opaque, self._blending = ImageDraw.Draw(self._image), ImageDraw.Draw(self._image, "RGBA")

    def finished(self) -> Array:
        """[height, width, 3] uint8."""
        return np.array(self._image.reduce(self._finer))

    def fill(self, box: Box, color: Color, opacity: float = 1.0) -> None:
        left, top, right, bottom = (round(self._finer * side) for side in box)
        if right > left and bottom > top:
            self._draw(opacity).rectangle((left, top, right - 1, bottom - 1), _ink(color, opacity))

    def shade(self, box: Box, colors: Array) -> None:
        """With a color for each column [width, 3]."""
        from PIL import Image

        left, top, right, bottom = (round(self._finer * side) for side in box)
        row = Image.fromarray(colors.round().astype(np.uint8)[None])
        self._image.paste(row.resize((right - left, bottom - top), Image.Resampling.NEAREST), (left, top))

    def frame(self, box: Box, color: Color) -> None:
        """A line of one pixel just outside the box."""
        left, top, right, bottom = (round(self._finer * side) for side in box)
        outside = (left - self._finer, top - self._finer, right + self._finer - 1, bottom + self._finer - 1)
        self._opaque.rectangle(outside, outline=color, width=self._finer)

    def line(self, points: Array, color: Color, width: float = 2.0, opacity: float = 1.0) -> None:
        """Through points [n, 2]; an opaque one has round ends, and where n is 1 it is a dot. Of more than two points it
        must be opaque: where its parts meet it would darken itself."""
        if len(points) > 1:
            wide = max(1, round(self._finer * width))
            self._draw(opacity).line(self._places(points, wide), _ink(color, opacity), wide, joint="curve")
        if opacity == 1.0:
            for end in (points[0], points[-1]):
                self.disc(end, width / 2, color)

    def dashes(self, points: Array, color: Color, width: float, dash: tuple[float, ...]) -> None:
        """A line of which strokes of `dash[0]` are painted and gaps of `dash[1]` are not."""
        along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
        wide = max(1, round(self._finer * width))
        for start in np.arange(0.0, along[-1], sum(dash)):
            end = min(start + dash[0], along[-1])
            places = np.concatenate([[start], along[(along > start) & (along < end)], [end]])
            piece = np.stack([np.interp(places, along, axis) for axis in np.transpose(points)], axis=1)
            self._opaque.line(self._places(piece, wide), color, wide, joint="curve")

    def area(self, points: Array, color: Color, opacity: float = 1.0) -> None:
        """What a line through points [n, 2] and back to the first goes around."""
        self._draw(opacity).polygon(self._places(points), _ink(color, opacity))

    def disc(self, centre: Array | tuple[float, float], radius: float, color: Color) -> None:
        x, y = (self._finer * float(place) for place in centre)
        across = max(1, round(2 * self._finer * radius))
        left, top = round(x - across / 2), round(y - across / 2)
        self._opaque.ellipse((left, top, left + across - 1, top + across - 1), color)

    def write(
        self, text: str, x: float, y: float, color: Color, *, size: float, anchor: float = 0.0, bold: bool = False
    ) -> int:
        """On the base line y in letters of `size`, beginning at x (`anchor` 0), around it (0.5) or ending there (1);
        returns the text's width."""
        text = "".join(letter if letter.isprintable() else " " for letter in text)  # one line, whoever named the thing
        font, place = _font(round(self._finer * size)), (self._finer * x, self._finer * y)
        stroke = round(self._finer * size / 60) if bold else 0
        self._opaque.text(place, text, color, font, _ANCHORS[anchor], stroke_width=stroke)
        return round(font.getlength(text) / self._finer)

    def _draw(self, opacity: float) -> ImageDraw:
        return self._opaque if opacity == 1.0 else self._blending

    def _places(self, points: Array, wide: int = 1) -> list[tuple[int, int]]:
        """Of pixels as Pillow counts them; a line of even width lies half a pixel right of and below its place."""
        places = self._finer * np.asarray(points, np.float64) - (0.5 if wide % 2 else 1.0)
        return list(map(tuple, places.round().astype(int).tolist()))


def _ink(color: Color, opacity: float) -> tuple[int, ...]:
    return color if opacity == 1.0 else (*color, round(255 * opacity))


@functools.cache
def _font(size: int) -> FreeTypeFont | ImageFont:
    """The one that comes with Pillow: no font file to look for, the same letters on every machine."""
    from PIL import ImageFont

    return ImageFont.load_default(size)


def png_bytes(frame: Array) -> bytes:
    """A picture [height, width, 3] uint8 as a PNG file, without loss."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(frame)).save(file, "PNG")
    return file.getvalue()


def shrunk(frame: Array, longest_side: int) -> Array:
    """The picture with its longer side so many pixels long, or as it is where it is no longer."""
    from PIL import Image

    if max(frame.shape[:2]) <= longest_side:
        return frame
    image = Image.fromarray(np.ascontiguousarray(frame))
    image.thumbnail((longest_side, longest_side), Image.Resampling.BOX)  # rings of other filters make PNG files larger
    return np.array(image)
