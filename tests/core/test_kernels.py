"""The generator inside kernels, and who may call which of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.core.kernels import next_below, next_uint64, next_uniform
from hotloop.loop import collector_kernels


def splitmix64(seed: int, count: int) -> list[int]:
    """The published recurrence in Python's own integers."""
    draws = []
    for _ in range(count):
        seed = (seed + 0x9E3779B97F4A7C15) % 2**64
        z = seed
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        draws.append(z ^ (z >> 31))
    return draws


def test_the_first_draws_of_seed_0_are_the_published_ones():
    state = np.zeros(1, np.uint64)
    assert [int(next_uint64(state, 0)) for _ in range(2)] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]


@given(st.integers(0, 2**64 - 1))
def test_draws_equal_the_recurrence_and_leave_other_generators_alone(seed):
    state = np.array([5, seed], np.uint64)
    assert [int(next_uint64(state, 1)) for _ in range(4)] == splitmix64(seed, 4)
    assert state[0] == 5


@given(st.integers(0, 2**64 - 1), st.integers(1, 2**40))
def test_uniform_and_bounded_draws_stay_in_range(seed, bound):
    state = np.array([seed], np.uint64)
    assert 0.0 <= next_uniform(state, 0) < 1.0
    assert 0 <= next_below(state, 0, bound) < bound


def test_bounded_draws_are_even():
    state = np.array([3], np.uint64)
    counts = np.bincount([next_below(state, 0, 5) for _ in range(20_000)], minlength=5)
    assert np.abs(counts - 4_000).max() < 4 * np.sqrt(20_000 * 0.2 * 0.8)


def test_a_kernel_that_only_kernels_call_refuses_python_whether_it_is_compiled_or_not():
    rows, vector, flags = np.ones((2, 3), np.float32), np.ones(2, np.float32), np.zeros(2, bool)
    for _ in range(2):
        with pytest.raises(TypeError, match="`_all_finite` is a part of other kernels"):
            collector_kernels._all_finite(rows)
        counts = np.zeros(2, np.int64)
        account = collector_kernels.account
        assert account(rows, rows, vector, flags, flags, vector.copy(), counts, vector.copy(), counts.copy()) == 0
