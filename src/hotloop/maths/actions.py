"""The policy's distribution over any kind of action: some choices among a few, some numbers, or both (hybrid).

The parts are independent given the state, so log-probability, entropy and KL are sums over them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from hotloop.maths import distributions as d

NO_MASK = np.zeros((0, 0), np.bool_)
"""For kernels: everything is allowed."""


@dataclass(frozen=True)
class ActionLayout:
    """An action is a row of `len(counts)` choices, then `continuous` numbers before any squashing."""

    counts: tuple[int, ...] = ()
    """How many actions each choice has."""
    continuous: int = 0
    squashed: bool = False
    """Whether the numbers go through tanh."""

    @cached_property
    def num_logits(self) -> int:
        return sum(self.counts)

    @property
    def num_outputs(self) -> int:
        """What the network gives: all logits, then all means."""
        return self.num_logits + self.continuous

    @property
    def width(self) -> int:
        """Columns of an action."""
        return len(self.counts) + self.continuous


class Distribution(NamedTuple):
    """Of B actions: log p of each choice, mean and log std of the numbers."""

    layout: ActionLayout
    log_p: tuple[Tensor, ...]  # [B, count] each
    mean: Tensor  # [B, C]
    log_std: Tensor  # [B, C], or anything that broadcasts to it


def distribution(layout: ActionLayout, outputs: Tensor, log_std: Tensor, mask: Tensor | None = None) -> Distribution:
    """From the network's outputs [B, O] and the parameters log_std [C]; `mask` [B, logits]."""
    parts, start = [], 0
    for count in layout.counts:
        allowed = None if mask is None else mask[..., start : start + count]
        parts.append(d.log_probabilities(outputs[..., start : start + count], allowed))
        start += count
    mean = outputs[..., start:]
    return Distribution(layout, tuple(parts), mean, log_std.expand_as(mean))


def log_prob(policy: Distribution, action: Tensor) -> Tensor:
    """[B] of actions [B, W]."""
    layout, total = policy.layout, torch.zeros_like(action[..., 0])
    for column, log_p in enumerate(policy.log_p):
        total = total + d.categorical_log_prob(log_p, action[..., column].long())
    if layout.continuous:
        density = d.squashed_log_prob if layout.squashed else d.normal_log_prob
        total = total + density(policy.mean, policy.log_std, action[..., len(layout.counts) :])
    return total


def entropy(policy: Distribution) -> Tensor:
    total = torch.zeros(policy.mean.shape[:-1], dtype=policy.mean.dtype, device=policy.mean.device)
    for log_p in policy.log_p:
        total = total + d.categorical_entropy(log_p)
    if policy.layout.squashed:
        return total + d.squashed_entropy(policy.mean, policy.log_std)
    return total + d.normal_entropy(policy.log_std) if policy.layout.continuous else total


def kl(old: Distribution, new: Distribution) -> Tensor:
    """KL(old || new) [B]."""
    total = torch.zeros(old.mean.shape[:-1], dtype=old.mean.dtype, device=old.mean.device)
    for old_log_p, new_log_p in zip(old.log_p, new.log_p, strict=True):
        total = total + d.categorical_kl(old_log_p, new_log_p)
    if old.layout.continuous:
        total = total + d.normal_kl(old.mean, old.log_std, new.mean, new.log_std)
    return total
