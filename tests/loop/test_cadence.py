"""When updates are due: exact at any size, in any chunks."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hotloop
from hotloop.core.values import exact_fraction
from hotloop.loop.cadence import UpdatePlan, checkpoint_due, crossed


@pytest.mark.parametrize(
    ("before", "after", "every", "expected"),
    [
        (0, 1, 1, True),
        (0, 9, 10, False),
        (9, 10, 10, True),
        (10, 19, 10, False),
        (10, 20, 10, True),
        (5, 35, 10, True),
        (10, 10, 10, False),
        (10 * 2**60 - 1, 10 * 2**60, 10, True),
        (10 * 2**60, 10 * 2**60 + 9, 10, False),
    ],
)
def test_a_multiple_is_crossed_when_it_is_reached(before, after, every, expected):
    assert crossed(before, after, every) is expected


@pytest.mark.parametrize(
    ("interval", "iteration", "expected"),
    [
        ({"total_env_steps": 100_000}, 100, [1_000, 10_000, 20_000, 30_000]),  # a tenth of the tenth, then each tenth
        ({"total_env_steps": 100_000}, 7_000, [7_000, 14_000, 21_000, 35_000]),
        ({"total_env_steps": 5_000, "env": {"num_envs": 3}}, 50, [300, 3_000]),
        ({"total_env_steps": 100_000, "checkpoint": {"every": 10_000}}, 100, [10_000, 20_000, 30_000]),  # as was asked
    ],
)
def test_the_first_checkpoint_comes_early_and_the_others_at_their_interval(interval, iteration, expected):
    settings = hotloop.preset("cartpole-dqn", **({"env": {"num_envs": 1}} | interval))
    last = min(35_000, settings.total_env_steps)
    due = [now for now in range(iteration, last + 1, iteration) if checkpoint_due(settings, now - iteration, now)]
    assert due == expected


def total(plan: UpdatePlan, env_steps: int, chunk: int, start: int = 0) -> int:
    return sum(
        sum(plan.due(before, min(before + chunk, start + env_steps)))
        for before in range(start, start + env_steps, chunk)
    )


def test_the_cartpole_program_makes_exactly_79744_updates():
    plan = UpdatePlan(Fraction(8), train_every=4, learning_starts=32, max_per_call=64)
    assert total(plan, 10_000, chunk=1) == 79_744  # 8 for each of the 10,000 - 32


def test_bursts_come_when_train_every_is_crossed():
    plan = UpdatePlan(Fraction(8), train_every=4, learning_starts=0, max_per_call=100)
    assert [list(plan.due(step, step + 1)) for step in range(8)] == [[], [], [], [32], [], [], [], [32]]


def test_a_burst_is_cut_into_calls():
    plan = UpdatePlan(Fraction(5, 2), train_every=4, learning_starts=0, max_per_call=4)
    assert list(plan.due(0, 4)) == [4, 4, 2]


def test_fractions_are_owed_without_drift():
    plan = UpdatePlan(exact_fraction(0.03), train_every=1, learning_starts=0, max_per_call=8)
    assert total(plan, 100_000, chunk=1) == 3_000


def test_what_falls_into_the_warm_up_is_skipped():
    plan = UpdatePlan(Fraction(1), train_every=1, learning_starts=10, max_per_call=100)
    assert list(plan.due(0, 10)) == []
    assert list(plan.due(8, 16)) == [6]  # 11 to 16
    assert list(plan.due(16, 24)) == [8]


def test_no_updates_where_none_are_owed():
    assert total(UpdatePlan(Fraction(0), 1, 0, 8), 1_000, chunk=7) == 0


@given(
    ratio=st.fractions(min_value=0, max_value=20, max_denominator=100),
    train_every=st.integers(1, 20),
    warmup=st.integers(0, 60),
    chunks=st.lists(st.integers(1, 33), min_size=1, max_size=30),
    max_per_call=st.integers(1, 64),
    far=st.sampled_from([0, 2**24, 2**31, 2**53, 2**70]),
)
def test_any_chunking_owes_the_same_and_counters_stay_exact(ratio, train_every, warmup, chunks, max_per_call, far):
    plan = UpdatePlan(ratio, train_every, warmup + far, max_per_call)
    before, made = far, 0
    for chunk in chunks:
        calls = list(plan.due(before, before + chunk))
        assert all(1 <= k <= max_per_call for k in calls)
        made += sum(calls)
        before += chunk

    def owed(env_steps: int) -> int:
        burst = env_steps - env_steps % train_every
        return int(burst * ratio)  # rounds towards zero, exactly

    assert made == max(0, owed(before) - owed(far + warmup))
    assert plan.owed(before) == owed(before)
