"""Generalized advantage estimation (Schulman et al. 2016) on time-major slabs [T, N]."""

from __future__ import annotations

import torch
from torch import Tensor


def gae(reward: Tensor, discount: Tensor, trace: Tensor, value: Tensor, next_value: Tensor) -> Tensor:
    """A_t = delta_t + trace_t A_{t+1} with delta_t = r_t + discount_t V(s_{t+1}) - V(s_t); all [T, N].

    `discount` holds gamma * (1 - terminated) and `trace` gamma * lambda * (1 - ended): a time-out bootstraps from the
    value of what its last action led to (`next_value`), but nothing is carried over from the next episode.
    """
    delta = reward + discount * next_value - value
    advantage = torch.empty_like(delta)
    running = torch.zeros_like(delta[0])
    for t in range(len(delta) - 1, -1, -1):
        running = delta[t] + trace[t] * running
        advantage[t] = running
    return advantage


def next_values(value: Tensor, truncated: Tensor, final_value: Tensor) -> Tensor:
    """V(s_{t+1}) [T, N] from V [T + 1, N] of what was seen, and V of the final observations of time-outs."""
    return torch.where(truncated, final_value, value[1:])


def normalize(advantage: Tensor, weight: Tensor, epsilon: float = 1e-8) -> Tensor:
    """(A - mean) / (std + epsilon) over the rows that count (`weight` 1, others 0), with the population's std."""
    count = weight.sum().clamp(min=1.0)
    centred = advantage - (weight * advantage).sum() / count
    variance = (weight * centred * centred).sum() / count
    return centred / (variance.sqrt() + epsilon)
