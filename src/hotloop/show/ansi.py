"""How much colour a terminal shows, and text made to fit it."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Literal

Colours = Literal["none", "256", "millions"]

_CODE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_MILLIONS = re.compile(r"([34]8);2;(\d+);(\d+);(\d+)")
_LEVELS = (0, 95, 135, 175, 215, 255)  # of the 6 x 6 x 6 cube in the 256 colours
_FIRST_CUBE, _FIRST_GREY = 16, 232


def colours_of(environment: Mapping[str, str]) -> Colours:
    """`NO_COLOR` set to anything means none (no-color.org)."""
    if environment.get("NO_COLOR"):
        return "none"
    millions = environment.get("COLORTERM", "").lower() in ("truecolor", "24bit")
    return "millions" if millions else "256"


def fitted(text: str, colours: Colours) -> str:
    """The text with its 24-bit colours as the terminal can show them."""
    if colours != "256":
        return text
    return _MILLIONS.sub(lambda code: f"{code[1]};5;{nearest_256(int(code[2]), int(code[3]), int(code[4]))}", text)


@functools.cache
def nearest_256(red: int, green: int, blue: int) -> int:
    """The nearest of the 256 colours, in the cube or on the scale of greys."""
    levels = [min(range(6), key=lambda index: abs(_LEVELS[index] - part)) for part in (red, green, blue)]
    cube = [_LEVELS[index] for index in levels]
    step = min(max(round((red + green + blue) / 3 - 8) // 10, 0), 23)
    grey = [8 + 10 * step] * 3
    if _apart(grey, (red, green, blue)) < _apart(cube, (red, green, blue)):
        return _FIRST_GREY + step
    return _FIRST_CUBE + 36 * levels[0] + 6 * levels[1] + levels[2]


def size_of(text: str) -> tuple[int, int]:
    """Columns and rows that the text takes; codes take none."""
    lines = _CODE.sub("", text).split("\n")
    return max(len(line) for line in lines), len(lines)


def _apart(one: list[int], other: tuple[int, int, int]) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))
