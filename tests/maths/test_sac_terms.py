"""SAC's formulas by eye; its normal numbers by what a normal is."""

import math

import numpy as np
import pytest
import torch
from torch import tensor
from torch.distributions import Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform
from torch.testing import assert_close

from hotloop.maths.normal_kernels import TAIL, fill_normals
from hotloop.maths.sac import smoothed_action, soft_target, split_outputs, squashed_sample, temperature_loss


def test_outputs_are_means_then_log_stds_within_their_bounds():
    mean, log_std = split_outputs(tensor([[1.0, 2.0, -30.0, 5.0]]))
    assert mean.tolist() == [[1.0, 2.0]]
    assert log_std.tolist() == [[-20.0, 2.0]]


def test_a_drawn_action_by_hand():
    """u = 1 + 2 * 0.5 = 2; log p = -0.5^2 / 2 - log 2 - log sqrt(2 pi) - log(1 - tanh(2)^2)."""
    action, log_prob = squashed_sample(tensor([[1.0]]), tensor([[math.log(2.0)]]), tensor([[0.5]]))
    assert_close(action, tensor([[math.tanh(2.0)]]))
    by_hand = -0.125 - math.log(2.0) - 0.5 * math.log(2.0 * math.pi) - math.log(1.0 - math.tanh(2.0) ** 2)
    assert_close(log_prob, tensor([by_hand]))


def test_log_prob_is_that_of_a_transformed_normal():
    generator = torch.Generator().manual_seed(0)
    mean, log_std, noise = (torch.randn(50, 3, generator=generator, dtype=torch.float64) for _ in range(3))
    action, log_prob = squashed_sample(0.5 * mean, 0.5 * log_std, noise)
    squashed = TransformedDistribution(Normal(0.5 * mean, (0.5 * log_std).exp()), TanhTransform(cache_size=1))
    assert_close(log_prob, squashed.log_prob(action).sum(-1), rtol=1e-6, atol=1e-6)


def test_log_prob_stays_finite_where_tanh_is_one():
    action, log_prob = squashed_sample(tensor([[40.0]]), tensor([[0.0]]), tensor([[0.0]]))
    assert action.item() == 1.0
    assert_close(log_prob, tensor([-0.5 * math.log(2.0 * math.pi) - 2.0 * math.log(2.0) + 80.0]))


def test_log_prob_with_an_epsilon_within_the_logarithm():
    _, log_prob = squashed_sample(tensor([[0.0]]), tensor([[0.0]]), tensor([[0.0]]), slope_epsilon=1.0)
    assert_close(log_prob, tensor([-0.5 * math.log(2.0 * math.pi) - math.log(2.0)]))  # 1 - 0 + 1


def test_gradients_of_log_prob_and_action_by_hand():
    """d a / d mean = 1 - a^2; d log p / d mean = 2 a; d log p / d log std = -1 + 2 a * std * noise."""
    mean, log_std = tensor([[0.3]], requires_grad=True), tensor([[-0.7]], requires_grad=True)
    action, log_prob = squashed_sample(mean, log_std, tensor([[1.5]]))
    a = action.item()
    assert_close(torch.autograd.grad(action.sum(), mean, retain_graph=True)[0].item(), 1.0 - a * a)
    by_mean, by_log_std = torch.autograd.grad(log_prob.sum(), (mean, log_std))
    assert_close(by_mean.item(), 2.0 * a)
    assert_close(by_log_std.item(), -1.0 + 2.0 * a * math.exp(-0.7) * 1.5)


def test_the_soft_target_by_hand():
    """1 + 0.5 * (min(4, 3) - 0.1 * -2) = 2.6; a terminal row is its reward."""
    q, log_prob = tensor([[4.0, 9.0], [3.0, 9.0]]), tensor([-2.0, -2.0])
    found = soft_target(tensor([1.0, 7.0]), tensor([0.5, 0.0]), q, log_prob, 0.1)
    assert_close(found, tensor([2.6, 7.0]))
    assert_close(soft_target(tensor([1.0, 7.0]), tensor([0.5, 0.0]), q), tensor([2.5, 7.0]))


def test_target_smoothing_by_hand():
    found = smoothed_action(tensor([0.0, 0.0, 0.9, -0.9]), tensor([1.0, 9.0, 9.0, -9.0]), 0.2, 0.5)
    assert_close(found, tensor([0.2, 0.5, 1.0, -1.0]))


def test_the_temperature_rises_while_entropy_is_below_its_target():
    """Entropy -mean(log p) = -3 below the target of -1: the gradient by log alpha is -(3 - 1) = -2, so it rises."""
    log_alpha = tensor([0.5], requires_grad=True)
    loss = temperature_loss(log_alpha, tensor([2.0, 4.0]), -1.0)
    assert_close(loss.item(), -0.5 * 2.0)
    assert_close(torch.autograd.grad(loss, log_alpha)[0], tensor([-2.0]))


def test_normal_numbers_have_the_moments_and_the_shape_of_a_normal():
    out = np.empty(400_000, np.float32)
    fill_normals(np.array([3], np.uint64), out)
    moments = [float(np.mean(out.astype(np.float64) ** power)) for power in range(1, 5)]
    np.testing.assert_allclose(moments, [0.0, 1.0, 0.0, 3.0], atol=0.03)
    quantiles = np.linspace(-3.0, 3.0, 25)
    expected = [0.5 * (1.0 + math.erf(x / math.sqrt(2.0))) for x in quantiles]
    found = [float((out <= x).mean()) for x in quantiles]
    np.testing.assert_allclose(found, expected, atol=0.003)
    beyond = float((np.abs(out) > TAIL).mean())
    assert beyond == pytest.approx(1.0 - math.erf(TAIL / math.sqrt(2.0)), rel=0.25)


def test_normal_numbers_go_on_where_their_state_stopped():
    whole, parts = np.empty(1_000, np.float32), np.empty(1_000, np.float32)
    fill_normals(np.array([9], np.uint64), whole)
    state = np.array([9], np.uint64)
    for start in range(0, 1_000, 100):
        fill_normals(state, parts[start : start + 100])
    assert np.array_equal(whole, parts)
