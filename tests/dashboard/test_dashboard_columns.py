"""Points as columns, and the lowest and highest of each pixel against a slow oracle."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hotloop.dashboard.columns import Columns, Points, cell_means, decimate, finite
from tests.oracles.decimation import lowest_and_highest

values = st.floats(-1e6, 1e6, allow_nan=False, width=32)


def test_rows_without_a_number_have_none_and_a_column_may_begin_late():
    columns = Columns()
    columns.add([("a", 1.0)])
    columns.add([("a", 2.0), ("b", 5.0)])
    columns.add([("b", 6.0)])
    arrays = columns.arrays()
    np.testing.assert_array_equal(arrays["a"], [1, 2, np.nan])
    np.testing.assert_array_equal(arrays["b"], [np.nan, 5, 6])


def test_a_spike_among_a_million_points_is_drawn():
    x = np.arange(1_000_000.0)
    y = np.zeros(1_000_000)
    y[123_457], y[700_001] = 9.0, -3.0
    shown = decimate(Points(x, y), 800)
    assert len(shown.x) <= 2 * 800
    assert {(123_457.0, 9.0), (700_001.0, -3.0)} <= set(zip(shown.x.tolist(), shown.y.tolist(), strict=True))


def test_two_pixels_by_eye():
    # pixel 0 holds x 0 to 4, pixel 1 the rest
    points = Points(np.array([0.0, 1, 2, 3, 6, 7, 10]), np.array([5.0, 1, 9, 5, 4, 4, 2]))
    shown = decimate(points, 2)
    assert list(zip(shown.x.tolist(), shown.y.tolist(), strict=True)) == [(1, 1), (2, 9), (6, 4), (10, 2)]


@given(st.lists(st.tuples(values, values), max_size=80), st.integers(1, 12))
def test_decimation_is_what_the_slow_oracle_keeps(pairs, width):
    points = sorted(pairs, key=lambda pair: pair[0])
    x, y = np.array([pair[0] for pair in points]), np.array([pair[1] for pair in points])
    shown = decimate(Points(x, y), width)
    expected = lowest_and_highest(points, width, points[0][0], points[-1][0]) if points else []
    assert list(zip(shown.x.tolist(), shown.y.tolist(), strict=True)) == expected


@given(st.lists(st.tuples(st.integers(0, 50), values), min_size=1, max_size=80), st.integers(0, 25), st.integers(1, 25))
def test_a_window_keeps_its_extremes_and_one_point_on_either_side(pairs, low, length):
    points = sorted(((float(x), y) for x, y in pairs), key=lambda pair: pair[0])
    x, y = np.array([pair[0] for pair in points]), np.array([pair[1] for pair in points])
    shown = decimate(Points(x, y), 5, float(low), float(low + length))
    inside = lowest_and_highest(points, 5, float(low), float(low + length))
    before = [pair for pair in points if pair[0] < low][-1:]
    after = [pair for pair in points if pair[0] > low + length][:1]
    assert list(zip(shown.x.tolist(), shown.y.tolist(), strict=True)) == [*before, *inside, *after]


def test_points_that_cannot_be_drawn_are_left_out_and_the_others_ordered():
    x, y = finite(np.array([3.0, 1.0, math.nan, 2.0]), np.array([1.0, 2.0, 3.0, math.inf]))
    assert (x.tolist(), y.tolist()) == ([1.0, 3.0], [2.0, 1.0])


def test_means_of_cells_count_every_point():
    means = cell_means(Points(np.array([0.0, 1, 2, 9, 10]), np.array([1.0, 2, 6, 4, 8])), 2, 0.0, 10.0)
    assert (means.x.tolist(), means.y.tolist()) == ([1.0, 9.5], [3.0, 6.0])
