"""The statistics of paired timing, on a clock that only the calls under test move."""

from __future__ import annotations

import numpy as np
import pytest

from hotloop.proof import speed


@pytest.fixture(autouse=True)
def _no_collection(monkeypatch):
    """Nothing is timed here, and a collection takes a tenth of a second."""
    monkeypatch.setattr(speed.gc, "collect", lambda: 0)


class FakeClock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def call(self, seconds, noise=lambda: 1.0):
        def spend() -> None:
            self.now += seconds * noise()

        return spend


def test_a_call_of_twelve_milliseconds_is_four_times_slower_than_one_of_three():
    clock = FakeClock()
    measured = speed.measure(clock.call(0.012), clock.call(0.003), 1.0, clock)
    assert measured.ratio == pytest.approx(4.0)
    assert measured.low == pytest.approx(4.0)
    assert measured.high == pytest.approx(4.0)
    assert measured.first_seconds == pytest.approx(0.012)
    assert measured.second_seconds == pytest.approx(0.003)


def test_a_slower_fast_form_shows_a_ratio_below_one():
    clock = FakeClock()
    assert speed.measure(clock.call(0.001), clock.call(0.004), 0.5, clock).ratio == pytest.approx(0.25)


def test_the_interval_covers_the_true_ratio_under_noise():
    covered = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        clock = FakeClock()
        noise = lambda rng=rng: rng.lognormal(0.0, 0.3)  # noqa: E731
        measured = speed.measure(clock.call(0.020, noise), clock.call(0.010, noise), 1.0, clock)
        assert measured.low <= measured.ratio <= measured.high
        covered += measured.low <= 2.0 <= measured.high
    assert covered >= 90


def test_a_machine_that_slows_down_on_the_way_does_not_move_the_ratio():
    clock = FakeClock()
    drift = lambda: 1.0 + clock.now  # noqa: E731
    measured = speed.measure(clock.call(0.010, drift), clock.call(0.005, drift), 2.0, clock)
    assert measured.ratio == pytest.approx(2.0, rel=0.05)


def test_short_calls_are_repeated_until_a_sample_lasts_ten_milliseconds():
    clock, calls = FakeClock(), [0]

    def short() -> None:
        calls[0] += 1
        clock.now += 10e-6

    speed.measure(short, clock.call(0.005), 0.1, clock)
    assert calls[0] > 1000 * speed.MIN_PAIRS


def test_long_calls_still_give_enough_pairs_for_an_interval():
    clock, calls = FakeClock(), [0]

    def long() -> None:
        calls[0] += 1
        clock.now += 100.0

    speed.measure(long, long, 1.0, clock)
    assert calls[0] >= 2 * speed.MIN_PAIRS


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [
        (5, 1, 5),  # too few for 95 %: all of them
        (6, 1, 6),  # 1 - 2 / 64 = 97 %
        (9, 2, 8),  # 1 - 2 (1 + 9) / 512 = 96 %
        (20, 6, 15),  # the usual table of the sign test
    ],
)
def test_the_interval_of_a_median_is_made_of_order_statistics(count, low, high):
    values = list(range(count, 0, -1))
    assert speed.median_interval(values) == (low, high)
