"""The terms of the PPO loss (Schulman et al. 2017), row by row."""

from __future__ import annotations

import torch
from torch import Tensor


def ratio(log_prob: Tensor, old_log_prob: Tensor) -> Tensor:
    """pi(a|s) / pi_old(a|s); exactly 1 where the two are equal."""
    return torch.exp(log_prob - old_log_prob)


def clipped_surrogate(ratio: Tensor, advantage: Tensor, clip: float | Tensor) -> Tensor:
    """-min(ratio A, clamp(ratio, 1 - clip, 1 + clip) A): nothing is gained by moving further than `clip_range`."""
    held = ratio.clamp(1.0 - clip, 1.0 + clip)  # type: ignore[arg-type]
    return -torch.minimum(ratio * advantage, held * advantage)


def policy_gradient(log_prob: Tensor, advantage: Tensor) -> Tensor:
    """-log pi(a|s) A: what A2C descends, and the clipped surrogate's gradient where ratio is 1."""
    return -log_prob * advantage


def value_error(value: Tensor, old_value: Tensor, target: Tensor, clip: float) -> Tensor:
    """(V - R)^2; with `clip_range`, the larger of that and the error of V held within `clip_range` of the old value."""
    error = (value - target).square()
    if clip <= 0.0:
        return error
    held = old_value + (value - old_value).clamp(-clip, clip)
    return torch.maximum(error, (held - target).square())


def clip_fraction(ratio: Tensor, clip: float | Tensor) -> Tensor:
    """1 where the ratio has left the range that is rewarded."""
    return ((ratio - 1.0).abs() > clip).to(ratio.dtype)
