from __future__ import annotations

import numpy as np
import pytest

from hotloop.core.errors import CheckpointError, EnvError
from hotloop.core.types import ArraySpec, EnvStep, map_obs
from hotloop.presets.replay_settings import ReplaySettings
from hotloop.replay.buffer import ReplayMemory
from hotloop.replay.n_step import Returns
from tests.replay.replay_steps import column, env_step, scalar_replay, stored_rows, walk


def test_the_oldest_rows_give_way_once_the_ring_is_full():
    replay = scalar_replay(buffer_size=3)
    walk(replay, 5)
    assert replay.size == replay.buffer_size == 3
    assert [row[0] for row in stored_rows(replay)] == [3, 4, 2]


def test_one_call_wraps_around_the_end():
    replay = scalar_replay(num_envs=4, buffer_size=6)
    for base in (0, 10):
        obs = base + np.arange(4)
        replay.add(column(obs), obs, env_step(obs, obs + 1))
    assert [row[:2] for row in stored_rows(replay)] == [(12, 12), (13, 13), (2, 2), (3, 3), (10, 10), (11, 11)]


def test_one_call_with_more_rows_than_capacity_keeps_the_last():
    replay = scalar_replay(num_envs=5, buffer_size=2, prioritized=True)
    replay.add(column(range(5)), np.arange(5), env_step([0] * 5, range(5)))
    assert sorted(row[0] for row in stored_rows(replay)) == [3, 4]
    assert replay._sampler.tree.total == 2.0


@pytest.mark.parametrize("n_step", [1, 2])
def test_byte_images_come_back_as_they_went_in(n_step: int):
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (6, 2, 3, 5), dtype=np.uint8)
    replay = ReplayMemory(ReplaySettings(), ArraySpec((3, 5), np.dtype(np.uint8)), 2, Returns(n_step), 0)
    for i in range(5):
        step = env_step([1, 1], [0, 0])
        step.final_obs = images[i + 1]
        replay.add(images[i], np.array([2 * i, 2 * i + 1]), step)
    batch = replay.sample(16, 2, 0)
    assert batch.obs.shape == (2, 16, 3, 5)
    assert batch.obs.dtype == np.uint8
    moment, env = batch.action // 2, batch.action % 2
    assert np.array_equal(batch.obs, images[moment, env])
    assert np.array_equal(batch.next_obs, images[moment + n_step, env])


@pytest.mark.parametrize("n_step", [1, 2])
@pytest.mark.parametrize("count_dtype", [np.float32, np.int16])
def test_dict_observations_keep_their_parts_shapes_and_dtypes(n_step: int, count_dtype: type):
    spec = {"map": ArraySpec((2, 2)), "count": ArraySpec((3,), np.dtype(count_dtype)), "time": ArraySpec(())}

    def observe(moment: int) -> dict[str, np.ndarray]:
        base = 10.0 * moment + np.arange(2)
        return {
            "map": np.tile(base[:, None, None], (1, 2, 2)).astype(np.float32),
            "count": np.tile(base[:, None], (1, 3)).astype(count_dtype),
            "time": base.astype(np.float32),
        }

    replay = ReplayMemory(ReplaySettings(), spec, 2, Returns(n_step), 0)
    for i in range(4):
        step = env_step([1, 1], [0, 0])
        step.final_obs = observe(i + 1)
        replay.add(observe(i), np.array([10 * i, 10 * i + 1]), step)
    batch = replay.sample(8, 1, 0)
    for name, shape in (("map", (1, 8, 2, 2)), ("count", (1, 8, 3)), ("time", (1, 8))):
        assert batch.obs[name].shape == shape
        assert batch.obs[name].dtype == spec[name].dtype
        assert np.array_equal(batch.obs[name].reshape(1, 8, -1)[..., 0], batch.action)
        assert np.array_equal(batch.next_obs[name].reshape(1, 8, -1)[..., -1], batch.action + 10 * n_step)


@pytest.mark.parametrize("n_step", [1, 2])
def test_masks_belong_to_the_observation_the_row_leads_to(n_step: int):
    replay = ReplayMemory(ReplaySettings(), ArraySpec((1,)), 1, Returns(n_step), 0, num_actions=3)
    masks = np.array([[[1, 0, 0]], [[0, 1, 0]], [[0, 0, 1]], [[1, 1, 0]]], dtype=bool)
    for i in range(3):
        replay.add(column([i]), np.array([i]), env_step([1], [i + 1], final_action_mask=masks[i + 1]))
    batch = replay.sample(10, 1, 0)
    assert np.array_equal(batch.next_action_mask[0], masks[batch.action[0] + n_step, 0])


def test_without_a_final_mask_the_step_mask_serves_except_where_the_episode_ended():
    replay = ReplayMemory(ReplaySettings(combined=True), ArraySpec((1,)), 2, Returns(), 0, num_actions=2)
    mask = np.array([[True, False], [False, True]])
    replay.add(column([0, 0]), np.array([0, 1]), env_step([1, 1], [1, 1], truncated=[1], action_mask=mask))
    batch = replay.sample(20, 1, 0)
    expected = np.array([[True, False], [True, True]])
    assert np.array_equal(batch.next_action_mask[0], expected[batch.action[0]])


def test_a_step_without_the_announced_mask_is_an_error():
    replay = ReplayMemory(ReplaySettings(), ArraySpec((1,)), 1, Returns(), 0, num_actions=2)
    with pytest.raises(EnvError, match="masks"):
        replay.add(column([0]), np.array([0]), env_step([1], [1]))


def test_other_dtypes_and_layouts_are_converted_to_the_spec():
    replay = ReplayMemory(ReplaySettings(), ArraySpec((2,)), 2, Returns(), 0)
    final = np.asfortranarray([[5.0, 6.0], [7.0, 8.0]])
    step = EnvStep(final, np.ones(2), np.zeros(2, bool), np.zeros(2, bool), final)
    replay.add(np.array([[1, 2], [3, 4]]), np.array([0, 1], dtype=np.int32), step)
    batch = replay.sample(6, 1, 0)
    assert np.array_equal(batch.obs[0], np.array([[1, 2], [3, 4]])[batch.action[0]])
    assert np.array_equal(batch.next_obs[0], final[batch.action[0]])


@pytest.mark.parametrize("spec", [ArraySpec((2,)), ArraySpec((2, 1)), ArraySpec((2,), np.dtype(np.uint8))])
@pytest.mark.parametrize("shape", [(2,), (1, 3), (2, 2), (1, 2, 2)])
def test_observations_of_another_shape_are_refused(spec: ArraySpec, shape: tuple[int, ...]):
    replay = ReplayMemory(ReplaySettings(), spec, 1, Returns(), 0)
    with pytest.raises(EnvError, match="shape"):
        replay.add(np.zeros(shape), np.zeros(1, np.int64), env_step([1], [1]))


@pytest.mark.parametrize("n_step", [1, 2])
def test_rewards_for_another_number_of_envs_are_refused(n_step: int):
    replay = scalar_replay(num_envs=2, n_step=n_step)
    step = env_step([1], [1])
    step.final_obs = column([1, 1])
    with pytest.raises(EnvError, match="2 envs"):
        replay.add(column([1, 1]), np.zeros(2, np.int64), step)


def test_rows_of_another_layout_are_not_loaded():
    replay = scalar_replay(buffer_size=4)
    walk(replay, 4)
    with pytest.raises(CheckpointError, match="replay rows"):
        scalar_replay(buffer_size=3).load_state(replay.state())


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize("spec", [ArraySpec((2,)), {"a": ArraySpec((3,), np.dtype(np.uint8)), "b": ArraySpec((2,))}])
def test_actions_of_a_shape_come_back_beside_what_they_answered(spec, dtype, n_step):
    """Numbers, or several choices: each row's action is ten times its observation, through windows and wrap-around."""
    action_spec = ArraySpec((2, 2), np.dtype(dtype))
    replay = ReplayMemory(ReplaySettings(buffer_size=5), spec, 2, Returns(n_step), 0, num_actions=3, action=action_spec)
    mask = np.array([[True, False, True], [False, True, False]])
    for t in range(20):
        seen, after = (
            map_obs(lambda part, t=t: np.full((2, *part.shape), t, part.dtype) + _env(part), spec) for t in (t, t + 1)
        )
        action = np.full((2, 2, 2), 10 * t, dtype) + np.arange(4, dtype=dtype).reshape(2, 2)
        ended = np.array([t % 7 == 6, False])
        step = EnvStep(after, np.ones(2, np.float32), ended, ~ended & False, after, final_action_mask=mask)
        replay.add(seen, action, step)
    batch = replay.sample(64, 1, 0)
    first = (batch.obs["b"] if isinstance(spec, dict) else batch.obs)[0, :, 0]
    env = (first >= 100).astype(int)
    assert batch.action.dtype == dtype
    expected = 10 * (first - 100 * env)[:, None, None] + np.arange(4).reshape(2, 2)
    assert np.array_equal(batch.action[0], expected)
    assert np.array_equal(batch.next_action_mask[0], mask[env])
    following = (batch.next_obs["b"] if isinstance(spec, dict) else batch.next_obs)[0, :, 0]
    assert set(np.unique(following - first)) <= set(range(1, n_step + 1))


def _env(spec):
    """Env 1 counts from 100."""
    return np.array([0, 100], spec.dtype).reshape(2, *[1] * len(spec.shape))
