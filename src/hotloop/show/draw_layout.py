"""Where each node of a graph stands on the page: levels from left to right, neighbours near each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hotloop.core.types import Array

COLUMN, ROW = 26.0, 30.0
MARGIN, TOP, BOTTOM = 44.0, 64.0, 74.0
SWEEPS = 8
MIN_WIDTH, MIN_HEIGHT = 520.0, 150.0
WAVE, WAVE_LEVELS = 80.0, 11.0
"""A deep, thin graph is laid along a wave of this height and length: on a straight line its edges would lie on each
other."""


@dataclass(frozen=True)
class Layout:
    x: Array  # [V]
    y: Array  # [V]
    width: float
    height: float


def lay_out(levels: Sequence[int], edges: Sequence[tuple[int, int]]) -> Layout:
    """Places of nodes given by position, with their levels, and edges between positions."""
    columns = _ordered_columns(levels, edges)
    depth, widest = len(columns), max(map(len, columns))
    thin = depth > 3 * widest
    spread = ROW * (widest - 1) if thin else max(ROW * (widest - 1), MIN_HEIGHT)
    wave = WAVE if thin else 0.0
    column = max(COLUMN if thin else 3.0 * COLUMN, (MIN_WIDTH - 2 * MARGIN) / max(1, depth - 1))
    x, y = np.zeros(len(levels)), np.zeros(len(levels))
    for number, nodes in enumerate(columns):
        gap = spread / (len(nodes) + 1) if not thin else ROW
        bend = wave * math.sin(2 * math.pi * number / WAVE_LEVELS)
        for place, node in enumerate(nodes):
            x[node] = MARGIN + column * number
            y[node] = TOP + wave + spread / 2 + bend + gap * (place - (len(nodes) - 1) / 2)
    height = TOP + spread + 2 * wave + BOTTOM
    return Layout(x, y, max(MIN_WIDTH, 2 * MARGIN + column * (depth - 1)), height)


def _ordered_columns(levels: Sequence[int], edges: Sequence[tuple[int, int]]) -> list[list[int]]:
    """The nodes of each level from top to bottom. A few sweeps move each node to the mean place of its neighbours in
    other levels, which takes most crossings away (Sugiyama et al. 1981)."""
    present = sorted(set(levels))
    columns = [[node for node, level in enumerate(levels) if level == wanted] for wanted in present]
    neighbours: list[list[int]] = [[] for _ in levels]
    for source, target in edges:
        neighbours[source].append(target)
        neighbours[target].append(source)
    place = {node: number - (len(column) - 1) / 2 for column in columns for number, node in enumerate(column)}
    for sweep in range(SWEEPS):
        for column in columns if sweep % 2 == 0 else reversed(columns):
            wish = {node: _mean([place[near] for near in neighbours[node]], place[node]) for node in column}
            column.sort(key=wish.__getitem__)
            place.update({node: number - (len(column) - 1) / 2 for number, node in enumerate(column)})
    return columns


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
