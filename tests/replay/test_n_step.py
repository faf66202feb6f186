from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.core.errors import CheckpointError, SettingsError
from hotloop.presets.replay_settings import ReplaySettings
from hotloop.replay.buffer import ReplayMemory
from hotloop.replay.n_step import Returns
from tests.oracles.nstep_oracle import NStepOracle
from tests.oracles.replay_oracle import RingOracle
from tests.replay.replay_steps import SCALAR, column, env_step, scalar_replay, stored_rows


def test_a_full_window_lets_the_oldest_step_leave():
    replay = scalar_replay(n_step=3)
    assert replay.add(column([10]), np.array([0]), env_step([1], [11])) == 0
    assert replay.add(column([11]), np.array([1]), env_step([2], [12])) == 0
    assert replay.add(column([12]), np.array([2]), env_step([4], [13])) == 1
    assert stored_rows(replay) == [(10, 0, 3.0, 0.125, 13)]  # 1 + 2/2 + 4/4, and 0.5^3


def test_termination_lets_every_pending_step_leave_with_discount_zero():
    replay = scalar_replay(n_step=3)
    replay.add(column([10]), np.array([0]), env_step([1], [11]))
    assert replay.add(column([11]), np.array([1]), env_step([2], [12], terminated=[0])) == 2
    assert stored_rows(replay) == [(10, 0, 2.0, 0.0, 12), (11, 1, 2.0, 0.0, 12)]  # 1 + 2/2, and 2


def test_truncation_bootstraps_each_row_over_its_own_horizon():
    replay = scalar_replay(n_step=3)
    for i in range(2):
        replay.add(column([10 + i]), np.array([i]), env_step([1], [11 + i]))
    assert replay.add(column([12]), np.array([2]), env_step([1], [13], truncated=[0])) == 3
    assert stored_rows(replay) == [(10, 0, 1.75, 0.125, 13), (11, 1, 1.5, 0.25, 13), (12, 2, 1.0, 0.5, 13)]


def test_an_episode_shorter_than_n_is_stored_whole_and_the_next_starts_afresh():
    replay = scalar_replay(n_step=5)
    assert replay.add(column([1]), np.array([0]), env_step([3], [2], terminated=[0])) == 1
    assert replay.add(column([7]), np.array([1]), env_step([5], [8], truncated=[0])) == 1
    assert stored_rows(replay) == [(1, 0, 3.0, 0.0, 2), (7, 1, 5.0, 0.5, 8)]


@pytest.mark.parametrize("n_step", [1, 3])
def test_terminated_wins_where_both_flags_are_set(n_step: int):
    replay = scalar_replay(n_step=n_step)
    replay.add(column([1]), np.array([0]), env_step([3], [2], terminated=[0], truncated=[0]))
    assert stored_rows(replay) == [(1, 0, 3.0, 0.0, 2)]


def test_envs_end_independently():
    replay = scalar_replay(num_envs=3, n_step=2)
    first = env_step([1, 2, 3], [11, 21, 31], terminated=[1])
    assert replay.add(column([10, 20, 30]), np.array([0, 1, 2]), first) == 1
    second = env_step([4, 5, 6], [12, 41, 32], truncated=[2])
    assert replay.add(column([11, 40, 31]), np.array([3, 4, 5]), second) == 3
    assert stored_rows(replay) == [
        (20, 1, 2.0, 0.0, 21),
        (10, 0, 3.0, 0.25, 12),  # 1 + 4/2
        (30, 2, 6.0, 0.25, 32),  # 3 + 6/2, bootstraps from the step that timed out
        (31, 5, 6.0, 0.5, 32),
    ]


@pytest.mark.parametrize("n_step", [1, 2])
def test_an_ignored_action_stores_nothing_and_leaves_the_window_alone(n_step: int):
    replay = scalar_replay(num_envs=2, n_step=n_step)
    replay.add(column([1, 5]), np.array([0, 0]), env_step([1, 1], [2, 6]))
    skipped = env_step([9, 1], [9, 7], terminated=[0], valid=np.array([False, True]))
    replay.add(column([9, 6]), np.array([9, 0]), skipped)
    replay.add(column([2, 7]), np.array([0, 0]), env_step([2, 1], [3, 8]))
    own = [row for row in stored_rows(replay) if row[0] in (1, 2, 9)]
    expected = {1: [(1, 0, 1.0, 0.5, 2), (2, 0, 2.0, 0.5, 3)], 2: [(1, 0, 2.0, 0.25, 3)]}
    assert own == expected[n_step]


@pytest.mark.parametrize("n_step", [1, 3])
def test_timeouts_can_be_made_terminal_to_reproduce_older_programs(n_step: int):
    replay = ReplayMemory(ReplaySettings(), SCALAR, 1, Returns(n_step, 0.5, timeouts_are_terminal=True), 0)
    replay.add(column([1]), np.array([0]), env_step([3], [2], truncated=[0]))
    assert stored_rows(replay) == [(1, 0, 3.0, 0.0, 2)]


def test_dropped_windows_are_forgotten():
    replay = scalar_replay(n_step=2)
    replay.add(column([1]), np.array([0]), env_step([9], [2]))
    replay.drop_pending()
    assert replay.add(column([5]), np.array([0]), env_step([1], [6])) == 0
    replay.add(column([6]), np.array([0]), env_step([1], [7]))
    assert stored_rows(replay) == [(5, 0, 1.5, 0.25, 7)]


@given(
    num_envs=st.integers(1, 4),
    n_step=st.integers(1, 5),
    capacity=st.integers(1, 40),
    seed=st.integers(0, 2**32 - 1),
    timeouts=st.booleans(),
)
def test_stored_rows_equal_the_oracle_for_any_endings_and_capacity(num_envs, n_step, capacity, seed, timeouts):
    random = np.random.default_rng(seed)
    replay = ReplayMemory(ReplaySettings(buffer_size=capacity), SCALAR, num_envs, Returns(n_step, 0.9, timeouts), 0)
    oracles, ring = [NStepOracle(n_step, 0.9, timeouts) for _ in range(num_envs)], RingOracle(capacity)
    for i in range(25):
        obs, action = column(random.integers(0, 99, num_envs)), random.integers(0, 4, num_envs)
        step = env_step(random.integers(-5, 5, num_envs), random.integers(0, 99, num_envs))
        step.terminated[:] = random.random(num_envs) < 0.15
        step.truncated[:] = random.random(num_envs) < 0.15
        step.valid = None if i % 2 else random.random(num_envs) < 0.8
        count = 0
        for env in np.flatnonzero(np.ones(num_envs) if step.valid is None else step.valid):
            flags = (step.terminated[env], step.truncated[env])
            rows = oracles[env].push(obs[env, 0], action[env], float(step.reward[env]), *flags, step.final_obs[env, 0])
            count += len(rows)
            for row in rows:
                ring.add(row)
        assert replay.add(obs, action, step) == count
    if replay.size:
        np.testing.assert_allclose(stored_rows(replay), ring.rows, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("bad", [{"n_step": 0}, {"gamma": 1.5}, {"gamma": -0.1}, {"gamma": float("nan")}])
def test_impossible_returns_are_refused(bad: dict):
    with pytest.raises(SettingsError):
        Returns(**bad)


def test_windows_of_another_size_are_not_loaded():
    with pytest.raises(CheckpointError, match="n-step"):
        scalar_replay(n_step=3).load_state(scalar_replay(n_step=2).state())
