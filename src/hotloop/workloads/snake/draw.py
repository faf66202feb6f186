"""A game as a picture or as colored text, from a saved state."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from hotloop.core.types import Array
from hotloop.workloads.snake.layout_kernels import FOOD, HEAD, LENGTH, NO_CELL

FPS = 15
"""Env steps per second that look natural."""
EMPTY, CHEQUER, TAIL, NECK, FACE, APPLE = (
    (24, 28, 36),
    (29, 34, 43),
    (24, 110, 74),
    (64, 190, 120),
    (190, 255, 170),
    (235, 76, 70),
)
PICTURE_SIZE = 320  # pixels, about


def cells(state: Mapping[str, Array], index: int) -> tuple[int, list[tuple[int, int]], tuple[int, int] | None]:
    """Of game `index`: the board's size, the body as (x, y) from head to tail, and the food."""
    body, game = state["body"][index], state["game"][index]
    slots = (game[HEAD] - np.arange(game[LENGTH])) % len(body)
    food = None if game[FOOD] == NO_CELL else _point(game[FOOD])
    return math.isqrt(len(body)), [_point(cell) for cell in body[slots]], food


def colors(state: Mapping[str, Array], index: int) -> Array:
    """The color of every cell, [size, size, 3] uint8; the body fades towards its tail."""
    size, body, food = cells(state, index)
    board = np.empty((size, size, 3), np.uint8)
    board[...] = EMPTY
    board[(np.indices((size, size)).sum(axis=0) % 2) == 1] = CHEQUER
    fade = np.linspace(0.0, 1.0, len(body))[:, None]
    for (x, y), color in zip(body, (1 - fade) * NECK + fade * TAIL, strict=True):
        board[y, x] = color
    board[body[0][1], body[0][0]] = FACE
    if food is not None:
        board[food[1], food[0]] = APPLE
    return board


def measures(first: Mapping[str, Array], now: Mapping[str, Array]) -> dict[str, float]:
    """The score of game 0 so far: how much the snake has grown."""
    return {"score": len(cells(now, 0)[1]) - len(cells(first, 0)[1])}


def frame(state: Mapping[str, Array], index: int) -> Array:
    """A picture of game `index`, [height, width, 3] uint8."""
    board = colors(state, index)
    pixels = max(4, PICTURE_SIZE // len(board))
    picture = board.repeat(pixels, axis=0).repeat(pixels, axis=1)
    return _ruled(picture, pixels)


def text(state: Mapping[str, Array], index: int, color: bool = True) -> str:
    """Game `index` for a terminal: two columns per cell, as blocks of 24-bit color or as plain characters."""
    if not color:
        return _plain_text(state, index)
    rows = []
    for row in colors(state, index):
        blocks = "".join(f"\x1b[48;2;{red};{green};{blue}m  " for red, green, blue in row.tolist())
        rows.append(blocks + "\x1b[0m")
    return "\n".join(rows)


def _plain_text(state: Mapping[str, Array], index: int) -> str:
    size, body, food = cells(state, index)
    board = [["."] * size for _ in range(size)]
    for x, y in body:
        board[y][x] = "o"
    board[body[0][1]][body[0][0]] = "@"
    if food is not None:
        board[food[1]][food[0]] = "*"
    return "\n".join(" ".join(row) for row in board)


def _ruled(picture: Array, pixels: int) -> Array:
    """Thin dark lines between cells, so that the windings of a long snake can be told apart."""
    if pixels >= 8:
        picture[pixels - 1 :: pixels] = EMPTY
        picture[:, pixels - 1 :: pixels] = EMPTY
    return picture


def _point(cell: int) -> tuple[int, int]:
    return int(cell) & 63, int(cell) >> 6
