"""The left-most nodes, found without sorting: the very ones that sorting finds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.core.errors import EnvError
from hotloop.workloads.durotaxis.baselines import leftmost
from hotloop.workloads.durotaxis.colony_kernels import sort_by_place
from hotloop.workloads.durotaxis.selection_kernels import RANKED, fill_block, mark_leftmost


def test_the_smallest_come_back_in_order_of_their_index():
    assert leftmost(np.array([5.0, 1.0, 4.0, 2.0]), 2).tolist() == [1, 3]
    assert leftmost(np.array([5.0, 1.0, 4.0, 2.0]), 3).tolist() == [1, 2, 3]


def test_of_equal_ones_the_older_are_taken():
    assert leftmost(np.array([7.0, 3.0, 3.0, 3.0, 1.0]), 3).tolist() == [1, 2, 4]
    assert leftmost(np.zeros(100), 37).tolist() == list(range(37))


@given(st.lists(st.integers(0, 12) | st.floats(0, 600), max_size=200), st.data())
def test_they_are_those_of_a_stable_sort(values, data):
    k = data.draw(st.integers(0, len(values)))
    expected = sorted(range(len(values)), key=lambda i: (values[i], i))[:k]
    assert leftmost(np.array(values, np.float64), k).tolist() == sorted(expected)


@pytest.mark.parametrize("x", [np.arange(500.0), np.arange(500.0)[::-1], np.r_[np.arange(250.0), np.arange(250.0) + 9]])
def test_rows_that_are_in_order_already_are_no_trouble(x):
    for k in (0, 1, 249, 250, 499, 500):
        assert leftmost(x, k).tolist() == sorted(np.argsort(x, kind="stable")[:k].tolist())


def test_more_than_there_are_cannot_be_had():
    with pytest.raises(EnvError, match="`k` is 4 of 3 nodes"):
        leftmost(np.zeros(3), 4)


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 40, RANKED - 1, RANKED, RANKED + 1, 300])
@pytest.mark.parametrize("values", [3, 1_000_000])
def test_small_colonies_are_ranked_and_large_ones_selected_to_the_same_end(size, values):
    draw = np.random.default_rng(size)
    x, y = draw.integers(0, values, (2, size + 16)).astype(np.float64)
    fill_block(x, size)  # what lay behind the last node is nobody
    order, chosen = np.zeros((2, size), np.int64)
    by_x = sorted(range(size), key=lambda i: (x[i], i))
    for count in {0, 1, size // 3, size} & set(range(size + 1)):
        mark_leftmost(x, size, count, order, chosen)
        assert np.flatnonzero(chosen).tolist() == sorted(by_x[:count])
    sort_by_place(x, y, size, order)
    assert order.tolist() == sorted(range(size), key=lambda i: (x[i], y[i], i))
