from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.replay.sampler_kernels import find_leaf
from hotloop.replay.samplers import SumTree, tree_bytes
from tests.oracles.replay_oracle import find_by_cumulative_sum


def set_leaves(tree: SumTree, index: list[int], value: list[float]) -> None:
    tree.set(np.array(index, dtype=np.int64), np.array(value, dtype=np.float64))


def find(tree: SumTree, target: float) -> int:
    return find_leaf(tree.nodes, tree.levels, target)


def test_a_target_falls_into_the_leaf_that_covers_it():
    tree = SumTree(4)
    set_leaves(tree, [0, 1, 2, 3], [1.0, 2.0, 0.0, 3.0])
    assert tree.total == 6.0
    assert [find(tree, target) for target in (0.0, 0.99, 1.0, 2.99, 3.0, 5.99)] == [0, 0, 1, 1, 3, 3]


def test_of_equal_indices_the_last_wins():
    tree = SumTree(100)
    set_leaves(tree, [7, 50, 7], [1.0, 2.0, 5.0])
    assert tree.leaves[7] == 5.0
    assert tree.total == 7.0


def test_sums_do_not_drift_when_a_huge_value_comes_and_goes():
    tree = SumTree(64)
    set_leaves(tree, list(range(64)), [1e-3] * 64)
    before = tree.total
    set_leaves(tree, [5], [1e18])
    set_leaves(tree, [5], [1e-3])
    assert tree.total == before


def test_rounding_past_the_end_finds_the_last_leaf_that_holds_something():
    tree = SumTree(1000)
    set_leaves(tree, [3, 700], [0.1, 0.2])
    assert find(tree, tree.total) == 700
    assert find(tree, 10 * tree.total) == 700


def test_fill_wraps_around():
    tree = SumTree(10)
    tree.fill(8, 4, 2.0)
    assert tree.leaves.tolist() == [2, 2, 0, 0, 0, 0, 0, 0, 2, 2]
    assert tree.total == 8.0


@given(
    capacity=st.integers(1, 700),
    seed=st.integers(0, 2**32 - 1),
    fill=st.tuples(st.integers(0, 699), st.integers(1, 900)),
)
def test_search_agrees_with_the_cumulative_sum(capacity: int, seed: int, fill: tuple[int, int]):
    random = np.random.default_rng(seed)
    tree, values = SumTree(capacity), np.zeros(capacity)
    first, count = fill[0] % capacity, fill[1]
    tree.fill(first, count, 3.0)
    values[(first + np.arange(min(count, capacity))) % capacity] = 3.0
    for _ in range(3):
        index, value = random.integers(0, capacity, 20), random.integers(0, 5, 20).astype(float)
        tree.set(index, value)
        for leaf, new in zip(index, value, strict=True):
            values[leaf] = new
    assert np.array_equal(tree.leaves, values)
    assert tree.total == values.sum()  # small integers: exact in any order
    for target in (
        np.floor(random.random(20) * values.sum()) if values.any() else ()
    ):  # nothing is found in an empty tree
        assert find(tree, target) == find_by_cumulative_sum(values, target)


@pytest.mark.parametrize("capacity", [1, 8, 9, 64, 65, 100_000])
def test_memory_is_as_foretold_and_little_more_than_the_leaves(capacity: int):
    assert SumTree(capacity).num_bytes == tree_bytes(capacity)
    assert tree_bytes(capacity) <= 1.15 * 8 * capacity + 8 * 64
