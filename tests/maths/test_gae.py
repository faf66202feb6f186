"""Generalized advantages: numbers one can check by eye, a slow oracle, and the two forms held equal."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import tensor
from torch.testing import assert_close

from hotloop.maths.gae import gae, next_values, normalize
from hotloop.maths.gae_kernels import gae_numpy
from tests.oracles.gae_oracle import gae_one_env


def slab(reward, value, final_value=None, terminated=(), truncated=(), gamma=0.5, gae_lambda=0.5):
    """Advantages and returns of one env, as lists; `terminated` and `truncated` name time steps."""
    steps = len(reward)
    flags = np.zeros((2, steps, 1), np.bool_)
    flags[0, list(terminated)] = flags[1, list(truncated)] = True
    columns = [np.array(column, np.float32)[:, None] for column in (reward, value, final_value or [0.0] * steps)]
    advantage, returns = np.empty((steps, 1), np.float32), np.empty((steps, 1), np.float32)
    gae_numpy(columns[0], *flags, columns[1], columns[2], gamma, gae_lambda, advantage, returns)
    return advantage[:, 0].tolist(), returns[:, 0].tolist()


def test_two_steps_by_hand():
    advantage, returns = slab(reward=[1.0, 2.0], value=[4.0, 6.0, 8.0])
    # the last: 2 + 0.5*8 - 6 = 0; the first: 1 + 0.5*6 - 4 + 0.25*0 = 0
    assert advantage == [0.0, 0.0]
    advantage, returns = slab(reward=[1.0, 2.0], value=[0.0, 0.0, 8.0])
    assert advantage == [1.0 + 0.25 * 6.0, 6.0]
    assert returns == advantage  # where values are zero


def test_a_terminated_step_bootstraps_from_nothing_and_carries_nothing():
    advantage, _ = slab([1.0, 2.0], [3.0, 5.0, 100.0], final_value=[50.0, 50.0], terminated=[0])
    assert advantage == [1.0 - 3.0, 2.0 + 0.5 * 100.0 - 5.0]


def test_a_truncated_step_bootstraps_from_its_final_observation_and_carries_nothing():
    advantage, returns = slab([1.0, 2.0], [3.0, 5.0, 100.0], final_value=[50.0, 7.0], truncated=[0])
    assert advantage[0] == 1.0 + 0.5 * 50.0 - 3.0
    assert returns[0] == advantage[0] + 3.0


def test_lambda_one_is_the_discounted_sum_and_lambda_zero_the_one_step_error():
    _, returns = slab([1.0, 1.0, 1.0], [9.0, 9.0, 9.0, 8.0], gae_lambda=1.0)
    assert returns == pytest.approx([1 + 0.5 + 0.25 + 0.125 * 8, 1 + 0.5 + 0.25 * 8, 1 + 0.5 * 8])
    advantage, _ = slab([1.0, 1.0], [2.0, 4.0, 6.0], gae_lambda=0.0)
    assert advantage == [1 + 2 - 2, 1 + 3 - 4]


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 5), st.floats(0, 1), st.floats(0, 1))
def test_slab_torch_and_plain_list_agree(seed, steps, num_envs, gamma, lam):
    draw = np.random.default_rng(seed)
    reward, final_value = draw.normal(size=(2, steps, num_envs)).astype(np.float32)
    value = draw.normal(size=(steps + 1, num_envs)).astype(np.float32)
    terminated, truncated = draw.random((2, steps, num_envs)) < 0.2
    truncated &= ~terminated
    advantage, returns = np.empty_like(reward), np.empty_like(reward)
    gae_numpy(reward, terminated, truncated, value, final_value, gamma, lam, advantage, returns)
    for n in range(num_envs):
        columns = (final_value[:, n], terminated[:, n], truncated[:, n], gamma, lam)
        plain = gae_one_env(reward[:, n].tolist(), value[:-1, n].tolist(), float(value[-1, n]), *columns)
        np.testing.assert_allclose(advantage[:, n], plain, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(returns, advantage + value[:-1], rtol=1e-6, atol=1e-6)
    follows = next_values(torch.from_numpy(value), torch.from_numpy(truncated), torch.from_numpy(final_value))
    discount = gamma * torch.from_numpy(~terminated).float()
    trace = gamma * lam * torch.from_numpy(~(terminated | truncated)).float()
    with_torch = gae(torch.from_numpy(reward), discount, trace, torch.from_numpy(value[:-1]), follows)
    np.testing.assert_allclose(advantage, with_torch.numpy(), rtol=1e-4, atol=1e-5)


def test_normalizing_divides_by_the_populations_deviation():
    # mean 2, deviations -1, 0, 1: population std sqrt(2/3)
    got = normalize(tensor([1.0, 2.0, 3.0]), torch.ones(3))
    assert_close(got, tensor([-1.0, 0.0, 1.0]) * (1.5**0.5))


def test_rows_without_weight_do_not_count_in_the_mean():
    got = normalize(tensor([1.0, 2.0, 3.0, 777.0]), tensor([1.0, 1.0, 1.0, 0.0]))
    assert_close(got[:3], tensor([-1.0, 0.0, 1.0]) * (1.5**0.5))


def test_equal_advantages_become_zero():
    assert_close(normalize(torch.full((4,), 3.0), torch.ones(4)), torch.zeros(4))
