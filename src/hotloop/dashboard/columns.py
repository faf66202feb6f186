"""Points as columns of numbers: growing ones while a file is read, and what a screen can show of very many.

A screen has some hundred pixels across. Of the points that fall into one of them the lowest and the highest are
drawn, so that no spike is ever lost; a sample of them would lose it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from hotloop.core.types import Array
from hotloop.runs.logs import MOST_COLUMNS

_MISSING = float("nan")


class Columns:
    """Rows of named numbers, held by name; where a row has no such number the entry is NaN."""

    def __init__(self) -> None:
        self.count = 0
        self._values: dict[str, array[float]] = {}

    def add(self, row: Iterable[tuple[str, float]]) -> None:
        values, count = self._values, self.count
        for name, value in row:
            column = values.get(name)
            if column is None:
                if len(values) >= MOST_COLUMNS:
                    continue
                column = values[name] = array("d")
            if len(column) < count:  # rows without it
                column.extend([_MISSING] * (count - len(column)))
            if len(column) == count:  # a name that a row has twice counts once
                column.append(value)
        self.count += 1

    def arrays(self) -> dict[str, Array]:
        """Every column, all of them as long as there are rows."""
        for column in self._values.values():
            column.extend([_MISSING] * (self.count - len(column)))
        return {name: np.array(column, dtype=np.float64) for name, column in self._values.items()}


class Points(NamedTuple):
    x: Array
    y: Array


def finite(x: Array, y: Array) -> Points:
    """The points that can be drawn, ordered by x; points of one x keep their order."""
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    if len(x) > 1 and (np.diff(x) < 0).any():
        order = np.argsort(x, kind="stable")
        x, y = x[order], y[order]
    return Points(x, y)


def decimate(points: Points, width: int, low: float | None = None, high: float | None = None) -> Points:
    """For each of `width` pixels between `low` and `high` (the ends of the data where not given) its lowest and its
    highest point, by x; where those are one point, that one. `points` are ordered by x.

    One point on either side of the window stays, so that a line leaves the picture where it should.
    """
    x, y = points
    if len(x) == 0 or width < 1:
        return Points(x[:0], y[:0])
    low, high = float(x[0]) if low is None else low, float(x[-1]) if high is None else high
    first, last = int(np.searchsorted(x, low, "left")), int(np.searchsorted(x, high, "right"))
    kept = _extremes(x[first:last], y[first:last], width, low, high) + first
    sides = [np.array([place]) for place in (first - 1, last) if 0 <= place < len(x)]
    places = np.sort(np.concatenate([kept, *sides])).astype(np.int64)
    return Points(x[places], y[places])


def pixel_of(x: Array, width: int, low: float, high: float) -> Array:
    """Which pixel a place falls into: equal shares of [low, high], its right end in the last."""
    if not high > low:
        return np.zeros(len(x), dtype=np.int64)
    return np.minimum(width - 1, ((x - low) / (high - low) * width).astype(np.int64))


def _extremes(x: Array, y: Array, width: int, low: float, high: float) -> Array:
    """Places of the lowest and the highest value in each pixel, the first of equal ones."""
    if len(x) == 0:
        return np.arange(0)
    pixel = pixel_of(x, width, low, high)
    starts = np.flatnonzero(np.concatenate([[True], pixel[1:] != pixel[:-1]]))
    sizes = np.diff(np.append(starts, len(x)))
    found = []
    for reduce in (np.minimum.reduceat, np.maximum.reduceat):
        is_extreme = np.flatnonzero(y == np.repeat(reduce(y, starts), sizes))
        group = pixel[is_extreme]
        found.append(is_extreme[np.concatenate([[True], group[1:] != group[:-1]])])
    return np.unique(np.concatenate(found))


def cell_means(points: Points, cells: int, low: float, high: float) -> Points:
    """The mean of all points in each of `cells` equal stretches of [low, high], at their mean place; empty cells are
    left out. For curves of which many are averaged: every point counts."""
    x, y = points
    inside = (x >= low) & (x <= high)
    x, y = x[inside], y[inside]
    cell = pixel_of(x, cells, low, high)
    count = np.bincount(cell, minlength=cells)
    there = count > 0
    sums = [np.bincount(cell, weights=values, minlength=cells)[there] for values in (x, y)]
    return Points(sums[0] / count[there], sums[1] / count[there])
