"""Temporal-difference targets and losses for scalar Q-values. Tensors in, tensors out."""

from __future__ import annotations

import torch
from torch import Tensor


def mask_actions(q: Tensor, action_mask: Tensor | None) -> Tensor:
    """Q-values [B, A] with forbidden actions at minus infinity, so that no argmax can choose them."""
    return q if action_mask is None else q.masked_fill(~action_mask, -torch.inf)


def td_target(reward: Tensor, discount: Tensor, q_eval: Tensor, q_select: Tensor) -> Tensor:
    """y = r + discount * Q_eval(s', argmax_a Q_select(s', a)).

    `discount` [B] already holds gamma^n * (1 - terminated): one-step, n-step and terminal rows need no cases.
    Pass the target network twice for DQN, target and online for Double DQN (van Hasselt et al. 2015).
    """
    best = q_select.argmax(dim=-1, keepdim=True)  # [B, 1]
    return reward + discount * q_eval.gather(-1, best).squeeze(-1)  # [B]


def take(q: Tensor, action: Tensor) -> Tensor:
    """Q(s, a) [B] of the actions taken, from q [B, A]."""
    return q.gather(-1, action.unsqueeze(-1)).squeeze(-1)


def huber(error: Tensor) -> Tensor:
    """0.5 e^2 where |e| <= 1, |e| - 0.5 beyond: squared near zero, linear for outliers."""
    size = error.abs()
    return torch.where(size <= 1.0, 0.5 * error * error, size - 0.5)


def squared(error: Tensor) -> Tensor:
    """e^2, without the half: what `mse_loss` means."""
    return error * error
