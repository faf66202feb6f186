"""Evaluation: whole episodes, quotas that favour nobody, and the best weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.loop.scripted_envs import ScriptedEnvs, Zeros

from hotloop.loop.evaluate import Best, play_episodes, summarise


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
    summary = summarise(
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
