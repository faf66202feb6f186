"""Two arms against each other: hand numbers, closed forms, and how often an interval holds the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import mannwhitneyu

from hotloop.comparison.statistics import (
    Draws,
    Interval,
    can_tell,
    chance_of_splits,
    difference_for,
    holm,
    interquartile_mean,
    least_seeds,
    probability_of_improvement,
    seeds_for,
)
from hotloop.core.types import Array


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1.0, 2.0], [3.0, 4.0], 1.0),
        ([3.0, 4.0], [1.0, 2.0], 0.0),
        ([1.0, 2.0], [1.0, 2.0], 0.5),  # one above, one below, two ties
        ([1.0, 4.0], [2.0, 3.0, 5.0], 4 / 6),  # 2, 3, 5 above 1, and 5 above 4
        ([500.0, 500.0], [500.0], 0.5),
    ],
)
def test_the_probability_of_improvement_counts_pairs(first: list[float], second: list[float], expected: float) -> None:
    assert probability_of_improvement(np.array(first), np.array(second)) == pytest.approx(expected)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=6), st.lists(st.integers(0, 5), min_size=2, max_size=6))
def test_it_is_mann_whitneys_u_over_all_pairs(first: list[int], second: list[int]) -> None:
    u = mannwhitneyu(second, first, method="asymptotic").statistic if len({*first, *second}) > 1 else None
    expected = 0.5 if u is None else u / (len(first) * len(second))
    assert probability_of_improvement(np.array(first), np.array(second)) == pytest.approx(expected)


def test_three_against_three_apart_are_two_of_twenty_deals() -> None:
    assert chance_of_splits(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])) == pytest.approx(2 / 20)
    assert chance_of_splits(np.array([1.0, 2.0, 4.0]), np.array([3.0, 5.0, 6.0])) == pytest.approx(4 / 20)
    assert chance_of_splits(np.full(4, 500.0), np.full(4, 500.0)) == 1.0


@pytest.mark.parametrize("n", [5, 8, 12])
def test_the_chance_is_that_of_the_exact_test(n: int) -> None:
    generator = np.random.default_rng(n)
    for shift in (0.0, 0.7, 1.5):
        first, second = generator.normal(size=n), generator.normal(size=n) + shift
        expected = mannwhitneyu(first, second, method="exact").pvalue
        assert chance_of_splits(first, second) == pytest.approx(expected, abs=0.01 if n == 12 else 1e-12)


def test_holm_multiplies_the_smallest_by_all_and_keeps_the_order() -> None:
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_five_seeds_are_the_least_for_two_tests() -> None:
    assert [least_seeds(tests) for tests in (1, 2, 4, 12)] == [4, 5, 5, 6]  # 2 x tests in 70, 252, 252, 924 deals
    assert can_tell((3, 12), 2)  # 455 deals
    assert not can_tell((1, 100), 1)


def test_ratios_by_hand() -> None:
    draws = Draws(3, 3, paired=True)
    rates = draws.rate_ratio(np.array([10.0, 20.0, 40.0]), np.array([30.0, 60.0, 120.0]))
    assert rates.value == pytest.approx(3.0)
    assert rates.interval == pytest.approx((3.0, 3.0))  # each seed is three times as fast
    times = draws.time_ratio(np.array([10.0, 20.0, 40.0]), np.array([5.0, 10.0, 20.0]))
    assert times.value == 2.0


def test_who_never_arrives_makes_the_ratio_nothing_or_everything() -> None:
    never, soon = np.full(5, np.inf), np.arange(1.0, 6.0)
    draws = Draws(5, 5, paired=False)
    assert draws.time_ratio(soon, never) == (0.0, Interval(0.0, 0.0))
    assert draws.time_ratio(never, soon) == (math.inf, Interval(math.inf, math.inf))
    assert draws.time_ratio(never, never).value is None
    some = np.array([1.0, 2.0, 3.0, np.inf, np.inf])
    assert draws.time_ratio(some, some).interval == (0.0, math.inf)  # both may miss: anything goes


def test_one_seed_has_a_difference_and_no_interval() -> None:
    estimate = Draws(1, 1, paired=True).difference(np.array([1.0]), np.array([3.0]), interquartile_mean)
    assert estimate == (2.0, None)


def pairs(number: int, correlation: float, size: int = 8) -> tuple[Array, Array]:
    generator = np.random.default_rng(number)
    shared = math.sqrt(correlation) * generator.normal(size=size)
    own = math.sqrt(1 - correlation) * generator.normal(size=(2, size))
    return shared + own[0], shared + own[1] + 1.0


@pytest.mark.parametrize(("paired", "correlation"), [(False, 0.0), (True, 0.0), (True, 0.7)])
def test_intervals_over_eight_seeds_hold_the_truth_in_91_to_99_of_a_hundred(paired: bool, correlation: float) -> None:
    truth = {"difference": 1.0, "improvement": float(ndtr(1 / math.sqrt(2))), "rate": math.e**0.1, "time": math.e**-0.1}
    hits = dict.fromkeys(truth, 0)
    repeats = 500
    for number in range(repeats):
        first, second = pairs(number, correlation)
        draws = Draws(8, 8, paired=paired, repeats=600, seed=number)
        found = {
            "difference": draws.difference(first, second, interquartile_mean),
            "improvement": draws.improvement(first, second),
            "rate": draws.rate_ratio(np.exp(first / 10), np.exp(second / 10)),
            "time": draws.time_ratio(np.exp(first / 10), np.exp(second / 10)),
        }
        for name, estimate in found.items():
            assert estimate.interval is not None
            hits[name] += estimate.interval.low <= truth[name] <= estimate.interval.high
    shares = {name: count / repeats for name, count in hits.items()}
    assert all(0.91 <= share <= 0.995 for share in shares.values()), shares


@pytest.mark.parametrize("difference", [1.0, 1.5])
def test_the_seeds_said_to_be_needed_show_the_difference_in_four_cases_of_five(difference: float) -> None:
    seeds = seeds_for(difference, 1.0, tests=2)
    assert difference_for(seeds, 1.0, tests=2) <= difference
    generator = np.random.default_rng(3)
    scores = generator.normal(size=(600, 2, seeds))
    scores[:, 1] += difference
    seen = np.mean([chance_of_splits(*row) <= 0.025 for row in scores])
    assert 0.75 <= seen <= 0.88
