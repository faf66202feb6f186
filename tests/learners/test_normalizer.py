"""Running statistics of observations and rewards."""

from __future__ import annotations

import numpy as np
import pytest

from hotloop.core.errors import SettingsError
from hotloop.core.types import ArraySpec
from hotloop.learners.normalizer import ObsNormalizer, RewardScaler

BYTES = ArraySpec((2, 2, 1), np.dtype(np.uint8))


def rows(seed: int, count: int = 40) -> np.ndarray:
    return (np.random.default_rng(seed).normal(size=(count, 3)) * [1.0, 5.0, 0.1] + [0, 10, -2]).astype(np.float32)


def test_mean_and_deviation_are_those_of_everything_absorbed():
    normalizer = ObsNormalizer(ArraySpec((3,)), limit=100.0)
    seen = [rows(seed) for seed in range(4)]
    for part in seen:
        normalizer.absorb(part)
    normalizer.refresh()
    every = np.concatenate(seen)
    np.testing.assert_allclose(normalizer.apply(every), (every - every.mean(0)) / every.std(0), rtol=1e-3, atol=1e-4)


def test_what_is_absorbed_counts_only_after_a_refresh():
    normalizer = ObsNormalizer(ArraySpec((3,)), limit=100.0)
    normalizer.absorb(rows(0))
    np.testing.assert_array_equal(normalizer.apply(rows(1)), rows(1))


def test_nothing_leaves_the_limit():
    normalizer = ObsNormalizer(ArraySpec((1,)), limit=2.0)
    assert normalizer.apply(np.array([[-9.0], [1.5], [9.0]], np.float32)).tolist() == [[-2.0], [1.5], [2.0]]


def test_bytes_are_left_to_the_network_and_nothing_but_bytes_is_refused():
    normalizer = ObsNormalizer({"image": BYTES, "speed": ArraySpec((1,))}, limit=10.0)
    obs = {"image": np.full((2, 2, 2, 1), 7, np.uint8), "speed": np.array([[1.0], [3.0]], np.float32)}
    normalizer.absorb(obs)
    normalizer.refresh()
    assert normalizer.apply(obs)["image"] is obs["image"]
    np.testing.assert_allclose(normalizer.apply(obs)["speed"], [[-1.0], [1.0]], atol=1e-4)
    with pytest.raises(SettingsError, match="normalize.obs"):
        ObsNormalizer(BYTES, limit=10.0)


def test_weights_are_what_acting_needs():
    one, other = (ObsNormalizer(ArraySpec((3,)), limit=10.0) for _ in range(2))
    one.absorb(rows(0))
    one.refresh()
    assert one.num_weights == len(one.weights()) == 6
    other.load_weights(one.weights())
    np.testing.assert_array_equal(one.apply(rows(1)), other.apply(rows(1)))


def test_a_restored_normalizer_continues_exactly():
    one, other = (ObsNormalizer(ArraySpec((3,)), limit=10.0) for _ in range(2))
    one.absorb(rows(0))
    one.refresh()
    other.load_state(one.state())
    for normalizer in (one, other):
        normalizer.absorb(rows(1))
        normalizer.refresh()
    np.testing.assert_array_equal(one.weights(), other.weights())


def slab(reward: list[list[float]], ended: list[list[bool]], weight: list[list[float]] | None = None) -> tuple:
    """Rewards, where episodes end, and weights, as a scaler takes them."""
    rewards = np.array(reward, np.float32)
    return rewards, np.array(ended), np.array(weight or np.ones(rewards.shape), np.float32)


def test_rewards_are_divided_by_the_deviation_of_discounted_returns():
    rollout = slab([[1.0], [1.0], [5.0]], [[False], [True], [False]])
    RewardScaler(1, gamma=0.5, limit=100.0).apply(*rollout)
    deviation = np.std([1.0, 1.5, 5.0])  # 1, 1 + 0.5 x 1, and a new episode
    np.testing.assert_allclose(rollout[0][:, 0], np.array([1.0, 1.0, 5.0]) / deviation, rtol=1e-5)


def test_returns_run_on_into_the_next_rollout_and_begin_anew_with_new_envs():
    one, other = RewardScaler(1, 0.5, 100.0), RewardScaler(1, 0.5, 100.0)
    for scaler in (one, other):
        scaler.apply(*slab([[8.0]], [[False]]))
    other.load_state(one.state())
    one.forget_episodes()
    first, second = slab([[1.0]], [[False]]), slab([[1.0]], [[False]])
    one.apply(*first)
    other.apply(*second)
    assert first[0][0, 0] == pytest.approx(1.0 / np.std([8.0, 1.0]))
    assert second[0][0, 0] == pytest.approx(1.0 / np.std([8.0, 1.0 + 0.5 * 8.0]))


def test_ignored_rows_do_not_count():
    rollout = slab([[1.0], [777.0], [3.0]], [[False], [False], [False]], [[1.0], [0.0], [1.0]])
    RewardScaler(1, gamma=0.0, limit=10.0).apply(*rollout)
    np.testing.assert_allclose(rollout[0][[0, 2], 0], [1.0, 3.0], rtol=1e-5)
