"""The public advantages: by eye, against a plain list, and as whatever they are given."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import hotloop
from hotloop.core.errors import HotloopError
from tests.oracles.gae_oracle import gae_one_env


def test_by_eye():
    advantage, returns = hotloop.gae(
        reward=[1.0, 2.0, 3.0],
        value=[10.0, 20.0, 30.0],
        next_value=[20.0, 50.0, 70.0],  # the second step's episode was cut off: 50 is of its final observation
        terminated=[False, False, True],
        truncated=[False, True, False],
        gamma=0.5,
        gae_lambda=0.5,
    )
    last, second = 3 - 30, 2 + 0.5 * 50 - 20
    assert advantage.tolist() == [1 + 0.5 * 20 - 10 + 0.25 * second, second, last]
    assert returns.tolist() == [advantage[0] + 10, second + 20, last + 30]


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(0, 4), st.floats(0, 1), st.floats(0, 1))
def test_numpy_and_torch_agree_with_a_plain_loop(seed, steps, num_envs, gamma, lam):
    """With 0 envs the arrays are [T]."""
    draw = np.random.default_rng(seed)
    shape = (steps, num_envs) if num_envs else (steps,)
    reward, seen, ends = draw.normal(size=(3, *shape))
    terminated, truncated = draw.random((2, *shape)) < 0.2
    # within an episode, what an action led to is what is seen next
    inner = ~(terminated | truncated)
    next_value = ends.copy()
    next_value[:-1] = np.where(inner[:-1], seen[1:], ends[:-1])
    columns = (reward, seen, next_value, terminated, truncated)
    advantage, returns = hotloop.gae(*columns, gamma, lam)
    assert advantage.shape == shape
    for env in range(max(num_envs, 1)):
        one = [column.reshape(steps, -1)[:, env] for column in columns]
        plain = gae_one_env(one[0], one[1], one[2][-1], one[2], one[3], one[4], gamma, lam)
        np.testing.assert_allclose(advantage.reshape(steps, -1)[:, env], plain, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(returns, advantage + seen, rtol=1e-12, atol=1e-12)
    tensors = hotloop.gae(*(torch.from_numpy(column) for column in columns), gamma=gamma, gae_lambda=lam)
    assert torch.equal(tensors[0], torch.from_numpy(advantage))
    assert torch.equal(tensors[1], torch.from_numpy(returns))
    single = hotloop.gae(reward.astype(np.float32), seen.astype(np.float32), *columns[2:], gamma, lam)
    np.testing.assert_allclose(single[0], advantage, rtol=1e-4, atol=1e-4)
    assert single[0].dtype == np.float32


def test_the_answer_is_of_the_kind_of_value():
    flags = np.zeros(3, bool)
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        value = torch.ones(3, dtype=dtype, requires_grad=True)
        advantage, returns = hotloop.gae(np.ones(3), value, [1, 1, 1], flags, flags)
        assert advantage.dtype == returns.dtype == dtype
        assert not advantage.requires_grad
    assert hotloop.gae([1], [1], [1], [False], [0])[0].dtype == np.float32


def test_what_was_given_is_not_changed_and_need_not_be_contiguous():
    reward = np.arange(12.0).reshape(2, 6)[:, ::2].T
    value = np.ones((3, 2))
    kept = reward.copy(), value.copy()
    strided = hotloop.gae(reward, value, value, reward < 0, reward < 0)[0]
    assert np.array_equal(reward, kept[0])
    assert np.array_equal(value, kept[1])
    assert np.array_equal(strided, hotloop.gae(reward.copy(), value, value, reward < 0, reward < 0)[0])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"reward": [1.0]}, r"`reward` has shape \(1,\), `value` \(2,\)"),
        ({"next_value": [[1.0, 2.0]]}, r"`next_value` has shape \(1, 2\)"),
        ({"value": 1.0}, r"`value` has shape \(\); expected \[T\] or \[T, N\]"),
        ({"terminated": [0.0, 1.0]}, "`terminated` is float64; it is kept as bool"),
        ({"reward": [float("nan"), 0.0]}, "`reward` holds nan"),
        ({"value": np.array([np.inf, 0.0], np.float32)}, "`value` holds inf"),
        ({"gamma": 1.1}, "`gamma` is 1.1"),
        ({"gae_lambda": -0.1}, "`gae_lambda` is -0.1"),
    ],
)
def test_wrong_arguments_are_named(wrong, words):
    good = {"reward": [0.0, 1.0], "value": [0.0, 1.0], "next_value": [1.0, 2.0]}
    good |= {"terminated": [False, False], "truncated": [False, True]}
    with pytest.raises(HotloopError, match=words):
        hotloop.gae(**{**good, **wrong})
