"""Return distributions on a fixed support (C51, Bellemare et al. 2017). Z atoms, log-probabilities in and out."""

from __future__ import annotations

import torch
from torch import Tensor


def make_support(v_min: float, v_max: float, atoms: int, device: torch.device | str = "cpu") -> Tensor:
    """The Z values z_i, equally spaced from v_min to v_max."""
    return torch.linspace(v_min, v_max, atoms, device=device)


def expected_q(logits: Tensor, support: Tensor) -> Tensor:
    """Q = sum_i p_i z_i, from logits [..., A, Z] to [..., A]."""
    return logits.softmax(dim=-1) @ support


def project(reward: Tensor, discount: Tensor, probability: Tensor, support: Tensor) -> Tensor:
    """The distribution of r + discount * Z' put back onto the support: each atom's mass split between its neighbours.

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
