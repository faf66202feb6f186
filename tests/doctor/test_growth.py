"""Growth by hand: a hundred slices of a hundred env steps each."""

from dataclasses import replace

import pytest

from hotloop.doctor.growth import growth_notes, growth_over_run
from hotloop.doctor.trace import Slice


def timeline(cost_us, episode_length=lambda index: 10, updates=lambda index: 50, count=100):
    return [
        Slice(
            start_seconds=0.0,
            seconds=100 * cost_us(index) / 1e6,
            env_steps=100,
            episodes=round(100 / episode_length(index)),
            updates=updates(index),
            phases={"env": 100 * 2 / 1e6, "store": 100 * (cost_us(index) - 2) / 1e6},
        )
        for index in range(count)
    ]


def ratios(grown):
    return {one.what: one.ratio for one in grown}


def test_a_flat_run_has_ratio_one_everywhere():
    found = ratios(growth_over_run(timeline(lambda index: 8.0)))
    assert found == pytest.approx({"env step": 1.0, "env": 1.0, "store": 1.0, "env steps per episode": 1.0})


def test_the_phase_that_grows_is_named():
    found = growth_over_run(timeline(lambda index: 4.0 + index // 10))  # 4 us in the first tenth, 13 in the last
    assert ratios(found)["env"] == pytest.approx(1.0)
    assert ratios(found)["env step"] == pytest.approx(12.5 / 4.5)  # the two last tenths over the two first
    assert ratios(found)["store"] == pytest.approx(10.5 / 2.5)
    assert found[0].points[0] == pytest.approx((500.0, 4.0))
    assert found[0].points[-1] == pytest.approx((9500.0, 13.0))


def test_a_warm_up_without_updates_does_not_pass_for_growth():
    slow_later = timeline(lambda index: 2.5 if index < 20 else 8.0, updates=lambda index: 0 if index < 20 else 50)
    assert ratios(growth_over_run(slow_later))["env step"] == pytest.approx(1.0)


def test_longer_episodes_are_told_apart_from_slower_steps():
    longer = growth_over_run(timeline(lambda index: 8.0, episode_length=lambda index: 10 if index < 50 else 50))
    assert ratios(longer)["env steps per episode"] == pytest.approx(5.0)
    assert growth_notes(longer) == [
        "episodes became 5.0x longer while an env step kept its cost (1.00x): time per episode grows, "
        "but nothing in the loop got slower"
    ]
    slower = growth_over_run(timeline(lambda index: 4.0 + index // 10, lambda index: 10 if index < 50 else 50))
    assert growth_notes(slower) == []


def test_too_short_a_run_says_nothing_about_growth():
    assert growth_over_run(timeline(lambda index: 8.0, count=9)) == []


def test_updates_that_begin_late_are_no_growth_either():
    late = timeline(lambda index: 2.5 if index < 80 else 80.0, updates=lambda index: 0 if index < 80 else 50)
    assert ratios(growth_over_run(late))["env step"] == pytest.approx(1.0)


def test_learning_that_comes_in_bursts_is_left_out():
    """A rollout of forty slices, then all its updates in one: the tenths hold none or many."""
    bursts = timeline(lambda index: 80.0 if index % 40 == 39 else 4.0, updates=lambda index: 99 * (index % 40 == 39))
    bursts = [replace(part, phases={"env": 2e-4, "update": part.seconds - 2e-4}) for part in bursts]
    assert set(ratios(growth_over_run(bursts))) == {"env step without the update", "env", "env steps per episode"}
