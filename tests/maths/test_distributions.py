"""Closed forms by eye, against torch's own distributions, and against Monte Carlo within its error."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, tensor
from torch.distributions import Categorical, Independent, Normal, TransformedDistribution, kl_divergence
from torch.distributions.transforms import TanhTransform
from torch.testing import assert_close

from hotloop.maths import distributions
from hotloop.maths.distributions import ActionLayout, distribution

DRAWS = 200_000


def within_error(samples: Tensor, value: float) -> bool:
    """Whether the samples' mean is within five standard errors of `value`."""
    return abs(samples.mean().item() - value) < 5.0 * samples.std().item() / math.sqrt(len(samples)) + 1e-6


def test_a_fair_coin():
    log_p = distributions.log_probabilities(tensor([0.0, 0.0]))
    assert_close(log_p.exp(), tensor([0.5, 0.5]))
    assert_close(distributions.categorical_entropy(log_p), tensor(math.log(2.0)))


def test_the_divergence_of_a_fair_coin_from_a_loaded_one():
    fair, loaded = tensor([0.5, 0.5]).log(), tensor([0.9, 0.1]).log()
    assert_close(
        distributions.categorical_kl(fair, loaded), tensor(0.5 * math.log(0.5 / 0.9) + 0.5 * math.log(0.5 / 0.1))
    )
    assert_close(distributions.categorical_kl(loaded, loaded), tensor(0.0))


def test_a_forbidden_action_has_no_probability_no_entropy_and_no_gradient():
    logits = tensor([[1.0, 5.0, 1.0]], requires_grad=True)
    log_p = distributions.log_probabilities(logits, tensor([[True, False, True]]))
    assert_close(log_p.exp(), tensor([[0.5, 0.0, 0.5]]))
    entropy = distributions.categorical_entropy(log_p)
    assert_close(entropy, tensor([math.log(2.0)]))
    (entropy.sum() + distributions.categorical_kl(log_p.detach(), log_p).sum()).backward()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()
    assert logits.grad[0, 1] == 0.0


def test_the_standard_normal():
    zero = torch.zeros(1)
    assert_close(distributions.normal_log_prob(zero, zero, zero), tensor(-0.5 * math.log(2 * math.pi)))
    assert_close(distributions.normal_entropy(zero), tensor(0.5 * math.log(2 * math.pi * math.e)))
    assert_close(distributions.normal_kl(zero, zero, zero + 3.0, zero), tensor(4.5))  # 3^2 / 2


def test_normal_agrees_with_torch():
    torch.manual_seed(0)
    mean, log_std, other_mean, other_log_std, x = torch.randn(5, 7, 3)
    one = Independent(Normal(mean, log_std.exp()), 1)
    other = Independent(Normal(other_mean, other_log_std.exp()), 1)
    assert_close(distributions.normal_log_prob(mean, log_std, x), one.log_prob(x))
    assert_close(distributions.normal_entropy(log_std), one.entropy())
    assert_close(distributions.normal_kl(mean, log_std, other_mean, other_log_std), kl_divergence(one, other))


def test_the_squashed_density_agrees_with_torch_and_integrates_to_one():
    mean, log_std, u = tensor([0.3]), tensor([-0.5]), torch.linspace(-4, 4, 4001)[:, None]
    squashed = TransformedDistribution(Normal(mean, log_std.exp()), TanhTransform())
    x = torch.tanh(u)
    ours = distributions.squashed_log_prob(mean, log_std, u)
    middle = u.abs()[:, 0] < 2.0  # torch inverts tanh, which loses digits further out
    assert_close(ours[middle], squashed.log_prob(x)[middle][:, 0], rtol=1e-3, atol=1e-3)
    assert torch.trapezoid(ours.exp(), x[:, 0]).item() == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("log_std", [-2.0, -0.5, 0.0, 1.0])
@pytest.mark.parametrize("mean", [0.0, 0.7, -3.0])
def test_the_squashed_entropy_is_within_monte_carlos_error(mean, log_std):
    torch.manual_seed(1)
    m, s = tensor([mean], dtype=torch.float64), tensor([log_std], dtype=torch.float64)
    u = m + s.exp() * torch.randn(DRAWS, 1, dtype=torch.float64)
    assert within_error(-distributions.squashed_log_prob(m, s, u), distributions.squashed_entropy(m, s).item())


def test_the_slope_of_tanh_far_out_is_finite():
    assert_close(
        distributions.log_slope_of_tanh(tensor([0.0, 50.0, -50.0])),
        tensor([0.0, 2 * math.log(2) - 100, 2 * math.log(2) - 100]),
    )


HYBRID = ActionLayout(counts=(3, 2), continuous=2, squashed=True)


def draw(policy: distributions.Distribution, count: int) -> Tensor:
    """Actions [count, W] of the first row, by torch's own generators."""
    choices = [Categorical(logits=log_p[0]).sample((count,)).float() for log_p in policy.log_p]
    numbers = policy.mean[0] + policy.log_std[0].exp() * torch.randn(count, policy.layout.continuous)
    return torch.cat([torch.stack(choices, -1), numbers], -1) if choices else numbers


@pytest.mark.parametrize(
    "layout", [ActionLayout((4,)), ActionLayout((3, 2)), ActionLayout((), 3), ActionLayout((), 2, True), HYBRID]
)
def test_entropy_and_divergence_of_any_layout_are_within_monte_carlos_error(layout):
    torch.manual_seed(2)
    outputs = torch.randn(2, 1, layout.num_outputs)
    log_std = 0.3 * torch.randn(2, layout.continuous)
    old, new = (distribution(layout, outputs[i], log_std[i]) for i in range(2))
    drawn = draw(old, DRAWS)
    repeated = [distribution(layout, outputs[i].expand(DRAWS, -1), log_std[i]) for i in range(2)]
    log_p, log_q = (distributions.action_log_prob(policy, drawn) for policy in repeated)
    assert within_error(-log_p, distributions.action_entropy(old).item())
    assert within_error(log_p - log_q, distributions.action_kl(old, new).item())


def test_a_hybrid_is_the_sum_of_its_parts():
    outputs, log_std = torch.zeros(1, HYBRID.num_outputs), torch.zeros(2)
    policy = distribution(HYBRID, outputs, log_std)
    action = tensor([[2.0, 1.0, 0.5, -0.5]])
    numbers = distributions.squashed_log_prob(torch.zeros(2), log_std, tensor([0.5, -0.5]))
    assert_close(distributions.action_log_prob(policy, action), (math.log(1 / 3) + math.log(1 / 2) + numbers)[None])
    assert HYBRID.num_outputs == 7
    assert HYBRID.width == 4


def test_masks_of_several_choices_lie_side_by_side():
    layout = ActionLayout((2, 3))
    mask = tensor([[True, False, True, True, False]])
    policy = distribution(layout, torch.zeros(1, 5), torch.zeros(0), mask)
    assert_close(distributions.action_entropy(policy), tensor([math.log(2.0)]))
    assert_close(distributions.action_log_prob(policy, tensor([[0.0, 1.0]])), tensor([math.log(0.5)]))
