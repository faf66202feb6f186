"""A migrating colony as four panels: where it is, how stiff its ground is, how it got there and what it did."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hotloop.core.types import Array
from hotloop.envs.durotaxis.canvas import Box, Canvas, Colour
from hotloop.envs.durotaxis.field import (
    FAINT,
    FIELD,
    GOAL_LINE,
    GRID,
    INK,
    NEW,
    SKY,
    SOFT,
    YOUNG,
    paint_field,
    paint_goal,
    stiffness,
)
from hotloop.envs.durotaxis.past import NAMES, Past
from hotloop.envs.durotaxis.step_kernels import GOAL

WIDTH, HEIGHT = 1000, 656
PROFILE, TRACK, ACTIONS = Box(690, 64, 980, 224), Box(64, 504, 620, 628), Box(690, 276, 980, 628)
TRACES: tuple[Colour, ...] = ((235, 96, 90), (250, 200, 110), (64, 190, 120), (88, 199, 199), (150, 140, 240))
HORIZONS = (25, 50, 100, 200, 500, 1000)


def picture(now: dict[str, Any], past: Past) -> Array:
    """[height, width, 3] uint8 of a snapshot, the last that `past` was told of."""
    canvas = Canvas(WIDTH, HEIGHT, SKY)
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
    x = canvas.write(f"step {now['step']}", FIELD.left, 28, INK, size=2) + FIELD.left + 28
    counts = f"{len(now['positions'])} nodes   {len(now['edges'])} edges   centroid {now['centroid'][0]:.0f}"
    canvas.write(counts, x, 28, INK, size=2)
    if len(now["positions"]) and now["positions"][:, 0].max() >= GOAL * now["field"][0]:
        canvas.write("goal reached", WIDTH - 20, 28, NEW, size=2, anchor=1)


def _paint_profile(canvas: Canvas, now: dict[str, Any]) -> None:
    """Stiffness over x, and the part of it that the colony stands on."""
    width = now["field"][0]
    _axes(canvas, PROFILE, f"{now['substrate']} stiffness, m {now['m']:.2g}, b {now['b']:.2g}")
    places = np.linspace(0.0, width, PROFILE.width + 1)
    values = stiffness(now, places)
    top = max(float(values.max()), 1e-9)
    down = PROFILE.height * (1 - 0.92 * values / top)
    columns = np.arange(PROFILE.width + 1, dtype=float)
    if len(now["positions"]):
        x = now["positions"][:, 0] / width * PROFILE.width
        left, right = np.clip([x.min() - 1, x.max() + 1], 0, PROFILE.width).round().astype(int) + PROFILE.left
        canvas.fill(PROFILE._replace(left=left, right=right), NEW, 0.3)
    paint_goal(canvas, PROFILE, 1)
    canvas.curve(PROFILE, columns, down, YOUNG)
    here = now["centroid"][0] / width * PROFILE.width
    canvas.disc(np.array([PROFILE.left + here, PROFILE.top + np.interp(here, columns, down)]), 4.5, INK)
    _label(canvas, PROFILE, f"{top:.3g}", 0.08)
    _label(canvas, PROFILE, "0", 1.0)
    _foot(canvas, PROFILE, "x", f"{width:.0f}")


def _paint_track(canvas: Canvas, width: float, past: Past) -> None:
    """x of the centroid over steps, within the colony's extent."""
    end = horizon(len(past))
    _axes(canvas, TRACK, "centroid x, within the extent of the colony")
    places = past.places
    columns = np.arange(len(places)) / end * TRACK.width
    centroid, left, right = (TRACK.height * (1 - places[:, which] / width) for which in range(3))
    middles = np.arange(TRACK.width) + 0.5
    upper, lower = (np.interp(middles, columns, edge) for edge in (right, left))
    canvas.band(TRACK, upper, lower, NEW, 0.3, since=0.0, until=float(columns[-1]))
    goal = TRACK.top + round((1 - GOAL) * TRACK.height)
    for start in range(TRACK.left, TRACK.right - 6, 12):
        canvas.fill(Box(start, goal, start + 6, goal + 1), GOAL_LINE)
    canvas.curve(TRACK, columns, centroid, INK)
    canvas.disc(np.array([TRACK.left + columns[-1], TRACK.top + centroid[-1]]), 4.0, INK)
    _label(canvas, TRACK, f"{width:.0f}", 0.0)
    _label(canvas, TRACK, "0", 1.0)
    _foot(canvas, TRACK, "step", str(end))


def _paint_actions(canvas: Canvas, past: Past) -> None:
    """A strip for each number, from the lower end of its range to the upper."""
    end, shares, actions = horizon(len(past)), past.shares, past.actions
    canvas.write("action", ACTIONS.left, ACTIONS.top - 8, FAINT)
    height = ACTIONS.height // len(NAMES)
    for index, name in enumerate(NAMES):
        top = ACTIONS.top + index * height
        strip = Box(ACTIONS.left, top + 24, ACTIONS.right, top + height - 8)
        canvas.fill(strip, SOFT)
        canvas.frame(strip, GRID)
        canvas.write(name, strip.left, strip.top - 7, TRACES[index])
        _label(canvas, strip, f"{past.high[index]:g}", 0.0)
        _label(canvas, strip, f"{past.low[index]:g}", 1.0)
        if len(past):
            canvas.write(f"{actions[-1, index]:.2f}", strip.right, strip.top - 7, INK, anchor=1)
            columns = np.arange(len(past)) / end * strip.width
            inner = 3 + (strip.height - 6) * (1 - shares[:, index])
            canvas.curve(strip, np.append(columns, columns[-1] + 2), np.append(inner, inner[-1]), TRACES[index])
    _foot(canvas, ACTIONS._replace(bottom=strip.bottom), "step", str(end))


def _axes(canvas: Canvas, box: Box, title: str) -> None:
    canvas.fill(box, SOFT)
    canvas.frame(box, GRID)
    canvas.write(title, box.left, box.top - 8, FAINT)


def _label(canvas: Canvas, box: Box, text: str, share: float) -> None:
    """Left of a box, `share` of its height down."""
    canvas.write(text, box.left - 6, box.top + share * box.height + 5, FAINT, anchor=1)


def _foot(canvas: Canvas, box: Box, middle: str, right: str) -> None:
    canvas.write("0", box.left, box.bottom + 18, FAINT)
    canvas.write(middle, box.left + box.width / 2, box.bottom + 18, FAINT, anchor=0.5)
    canvas.write(right, box.right, box.bottom + 18, FAINT, anchor=1)
