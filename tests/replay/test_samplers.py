from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from hotloop.core.errors import CheckpointError, NonFiniteError
from tests.oracles.replay_oracle import importance_weights
from tests.replay.replay_steps import scalar_replay, walk


def set_priorities(replay, priorities) -> None:
    """With alpha 1 and a tiny epsilon a TD error is the priority."""
    replay.update_priorities(np.arange(len(priorities))[None], np.array([priorities], dtype=np.float32))


def prioritized(rows: int, **settings):
    replay = scalar_replay(prioritized=True, alpha=1.0, priority_epsilon=1e-12, **{"buffer_size": rows, **settings})
    walk(replay, rows)
    return replay


def test_uniform_draws_every_row_equally_often():
    replay = scalar_replay(buffer_size=10, seed=3)
    walk(replay, 10)
    counts = np.bincount(replay.sample(100, 200, 0).index.ravel(), minlength=10)
    assert chisquare(counts).pvalue > 0.01


def test_uniform_draws_only_filled_rows_with_weight_one():
    replay = scalar_replay(buffer_size=1000)
    walk(replay, 3)
    batch = replay.sample(64, 2, 0)
    assert set(batch.index.ravel()) == {0, 1, 2}
    assert (batch.weight == 1).all()
    assert np.array_equal(batch.obs[..., 0], batch.index)


def test_prioritized_draws_in_proportion_to_priority():
    replay = prioritized(5, seed=3)
    priorities = np.array([1.0, 2.0, 3.0, 4.0, 10.0])
    set_priorities(replay, priorities)
    # One row per batch: stratified rows of one batch are not independent draws.
    counts = np.bincount(replay.sample(1, 10_000, 0).index.ravel(), minlength=5)
    assert chisquare(counts, 10_000 * priorities / 20).pvalue > 0.01


def test_each_stretch_of_the_priorities_gives_one_row():
    replay = prioritized(4)
    set_priorities(replay, [1.0, 1.0, 2.0, 4.0])
    batch = replay.sample(8, 3, 0)
    assert batch.index.tolist() == [[0, 1, 2, 2, 3, 3, 3, 3]] * 3


def test_weights_by_hand():
    replay = prioritized(2, beta_start=0.5, beta_end=1.0, beta_env_steps=100)
    set_priorities(replay, [1.0, 4.0])
    batch = replay.sample(5, 1, env_steps=0)
    assert batch.index.tolist() == [[0, 1, 1, 1, 1]]
    np.testing.assert_allclose(batch.weight, [[1, 0.5, 0.5, 0.5, 0.5]])  # (1/4)^0.5
    np.testing.assert_allclose(replay.sample(5, 1, env_steps=50).weight[0, 1], 0.25**0.75, rtol=1e-6)
    np.testing.assert_allclose(replay.sample(5, 1, env_steps=1000).weight[0, 1], 0.25)


@given(
    priorities=st.lists(st.floats(0.0625, 100, width=32), min_size=1, max_size=30),
    beta=st.floats(0, 1),
    combined=st.booleans(),
)
def test_weights_agree_with_the_formula(priorities: list[float], beta: float, combined: bool):
    replay = prioritized(len(priorities), beta_start=beta, beta_end=beta, combined=combined)
    set_priorities(replay, priorities)
    batch = replay.sample(7, 2, 0)
    for index, weight in zip(batch.index, batch.weight, strict=True):
        np.testing.assert_allclose(weight, importance_weights(np.array(priorities), index, beta), rtol=1e-5)


def test_new_rows_get_the_largest_priority_seen_so_far():
    replay = scalar_replay(buffer_size=10, prioritized=True, alpha=0.5, priority_epsilon=1e-12)
    walk(replay, 2)
    assert replay._sampler.tree.leaves[:2].tolist() == [1.0, 1.0]
    replay.update_priorities(np.array([[0, 1]]), np.array([[9.0, -16.0]]))
    walk(replay, 1, start=2)
    replay.update_priorities(np.array([[1]]), np.array([[1.0]]))
    walk(replay, 1, start=3)
    np.testing.assert_allclose(replay._sampler.tree.leaves[:4], [3, 1, 4, 4])  # |td|^0.5; 4 was the largest ever


def test_of_equal_rows_the_last_td_error_counts():
    replay = prioritized(3)
    replay.update_priorities(np.array([[1, 1], [1, 0]]), np.array([[5.0, 6.0], [7.0, 2.0]]))
    np.testing.assert_allclose(replay._sampler.tree.leaves, [2, 7, 1])


@pytest.mark.parametrize("is_prioritized", [False, True])
def test_combined_puts_the_newest_row_last_in_every_batch(is_prioritized: bool):
    replay = scalar_replay(buffer_size=4, combined=True, prioritized=is_prioritized)
    walk(replay, 6)
    assert replay.sample(3, 5, 0).obs[:, -1, 0].tolist() == [5.0] * 5


@pytest.mark.parametrize("is_prioritized", [False, True])
def test_repeated_batches_stand_in_a_row(is_prioritized: bool):
    replay = scalar_replay(buffer_size=1000, prioritized=is_prioritized)
    walk(replay, 1000)
    batch = replay.sample(16, 5, 0, repeat=2)
    assert np.array_equal(batch.index[0], batch.index[1])
    assert np.array_equal(batch.index[2], batch.index[3])
    assert np.array_equal(batch.obs[2], batch.obs[3])
    assert len({tuple(rows) for rows in batch.index}) == 3


@pytest.mark.parametrize("is_prioritized", [False, True])
def test_reseeded_it_draws_as_one_that_was_made_with_that_seed(is_prioritized: bool):
    first, other = (scalar_replay(buffer_size=100, prioritized=is_prioritized, seed=seed) for seed in (1, 2))
    walk(first, 100)
    walk(other, 100)
    first.sample(8, 1, 0)
    first.reseed(2)
    assert np.array_equal(first.sample(32, 1, 0).index, other.sample(32, 1, 0).index)


def test_only_prioritized_replay_limits_the_batches_of_one_sample():
    assert scalar_replay().max_batches_per_sample > 10**6
    assert scalar_replay(prioritized=True).max_batches_per_sample == 1
    assert scalar_replay(prioritized=True, prioritized_batches=4).max_batches_per_sample == 4


def test_batches_of_one_sample_share_the_priorities_they_were_drawn_from():
    replay = prioritized(2, prioritized_batches=2)
    set_priorities(replay, [1.0, 1e-9])
    batch = replay.sample(4, 2, 0)
    assert batch.index.tolist() == [[0, 0, 0, 0]] * 2  # the second batch is stale
    set_priorities(replay, [1e-9, 1.0])
    assert replay.sample(4, 2, 0).index.tolist() == [[1, 1, 1, 1]] * 2


def test_a_td_error_that_is_no_number_changes_nothing():
    replay = prioritized(3)
    with pytest.raises(NonFiniteError, match="1 of 2"):
        replay.update_priorities(np.array([[0, 1]]), np.array([[5.0, np.nan]]))
    assert replay._sampler.tree.leaves.tolist() == [1, 1, 1]


def test_rows_that_are_not_stored_are_refused():
    replay = scalar_replay(buffer_size=10, prioritized=True)
    walk(replay, 3)
    for index in (-1, 3):
        with pytest.raises(IndexError):
            replay.update_priorities(np.array([[index]]), np.array([[1.0]]))


def test_uniform_replay_ignores_td_errors():
    told, left = scalar_replay(buffer_size=10, seed=5), scalar_replay(buffer_size=10, seed=5)
    for replay in (told, left):
        walk(replay, 3)
    told.update_priorities(np.array([[0, 1]]), np.array([[1e6, 1e-6]]))
    batches = [replay.sample(64, 4, 0) for replay in (told, left)]
    assert np.array_equal(batches[0].index, batches[1].index)
    assert all((batch.weight == 1).all() for batch in batches)


def test_priorities_of_a_larger_replay_are_not_loaded():
    with pytest.raises(CheckpointError, match="priorities"):
        prioritized(3)._sampler.load_state(prioritized(9)._sampler.state(), 9)
