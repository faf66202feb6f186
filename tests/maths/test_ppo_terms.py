"""The terms of the PPO loss, with numbers one can check by eye."""

from __future__ import annotations

import torch
from torch import tensor
from torch.testing import assert_close

from hotloop.maths import ppo


def test_the_ratio_of_equal_log_probabilities_is_exactly_one():
    log_prob = torch.randn(100) * 30
    assert (ppo.ratio(log_prob, log_prob.clone()) == 1.0).all()


def test_ratio_is_the_quotient_of_probabilities():
    assert_close(ppo.ratio(tensor([0.5]).log(), tensor([0.25]).log()), tensor([2.0]))


def test_the_surrogate_stops_rewarding_beyond_the_clip_but_never_stops_punishing():
    ratio = tensor([1.5, 1.5, 0.5, 0.5])
    advantage = tensor([2.0, -2.0, 2.0, -2.0])
    # good and more likely: held at 1.2; bad and more likely: in full; good and less likely: in full; bad: held at 0.8
    assert_close(ppo.clipped_surrogate(ratio, advantage, 0.2), tensor([-2.4, 3.0, -1.0, 1.6]))


def test_the_gradient_of_the_surrogate_is_the_policy_gradient_where_nothing_has_moved():
    advantage, old = torch.randn(8), torch.randn(8)
    one, other = (old.clone().requires_grad_() for _ in range(2))
    ppo.clipped_surrogate(ppo.ratio(one, old), advantage, 0.2).sum().backward()
    ppo.policy_gradient(other, advantage).sum().backward()
    assert_close(one.grad, other.grad)


def test_value_error_without_clip_is_the_square():
    assert_close(ppo.value_error(tensor([3.0]), tensor([0.0]), tensor([1.0]), 0.0), tensor([4.0]))


def test_value_error_with_clip_takes_the_larger_error():
    value, old, target = tensor([3.0, 3.0]), tensor([0.0, 0.0]), tensor([4.0, 1.0])
    # held at 0.5: errors 3.5 and 0.5 against 1 and 2
    assert_close(ppo.value_error(value, old, target, 0.5), tensor([12.25, 4.0]))


def test_clip_fraction_counts_ratios_outside():
    assert ppo.clip_fraction(tensor([0.7, 0.85, 1.0, 1.15, 1.3]), 0.2).tolist() == [1.0, 0.0, 0.0, 0.0, 1.0]
