"""The left-most nodes, found without sorting: the very ones that sorting finds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.core.errors import EnvError
from hotloop.envs.durotaxis.selection import leftmost


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
