"""A cart and its pole as a picture or as text for a terminal, from a saved state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from hotloop.core.types import Array
from hotloop.envs.cartpole_kernels import HALF_LENGTH, POSITION_LIMIT

Colour = tuple[int, int, int]
Point = tuple[float, float]  # metres right of the track's middle and above the ground

SKY, GROUND, LIMIT, CART, POLE, AXLE = (
    (24, 28, 36),
    (60, 68, 84),
    (235, 76, 70),
    (110, 150, 220),
    (240, 190, 110),
    (190, 255, 170),
)
WORLD_WIDTH = 5.2  # a little more than the track of 4.8
CART_HALF_WIDTH, CART_HEIGHT, GROUND_HEIGHT = 0.2, 0.24, 0.3
PICTURE_SIZE = (480, 176)  # pixels, width and height
TEXT_SIZE = (70, 24)  # the same for a terminal, where a character shows two pixels, one above the other
PLAIN_SIZE = (70, 9)  # characters


def final_state(state: Mapping[str, Array], final_obs: Any) -> dict[str, Array]:
    """How an episode ended: the env has restarted by then, but its observation is the whole body."""
    return {**state, "body": np.asarray(final_obs, np.float64)}


def frame(state: Mapping[str, Array], index: int) -> Array:
    """A picture of env `index`, [height, width, 3] uint8."""
    return _picture(state["body"][index], *PICTURE_SIZE)


def text(state: Mapping[str, Array], index: int, colour: bool = True) -> str:
    """Env `index` for a terminal, in 24-bit colour or as plain characters."""
    body = state["body"][index]
    return _half_blocks(_picture(body, *TEXT_SIZE)) if colour else _plain_text(body)


def _picture(body: Array, width: int, height: int) -> Array:
    scale = width / WORLD_WIDTH
    thin = max(0.02, 0.5 / scale)  # half a pixel at least, or a small picture loses its lines
    picture = np.empty((height, width, 3))
    picture[...] = SKY
    axle = (float(body[0]), CART_HEIGHT)
    _paint_box(picture, GROUND, (0.0, -thin), WORLD_WIDTH, thin)
    for limit in (-POSITION_LIMIT, POSITION_LIMIT):
        _paint_box(picture, LIMIT, (limit, 0.1), thin, 0.1)
    _paint_box(picture, CART, (axle[0], CART_HEIGHT / 2), CART_HALF_WIDTH, CART_HEIGHT / 2)
    _paint_line(picture, POLE, axle, _tip(body), 2 * thin)
    _paint_line(picture, AXLE, axle, axle, 2 * thin)
    return picture.round().astype(np.uint8)


def _tip(body: Array) -> Point:
    length, angle = 2 * HALF_LENGTH, float(body[2])
    return float(body[0]) + length * math.sin(angle), CART_HEIGHT + length * math.cos(angle)


def _paint_box(picture: Array, colour: Colour, centre: Point, half_width: float, half_height: float) -> None:
    part, right, up = _part(picture, centre, centre, half_width, half_height)
    outside = np.maximum(abs(right - centre[0]) - half_width, abs(up - centre[1]) - half_height)
    _blend(part, colour, outside * picture.shape[1] / WORLD_WIDTH)


def _paint_line(picture: Array, colour: Colour, start: Point, end: Point, radius: float) -> None:
    """With round ends."""
    part, right, up = _part(picture, start, end, radius, radius)
    along_x, along_up = end[0] - start[0], end[1] - start[1]
    length = along_x**2 + along_up**2 or 1.0
    share = np.clip(((right - start[0]) * along_x + (up - start[1]) * along_up) / length, 0.0, 1.0)
    outside = np.hypot(right - start[0] - share * along_x, up - start[1] - share * along_up) - radius
    _blend(part, colour, outside * picture.shape[1] / WORLD_WIDTH)


def _part(picture: Array, one: Point, other: Point, beside: float, above: float) -> tuple[Array, Array, Array]:
    """The pixels around two points, how far each column lies right of the middle and each row above the ground."""
    height, width, _ = picture.shape
    scale = width / WORLD_WIDTH
    right = (np.arange(width) + 0.5) / scale - WORLD_WIDTH / 2
    up = (height - np.arange(height) - 0.5) / scale - GROUND_HEIGHT
    columns = _near(right, one[0], other[0], beside + 1 / scale)
    rows = _near(up, one[1], other[1], above + 1 / scale)
    return picture[rows, columns], right[None, columns], up[rows, None]


def _near(places: Array, one: float, other: float, margin: float) -> slice:
    found = np.flatnonzero((places > min(one, other) - margin) & (places < max(one, other) + margin))
    return slice(found[0], found[-1] + 1) if len(found) else slice(0)


def _blend(part: Array, colour: Colour, outside: Array) -> None:
    """Lay a colour over, as far as a pixel's centre lies inside the shape (`outside`, in pixels): smooth edges."""
    part += np.clip(0.5 - outside, 0.0, 1.0)[..., None] * (colour - part)


def _half_blocks(picture: Array) -> str:
    rows = []
    for above, below in zip(picture[0::2].tolist(), picture[1::2].tolist(), strict=True):
        blocks = (
            f"\x1b[38;2;{top[0]};{top[1]};{top[2]}m\x1b[48;2;{base[0]};{base[1]};{base[2]}m▀"
            for top, base in zip(above, below, strict=True)
        )
        rows.append("".join(blocks) + "\x1b[0m")
    return "\n".join(rows)


def _plain_text(body: Array) -> str:
    width, height = PLAIN_SIZE
    canvas = [[" "] * width for _ in range(height)]
    canvas[-1] = ["-"] * width
    for limit in (-POSITION_LIMIT, POSITION_LIMIT):
        canvas[-1][_column(limit)] = "|"
    start, end = float(body[0]), _tip(body)[0]
    lean = "/" if end - start > 0.1 else "\\" if end - start < -0.1 else "|"
    for step in range(height - 2):  # from the cart upwards
        share = (step + 0.5) / (height - 2)
        canvas[height - 3 - step][_column(start + share * (end - start))] = lean
    left = min(max(_column(start) - 2, 0), width - 5)
    canvas[-2][left : left + 5] = "[===]"
    return "\n".join("".join(row).rstrip() for row in canvas)


def _column(x: float) -> int:
    width = PLAIN_SIZE[0]
    return min(max(int((x / WORLD_WIDTH + 0.5) * width), 0), width - 1)
