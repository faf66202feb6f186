"""Targets and row losses of temporal differences: scalar, and on a fixed support of Z atoms (C51).

Tensors in, tensors out.
"""

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


def make_support(v_min: float, v_max: float, atoms: int, device: torch.device | str = "cpu") -> Tensor:
    """The Z values z_i, equally spaced from v_min to v_max."""
    return torch.linspace(v_min, v_max, atoms, device=device)


def expected_q(logits: Tensor, support: Tensor) -> Tensor:
    """Q = sum_i p_i z_i, from logits [..., A, Z] to [..., A]."""
    return logits.softmax(dim=-1) @ support


def project(reward: Tensor, discount: Tensor, probability: Tensor, support: Tensor) -> Tensor:
    """The distribution of r + discount * Z' put back onto the support: each atom's mass split between its neighbors.

    reward [B], discount [B], probability [B, Z] -> [B, Z]. Atom i takes max(0, 1 - |T z_j - z_i| / delta) of the mass
    of every j: the triangular kernel says in one line what floor, ceiling and their special cases say in ten.
    """
    delta = support[1] - support[0]
    moved = reward[:, None] + discount[:, None] * support  # [B, Z]
    moved = moved.clamp(support[0], support[-1])
    share = (1.0 - (moved[:, None, :] - support[None, :, None]).abs() / delta).clamp_min(0.0)  # [B, Z to, Z from]
    return (share * probability[:, None, :]).sum(-1)


def cross_entropy(target: Tensor, logits: Tensor) -> Tensor:
    """-sum_i target_i log p_i, [B, Z] and [B, Z] to [B]."""
    return -(target * logits.log_softmax(dim=-1)).sum(-1)
