"""A migrating colony as four panels: where it is, how stiff its ground is, how it got there and what it did.

The first shows the colony from above; a small one is shown larger in a corner where nobody is. The last two show what
`Past` remembers of the episode.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hotloop.core.types import Array
from hotloop.render.picture import Box, Canvas, Color, mixed
from hotloop.workloads.durotaxis.layout_kernels import HIGH, LOW, RATIO
from hotloop.workloads.durotaxis.step_kernels import GOAL

FIELD = Box(20, 64, 620, 464)
GLASS = (236, 140)  # width and height of the magnifying glass, in pixels
SMALL, LARGE = 14, 19  # letters, in pixels
DASH = (6.0, 6.0)
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
    """[columns, 3]: the ground's colors."""
    return SOFT + stiffness_shares(now, columns)[:, None] * (np.array(STIFF) - SOFT)


def age_color(age: int) -> Color:
    """Of a node: one for those just born, then from young to old."""
    if age == 0:
        return NEW
    return mixed(YOUNG, OLD, min((age - 1) / (OLD_AGE - 1), 1.0))


def paint_field(canvas: Canvas, now: dict[str, Any]) -> None:
    width, height = now["field"]
    scale = min(FIELD.width / width, FIELD.height / height)
    box = _centred(FIELD, round(width * scale), round(height * scale))
    canvas.shade(box, shades(now, round(box.width)))
    canvas.frame(box, GRID)
    paint_goal(canvas, box, 2)
    canvas.write("goal", box.left + GOAL * box.width - 5, box.top + 17, GOAL_LINE, size=SMALL, anchor=1)
    _legend(canvas)
    points = np.array([box.left, box.bottom]) + now["positions"] * [scale, -scale]  # y grows upwards
    _paint_colony(canvas, now, points, 2.5)
    if len(points):
        _magnify(canvas, now, points, box)


def paint_goal(canvas: Canvas, box: Box, width: int) -> None:
    """Across a box that is as wide as the field."""
    x = box.left + round(GOAL * box.width) + width / 2
    canvas.dashes(np.array([[x, box.top + 3], [x, box.bottom]]), GOAL_LINE, width, DASH)


def _legend(canvas: Canvas) -> None:
    canvas.write("colony", FIELD.left, FIELD.top - 8, FAINT, size=SMALL)
    x = FIELD.right
    for words, age in ((f"{OLD_AGE} steps and older", OLD_AGE), ("1 step", 1), ("new", 0)):
        x -= canvas.write(words, x, FIELD.top - 8, FAINT, size=SMALL, anchor=1) + 8
        canvas.disc((x, FIELD.top - 13.0), 4.0, age_color(age))
        x -= 16


def _paint_colony(canvas: Canvas, now: dict[str, Any], points: Array, radius: float) -> None:
    """The young on top of the old."""
    crowded = len(points) > CROWD
    for source, target in now["edges"]:
        canvas.line(points[[source, target]], EDGE, 1.2, 0.3 if crowded else 0.6)
    for node in np.argsort(-now["ages"], kind="stable"):
        if not crowded:
            canvas.disc(points[node], radius + 1, SKY)
        canvas.disc(points[node], 0.6 * radius if crowded else radius, age_color(int(now["ages"][node])))


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
    canvas.frame(Box(*np.floor(low - 6), *np.ceil(high + 6)), FAINT)
    canvas.write(f"x {strength}", box.left + 6, box.top + 17, FAINT, size=SMALL)
    _paint_colony(canvas, now, np.array([left + GLASS[0] / 2, top + GLASS[1] / 2]) + strength * (points - middle), 4.0)


def _centred(box: Box, width: int, height: int) -> Box:
    left, top = box.left + (box.width - width) // 2, box.top + (box.height - height) // 2
    return Box(left, top, left + max(width, 1), top + max(height, 1))


NAMES = ("delete ratio", "gamma", "alpha", "noise", "theta")


class Past:
    """One row for each moment of an episode, the first at its start."""

    def __init__(self, highest_ratio: float = 1.0) -> None:
        self.low, self.high = LOW, HIGH.copy()
        self.high[RATIO] = highest_ratio
        self._places: list[tuple[float, float, float]] = []
        self._actions: list[list[float]] = []

    def add(self, now: dict[str, Any]) -> None:
        """`now` is a snapshot."""
        x, centroid = now["positions"][:, 0], now["centroid"][0]
        self._places.append((centroid, x.min(), x.max()) if len(x) else (centroid, centroid, centroid))
        self._actions.append(now["action"])

    def __len__(self) -> int:
        """Steps made."""
        return len(self._places) - 1

    @property
    def places(self) -> Array:
        """[steps + 1, 3]: x of the centroid, of the left-most and of the right-most node."""
        return np.array(self._places)

    @property
    def actions(self) -> Array:
        """[steps, 5] as carried out."""
        return np.array(self._actions[1:]).reshape(-1, len(NAMES))

    @property
    def shares(self) -> Array:
        """The same from 0 at the lower end of a number's range to 1 at its upper."""
        return (self.actions - self.low) / np.maximum(self.high - self.low, 1e-9)


WIDTH, HEIGHT = 1000, 656
PROFILE, TRACK, ACTIONS = Box(690, 64, 980, 224), Box(64, 504, 620, 628), Box(690, 276, 980, 628)
TRACES: tuple[Color, ...] = ((235, 96, 90), (250, 200, 110), (64, 190, 120), (88, 199, 199), (150, 140, 240))
HORIZONS = (25, 50, 100, 200, 500, 1000)


def picture(now: dict[str, Any], past: Past) -> Array:
    """[height, width, 3] uint8 of a snapshot, the last that `past` was told of."""
    canvas = Canvas(WIDTH, HEIGHT, SKY, finer=3)
    _say(canvas, now)
    paint_field(canvas, now)
    _paint_profile(canvas, now)
    _paint_track(canvas, now["field"][0], past)
    _paint_actions(canvas, past)
    return canvas.finished()


def horizon(steps: int) -> int:
    """Where an axis of steps ends: it grows by leaps, or curves would shrink in every frame."""
    return next((one for one in HORIZONS if one >= steps), 1000 * math.ceil(steps / 1000))


def _say(canvas: Canvas, now: dict[str, Any]) -> None:
    x = FIELD.left
    nodes, edges = len(now["positions"]), len(now["edges"])
    for words in (f"step {now['step']}", f"{nodes} nodes", f"{edges} edges", f"centroid {now['centroid'][0]:.0f}"):
        x += canvas.write(words, x, 30, INK, size=LARGE) + 28
    if len(now["positions"]) and now["positions"][:, 0].max() >= GOAL * now["field"][0]:
        canvas.write("goal reached", WIDTH - 20, 30, NEW, size=LARGE, anchor=1)


def _paint_profile(canvas: Canvas, now: dict[str, Any]) -> None:
    """Stiffness over x, and the part of it that the colony stands on."""
    width = now["field"][0]
    _axes(canvas, PROFILE, f"{now['substrate']} stiffness, m {now['m']:.2g}, b {now['b']:.2g}")
    places = np.linspace(0.0, width, 30)
    values = stiffness(now, places)
    top = max(float(values.max()), 1e-9)
    if len(now["positions"]):
        x = now["positions"][:, 0] / width * PROFILE.width
        left, right = np.clip([x.min() - 1, x.max() + 1], 0, PROFILE.width).tolist()
        canvas.fill(PROFILE._replace(left=PROFILE.left + left, right=PROFILE.left + right), NEW, 0.3)
    paint_goal(canvas, PROFILE, 1)
    canvas.line(_within(PROFILE, places / width, 0.92 * values / top), YOUNG)
    here = now["centroid"][0]
    (at,) = _within(PROFILE, np.array([here / width]), 0.92 * stiffness(now, np.array([here])) / top)
    canvas.disc(at, 4.5, INK)
    _label(canvas, PROFILE, f"{top:.3g}", 0.08)
    _label(canvas, PROFILE, "0", 1.0)
    _foot(canvas, PROFILE, "x", f"{width:.0f}")


def _paint_track(canvas: Canvas, width: float, past: Past) -> None:
    """x of the centroid over steps, within the colony's extent."""
    end = horizon(len(past))
    _axes(canvas, TRACK, "centroid x, within the extent of the colony")
    steps = np.arange(len(past) + 1) / end
    centroid, left, right = (_within(TRACK, steps, past.places[:, which] / width) for which in range(3))
    canvas.area(np.concatenate([right, left[::-1]]), NEW, 0.3)
    goal = TRACK.top + round((1 - GOAL) * TRACK.height) + 0.5
    canvas.dashes(np.array([[TRACK.left, goal], [TRACK.right, goal]]), GOAL_LINE, 1, DASH)
    canvas.line(centroid, INK)
    canvas.disc(centroid[-1], 4.0, INK)
    _label(canvas, TRACK, f"{width:.0f}", 0.0)
    _label(canvas, TRACK, "0", 1.0)
    _foot(canvas, TRACK, "step", str(end))


def _paint_actions(canvas: Canvas, past: Past) -> None:
    """A strip for each number, from the lower end of its range to the upper."""
    end, shares, actions = horizon(len(past)), past.shares, past.actions
    canvas.write("action", ACTIONS.left, ACTIONS.top - 8, FAINT, size=SMALL)
    height = ACTIONS.height // len(NAMES)
    for index, name in enumerate(NAMES):
        top = ACTIONS.top + index * height
        strip = Box(ACTIONS.left, top + 24, ACTIONS.right, top + height - 8)
        canvas.fill(strip, SOFT)
        canvas.frame(strip, GRID)
        canvas.write(name, strip.left, strip.top - 7, TRACES[index], size=SMALL)
        _label(canvas, strip, f"{past.high[index]:g}", 0.0)
        _label(canvas, strip, f"{past.low[index]:g}", 1.0)
        if len(past):
            canvas.write(f"{actions[-1, index]:.2f}", strip.right, strip.top - 7, INK, size=SMALL, anchor=1)
            inner = strip._replace(top=strip.top + 3, bottom=strip.bottom - 3)
            canvas.line(_within(inner, np.arange(len(past)) / end, shares[:, index]), TRACES[index])
    _foot(canvas, strip, "step", str(end))


def _within(box: Box, across: Array, up: Array) -> Array:
    """Points [n, 2] of a curve: shares of a box from left to right and from its bottom to its top."""
    return np.stack([box.left + across * box.width, box.bottom - up * box.height], axis=1)


def _axes(canvas: Canvas, box: Box, title: str) -> None:
    canvas.fill(box, SOFT)
    canvas.frame(box, GRID)
    canvas.write(title, box.left, box.top - 8, FAINT, size=SMALL)


def _label(canvas: Canvas, box: Box, text: str, share: float) -> None:
    """Left of a box, `share` of its height down."""
    canvas.write(text, box.left - 6, box.top + share * box.height + 5, FAINT, size=SMALL, anchor=1)


def _foot(canvas: Canvas, box: Box, middle: str, right: str) -> None:
    for words, share in (("0", 0.0), (middle, 0.5), (right, 1.0)):
        canvas.write(words, box.left + share * box.width, box.bottom + 18, FAINT, size=SMALL, anchor=share)
