"""Against hand numbers and closed forms, and for coverage: how often an interval holds the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr, stdtrit

from hotloop.comparison.statistics import (
    bootstrap_interval,
    interquartile_mean,
    mean_height,
    median_time,
    t_interval,
)
from hotloop.core.intervals import normal_below, student_quantile

NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([7.0], 7.0),
        ([1.0, 3.0], 2.0),
        ([0.0, 1.0, 3.0, 100.0], 2.0),  # the outer quarter on each side is one value
        ([100.0, 1.0, 2.0, 4.0, -50.0], (0.75 * 1 + 2 + 0.75 * 4) / 2.5),
        ([1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0, 17.0], 9.0),
    ],
)
def test_the_interquartile_mean_takes_the_middle_half(values: list[float], expected: float) -> None:
    assert interquartile_mean(np.array(values)) == pytest.approx(expected)


def test_the_interquartile_mean_goes_along_the_axis_asked_for() -> None:
    table = np.array([[0.0, 1.0, 3.0, 100.0], [8.0, 8.0, 8.0, 8.0]])
    assert interquartile_mean(table, axis=1).tolist() == [2.0, 8.0]
    assert interquartile_mean(table.T, axis=0).tolist() == [2.0, 8.0]


@given(NUMBERS)
def test_the_interquartile_mean_lies_within_the_values_whatever_their_order(values: list[float]) -> None:
    iqm = interquartile_mean(np.array(values))
    slack = 1e-9 * max(map(abs, values))
    assert min(values) - slack <= iqm <= max(values) + slack
    assert interquartile_mean(np.array(values[::-1])) == iqm


def test_the_t_interval_of_three_values_by_hand() -> None:
    interval = t_interval(np.array([1.0, 2.0, 3.0]))  # s = 1, t(2) = 4.3027
    assert interval == pytest.approx((2 - 4.3027 / 3**0.5, 2 + 4.3027 / 3**0.5), abs=1e-4)


def test_one_value_has_no_interval() -> None:
    assert t_interval(np.array([3.0])) is None
    assert bootstrap_interval([np.array([3.0])], np.mean) is None


def test_the_bootstrap_is_the_same_every_time_and_depends_on_its_seed() -> None:
    values = [np.random.default_rng(1).normal(size=12)]
    assert bootstrap_interval(values, np.mean) == bootstrap_interval(values, np.mean)
    assert bootstrap_interval(values, np.mean, seed=1) != bootstrap_interval(values, np.mean, seed=2)


def test_the_bootstrap_of_a_mean_has_the_width_of_a_t_interval() -> None:
    values = np.random.default_rng(0).normal(10.0, 2.0, size=30)
    low, high = bootstrap_interval([values], np.mean)
    assert (low, high) == pytest.approx(t_interval(values), abs=0.06)


def test_equal_values_leave_no_doubt() -> None:
    assert bootstrap_interval([np.full(5, 500.0)], interquartile_mean) == (500.0, 500.0)


def test_a_stratum_is_drawn_from_on_its_own() -> None:
    """Two tasks with constant scores: pooled draws would mix them in other shares, stratified ones cannot."""
    assert bootstrap_interval([np.zeros(4), np.full(4, 10.0)], np.mean) == (5.0, 5.0)


def test_whole_rows_are_drawn_so_that_columns_keep_together() -> None:
    rows = np.random.default_rng(3).normal(size=(9, 1)) * np.array([1.0, 10.0])
    low, high = bootstrap_interval([rows], np.mean)
    assert low[1] == pytest.approx(10 * low[0])
    assert high[1] == pytest.approx(10 * high[0])


@pytest.mark.parametrize("seeds", [6, 10])
def test_nineteen_of_twenty_intervals_hold_the_truth(seeds: int) -> None:
    generator = np.random.default_rng(seeds)
    hits = {"t": 0, "mean": 0, "iqm": 0}
    repeats = 400
    for number in range(repeats):
        values = generator.normal(3.0, 1.0, size=seeds)
        intervals = {
            "t": t_interval(values),
            "mean": bootstrap_interval([values], np.mean, repeats=1_000, seed=number),
            "iqm": bootstrap_interval([values], interquartile_mean, repeats=1_000, seed=number),
        }
        for name, interval in intervals.items():
            hits[name] += interval is not None and interval.low <= 3.0 <= interval.high
    assert all(0.91 <= count / repeats <= 0.985 for count in hits.values()), hits


@pytest.mark.parametrize(
    ("times", "expected"),
    [([3.0, 1.0, 2.0], 2.0), ([1.0, None, 2.0], 2.0), ([1.0, None], None), ([None, None, 2.0], None), ([], None)],
)
def test_who_never_arrives_counts_as_later_than_all(times: list[float | None], expected: float | None) -> None:
    assert median_time(times).value == expected


def test_a_middle_that_some_may_miss_has_an_interval_up_to_never() -> None:
    estimate = median_time([1.0, 2.0, 3.0, 4.0, 5.0, None, None])
    assert estimate.value == 4.0
    assert estimate.interval is not None
    assert 1.0 <= estimate.interval.low < 4.0
    assert estimate.interval.high == np.inf


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0.0, 10.0, 50.0),  # the line y = 10 x: its middle
        (2.0, 4.0, 30.0),
        (9.0, 12.0, (95.0 + 2 * 100.0) / 3),  # beyond its end it stays at 100
        (-10.0, 0.0, 0.0),
        (3.0, 3.0, 30.0),
    ],
)
def test_the_area_under_a_straight_line_is_its_middle(start: float, end: float, expected: float) -> None:
    x = np.array([0.0, 1.0, 2.5, 7.0, 10.0])
    assert mean_height(x, 10 * x, start, end) == pytest.approx(expected)


def test_the_median_of_eight_times_is_within_its_interval_in_at_least_nineteen_of_twenty() -> None:
    """It is a middle of few values and so rather wide: 95 to 100 %."""
    generator = np.random.default_rng(5)
    hits = 0
    for number in range(400):
        times = np.exp(generator.normal(size=8))
        interval = bootstrap_interval([times], np.median, repeats=1_000, seed=number)
        hits += interval is not None and interval.low <= 1.0 <= interval.high
    assert 0.95 <= hits / 400 <= 1.0


def test_student_quantile_and_normal_tail_agree_with_the_tables_and_with_scipy():
    assert student_quantile(1, 0.975) == pytest.approx(12.706, abs=5e-4)
    assert student_quantile(4, 0.975) == pytest.approx(2.776, abs=5e-4)
    assert normal_below(-1.96) == pytest.approx(0.0250, abs=5e-5)
    for freedom in (1, 2, 3, 4, 5, 8, 19, 126):
        for p in (0.75, 0.975, 0.995):
            assert student_quantile(freedom, p) == pytest.approx(stdtrit(freedom, p), rel=1e-12)
    for freedom in (1_000, 1_001, 1_000_000, 10**9):  # on both sides of where the sum gives way to an expansion
        assert student_quantile(freedom, 0.975) == pytest.approx(stdtrit(freedom, 0.975), rel=1e-9)
    for z in (-8.0, -2.0, 0.0, 3.0):
        assert normal_below(z) == pytest.approx(float(ndtr(z)), rel=1e-12)
