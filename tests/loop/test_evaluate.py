"""Evaluation: whole episodes, quotas that favor nobody, and the best weights."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.loop.evaluate import Best, EvaluationPlan, play_episodes, summarize
from hotloop.presets.run_settings import EvaluationSettings
from tests.loop.scripted_envs import ScriptedEnvs, Zeros


def test_every_env_plays_its_quota_however_long_it_takes():
    """The first four episodes to end would all be of length 1; the quota takes two of each."""
    played = play_episodes(Zeros(), ScriptedEnvs([[1], [10]]), 4)
    assert sorted(played["return"]) == [1.0, 1.0, 10.0, 10.0]
    assert sorted(played["length"]) == [1.0, 1.0, 10.0, 10.0]


def test_a_remainder_goes_to_the_first_envs():
    played = play_episodes(Zeros(), ScriptedEnvs([[2], [3], [5]]), 5)
    assert sorted(played["return"]) == [2.0, 2.0, 3.0, 3.0, 5.0]


def test_fewer_episodes_than_envs_leave_some_unplayed():
    played = play_episodes(Zeros(), ScriptedEnvs([[2], [9], [1]]), 2)
    assert sorted(played["return"]) == [2.0, 9.0]


def test_the_workloads_own_measures_are_read_at_the_end_of_each_episode():
    played = play_episodes(Zeros(), ScriptedEnvs([[2, 4]]), 3)
    assert played["age"].tolist() == [2.0, 4.0, 2.0]


def test_rows_in_which_an_env_only_reset_do_not_count():
    played = play_episodes(Zeros(), ScriptedEnvs([[2], [3]], resets_take_a_step=True), 6)
    assert sorted(played["return"]) == [2.0, 2.0, 2.0, 3.0, 3.0, 3.0]
    assert sorted(played["length"]) == [2.0, 2.0, 2.0, 3.0, 3.0, 3.0]


@given(
    st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=3), min_size=1, max_size=5),
    st.integers(1, 17),
    st.booleans(),
)
def test_any_script_is_played_as_fixed_in_advance(lengths, episodes, resets_take_a_step):
    played = play_episodes(Zeros(), ScriptedEnvs(lengths, resets_take_a_step), episodes)
    share, rest = divmod(episodes, len(lengths))
    expected = [script[turn % len(script)] for i, script in enumerate(lengths) for turn in range(share + (i < rest))]
    assert sorted(played["return"]) == sorted(map(float, expected))
    assert len(played["length"]) == episodes


def test_the_policy_sees_the_observation_and_mask_it_must_answer():
    policy = Zeros()
    play_episodes(policy, ScriptedEnvs([[2]], masks=True), 1)
    assert [obs.tolist() for obs, _ in policy.seen] == [[[0.0, 0.0]], [[0.0, 1.0]]]
    assert all(mask.shape == (1, 2) for _, mask in policy.seen)


def test_a_summary_by_hand():
    summary = summarize(
        {
            "return": np.array([1.0, 3.0]),
            "length": np.array([4.0, 6.0]),
            "apples": np.array([0, 1]),
            "won": np.array([True, False]),
            "share": np.array([0.25, 0.75]),
            "delay": np.array([np.nan, 3.0]),
            "none": np.array([np.nan, np.nan]),
        }
    )
    assert summary == {
        "episodes": 2,
        "mean_return": 2.0,
        "std_return": 1.0,
        "mean_length": 5.0,
        "mean_apples": 0.5,
        "max_apples": 1,
        "won_rate": 0.5,
        "share": 0.5,
        "delay": 3.0,
        "none": None,
    }


def test_the_best_weights_are_kept_and_of_two_equal_ones_the_later():
    best = Best()
    for env_steps, mean_return in enumerate([-5.0, 2.0, 1.0, 2.0, 0.0]):
        best.offer(mean_return, env_steps, np.array([env_steps], np.float32))
    assert (best.mean_return, best.env_steps, best.parameters.tolist()) == (2.0, 3, [3.0])
    assert best.judged_at == 4


@pytest.mark.parametrize("offers", [0, 2])
def test_a_restored_best_continues(offers):
    one, other = Best(), Best()
    for env_steps in range(offers):
        one.offer(1.0, env_steps, np.full(2, env_steps, np.float32))
    other.load_state(one.state())
    for best in (one, other):
        best.offer(0.5, 9, np.full(2, 9, np.float32))
    assert one.state().keys() == other.state().keys()
    assert (one.mean_return, one.env_steps, one.judged_at) == (other.mean_return, other.env_steps, other.judged_at)
    np.testing.assert_array_equal(one.parameters, other.parameters)


def plan(limited=True, **settings):
    return EvaluationPlan(EvaluationSettings(**settings), limited)


def test_an_evaluation_waits_until_a_twentieth_of_the_env_steps_pays_for_five_episodes():
    assert plan().periodic_episodes(99_999, spent=0, longest=1_000) == 0
    assert plan().periodic_episodes(100_000, spent=0, longest=1_000) == 5
    assert plan().periodic_episodes(100_000, spent=1, longest=1_000) == 0  # 4,999 env steps are left
    assert plan().periodic_episodes(160_000, spent=0, longest=1_000) == 8
    assert plan().periodic_episodes(10**9, spent=0, longest=1_000) == 20


def test_what_is_set_is_played_whatever_it_costs():
    assert plan(every=100).periodic_episodes(100, spent=10**6, longest=1_000) == 20
    assert plan(every=100, episodes=3).periodic_episodes(100, spent=10**6, longest=1_000) == 3
    assert plan(episodes=2).periodic_episodes(39_999, spent=0, longest=1_000) == 0  # so many, or none
    assert plan(episodes=2).periodic_episodes(40_000, spent=0, longest=1_000) == 2
    assert plan(final_episodes=100).final_episodes(0, 1_000) == 100


def test_native_envs_are_not_held_to_a_tenth():
    assert plan(limited=False).periodic_episodes(100, spent=10**6, longest=1_000) == 20
    assert plan(limited=False).final_episodes(0, 1_000) == 100


def test_an_interval_that_was_set_leaves_the_end_half_of_the_tenth():
    assert plan(every=100).final_allowance(50_000, spent=10**6) == 2_500
    assert plan().final_allowance(50_000, spent=1_000) == 4_000


@given(
    st.integers(1_000, 60_000),
    st.lists(st.integers(1, 40), min_size=1, max_size=30),
    st.booleans(),
)
def test_evaluation_never_takes_more_than_a_tenth_of_what_a_run_trained(total, lengths, last_is_best):
    """Episodes of any length up to a limit of 40; a run of 25 times the limit at least, so that one is affordable."""
    many, scripted, spent = plan(), itertools.cycle(lengths), 0
    play = lambda episodes: sum(itertools.islice(scripted, episodes))  # noqa: E731
    for env_steps in range(total // 20, total + 1, total // 20):
        spent += play(many.periodic_episodes(env_steps, spent, longest=40))
        assert spent <= env_steps / 20
    if not spent:
        spent += play(many.only_episodes(total, longest=40))
    allowance = many.final_allowance(total, spent)
    first = play(many.final_episodes(allowance if last_is_best else allowance // 2, longest=40))
    rest = 0 if last_is_best else play(many.final_episodes(allowance - first, longest=40))
    assert spent + first + rest <= max(total / 10, 3 * 40)
