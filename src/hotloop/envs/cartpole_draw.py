"""A cart and its pole as a picture or as text for a terminal, from a saved state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from hotloop.core.types import Array
from hotloop.envs.cartpole_kernels import HALF_LENGTH, POSITION_LIMIT
from hotloop.render.picture import Box, Canvas

FPS = 50
"""Env steps per second that look natural."""
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


def text(state: Mapping[str, Array], index: int, color: bool = True) -> str:
    """Env `index` for a terminal, in 24-bit color or as plain characters."""
    body = state["body"][index]
    return _half_blocks(_picture(body, *TEXT_SIZE)) if color else _plain_text(body)


def _picture(body: Array, width: int, height: int) -> Array:
    scale = width / WORLD_WIDTH
    thin = max(0.02, 0.5 / scale)  # half a pixel at least, or a small picture loses its lines
    canvas = Canvas(width, height, SKY, finer=4)

    def place(right: float, up: float) -> tuple[float, float]:
        return (right + WORLD_WIDTH / 2) * scale, height - (up + GROUND_HEIGHT) * scale

    def box(left: float, low: float, right: float, high: float) -> Box:
        return Box(*place(left, high), *place(right, low))

    x = float(body[0])
    canvas.fill(box(-WORLD_WIDTH, -2 * thin, WORLD_WIDTH, 0.0), GROUND)
    for limit in (-POSITION_LIMIT, POSITION_LIMIT):
        canvas.fill(box(limit - thin, 0.0, limit + thin, 0.2), LIMIT)
    canvas.fill(box(x - CART_HALF_WIDTH, 0.0, x + CART_HALF_WIDTH, CART_HEIGHT), CART)
    axle = place(x, CART_HEIGHT)
    canvas.line(np.array([axle, place(*_tip(body))]), POLE, 4 * thin * scale)
    canvas.disc(axle, 2 * thin * scale, AXLE)
    return canvas.finished()


def _tip(body: Array) -> tuple[float, float]:
    """Metres right of the track's middle and above the ground."""
    length, angle = 2 * HALF_LENGTH, float(body[2])
    return float(body[0]) + length * math.sin(angle), CART_HEIGHT + length * math.cos(angle)


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
