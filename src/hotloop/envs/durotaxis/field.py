"""The colony on its ground, seen from above; a small one is shown larger in a corner where nobody is."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.types import Array
from hotloop.envs.durotaxis.canvas import Box, Canvas, Colour
from hotloop.envs.durotaxis.step_kernels import GOAL

FIELD = Box(20, 64, 620, 464)
GLASS = (236, 140)  # width and height of the magnifying glass, in pixels
STRENGTHS = (16, 12, 8, 6, 4, 3, 2)
SKY, GRID, FAINT, INK = (24, 28, 36), (60, 68, 84), (140, 148, 164), (216, 220, 228)
SOFT, STIFF, GOAL_LINE = (30, 35, 46), (78, 112, 130), (235, 76, 70)
NEW, YOUNG, OLD, EDGE = (64, 210, 130), (250, 200, 110), (160, 110, 220), (206, 212, 222)
OLD_AGE = 10  # steps
CROWD = 60
"""More nodes than this are drawn smaller and without a rim: rims would black out the crowd."""


def stiffness(now: dict[str, Any], x: Array) -> Array:
    m, b = now["m"], now["b"]
    return m * x + b if now["substrate"] == "linear" else b * np.exp(m * x)


def stiffness_shares(now: dict[str, Any], columns: int) -> Array:
    """[columns]: from left to right over the field, 0 where it is softest and 1 where it is stiffest."""
    values = stiffness(now, (np.arange(columns) + 0.5) / columns * now["field"][0])
    return (values - values.min()) / max(float(np.ptp(values)), 1e-9)


def shades(now: dict[str, Any], columns: int) -> Array:
    """[columns, 3]: the ground's colours."""
    return SOFT + stiffness_shares(now, columns)[:, None] * (np.array(STIFF) - SOFT)


def age_colour(age: int) -> Colour:
    """Of a node: one for those just born, then from young to old."""
    if age == 0:
        return NEW
    share = min((age - 1) / (OLD_AGE - 1), 1.0)
    red, green, blue = (round(one + share * (other - one)) for one, other in zip(YOUNG, OLD, strict=True))
    return red, green, blue


def paint_field(canvas: Canvas, now: dict[str, Any]) -> None:
    width, height = now["field"]
    scale = min(FIELD.width / width, FIELD.height / height)
    box = _centred(FIELD, round(width * scale), round(height * scale))
    canvas.fill(box, shades(now, box.width))
    canvas.frame(box, GRID)
    paint_goal(canvas, box, 2)
    canvas.write("goal", box.left + GOAL * box.width - 4, box.top + 18, GOAL_LINE, anchor=1)
    _legend(canvas)
    points = np.array([box.left, box.bottom]) + now["positions"] * [scale, -scale]  # y grows upwards
    _paint_colony(canvas, now, points, 2.5)
    if len(points):
        _magnify(canvas, now, points, box)


def paint_goal(canvas: Canvas, box: Box, width: int) -> None:
    """Across a box that is as wide as the field."""
    left = box.left + round(GOAL * box.width)
    for top in range(box.top + 3, box.bottom, 12):
        canvas.fill(Box(left, top, left + width, min(top + 6, box.bottom)), GOAL_LINE)


def _legend(canvas: Canvas) -> None:
    canvas.write("colony", FIELD.left, FIELD.top - 8, FAINT)
    x = FIELD.right
    for words, age in ((f"{OLD_AGE} steps and older", OLD_AGE), ("1 step", 1), ("new", 0)):
        x -= canvas.write(words, x, FIELD.top - 8, FAINT, anchor=1) + 8
        canvas.disc(np.array([x, FIELD.top - 13.0]), 4.0, age_colour(age))
        x -= 16


def _paint_colony(canvas: Canvas, now: dict[str, Any], points: Array, radius: float) -> None:
    """The young on top of the old."""
    crowded = len(points) > CROWD
    for source, target in now["edges"]:
        canvas.line(points[source], points[target], EDGE, opacity=0.3 if crowded else 0.6)
    for node in np.argsort(-now["ages"], kind="stable"):
        if not crowded:
            canvas.disc(points[node], radius + 1, SKY)
        canvas.disc(points[node], 0.6 * radius if crowded else radius, age_colour(int(now["ages"][node])))


def _magnify(canvas: Canvas, now: dict[str, Any], points: Array, field: Box) -> None:
    """Below or above the colony and on its other side, as large as it fits; nothing where it would not grow."""
    low, high = points.min(axis=0), points.max(axis=0)
    room = np.array(GLASS) - 24
    strength = next((one for one in STRENGTHS if (one * (high - low) <= room).all()), 0)
    middle = (low + high) / 2
    left = field.left + 12 if middle[0] > (field.left + field.right) / 2 else field.right - GLASS[0] - 48
    top = field.bottom - GLASS[1] - 12 if middle[1] < (field.top + field.bottom) / 2 + 20 else field.top + 12
    box = Box(left, top, left + GLASS[0], top + GLASS[1])
    if not strength or field.width < 2 * GLASS[0] or field.height < 2 * GLASS[1]:
        return
    canvas.fill(box, SKY, 0.8)
    canvas.frame(box, FAINT)
    canvas.frame(_around(low, high), FAINT)
    canvas.write(f"x {strength}", box.left + 6, box.top + 17, FAINT)
    _paint_colony(canvas, now, np.array([left + GLASS[0] / 2, top + GLASS[1] / 2]) + strength * (points - middle), 4.0)


def _around(low: Array, high: Array) -> Box:
    (left, top), (right, bottom) = np.floor(low - 6).astype(int), np.ceil(high + 6).astype(int)
    return Box(left, top, right, bottom)


def _centred(box: Box, width: int, height: int) -> Box:
    left, top = box.left + (box.width - width) // 2, box.top + (box.height - height) // 2
    return Box(left, top, left + max(width, 1), top + max(height, 1))
