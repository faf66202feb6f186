"""Distributions in closed form, and those of whole actions: log-probability, entropy, KL.

The closed forms reduce the last axis. KL is KL(old || new). Forbidden actions have logits of -1e9 instead of minus
infinity, so that 0 * log 0 is 0 and gradients stay finite. The parts of an action (choices among a few, numbers, or
both) are independent given the state, so that each quantity is a sum over them. Of a graph the numbers are normal
before tanh, and the choices of its nodes enter every quantity by their *mean* over the nodes, so that the ratio of two
policies does not explode with the size of the graph; a graph without nodes adds 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

FORBIDDEN = -1e9
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_NODES, _SPACING = 33, 0.4
"""Of the trapezoid rule over a standard normal: from -6.4 to 6.4."""


def log_probabilities(logits: Tensor, mask: Tensor | None = None) -> Tensor:
    """log p [..., A] of a categorical, of the actions that the mask allows."""
    if mask is not None:
        logits = logits.masked_fill(~mask, FORBIDDEN)
    return logits.log_softmax(-1)


def categorical_log_prob(log_p: Tensor, action: Tensor) -> Tensor:
    return log_p.gather(-1, action.unsqueeze(-1)).squeeze(-1)


def categorical_entropy(log_p: Tensor) -> Tensor:
    """-sum_a p_a log p_a."""
    return -(log_p.exp() * log_p).sum(-1)


def categorical_kl(old_log_p: Tensor, new_log_p: Tensor) -> Tensor:
    """sum_a p_a (log p_a - log q_a)."""
    return (old_log_p.exp() * (old_log_p - new_log_p)).sum(-1)


def normal_log_prob(mean: Tensor, log_std: Tensor, action: Tensor) -> Tensor:
    """Of a diagonal normal: sum_i -(x_i - m_i)^2 / 2 s_i^2 - log s_i - log sqrt(2 pi)."""
    scaled = (action - mean) * torch.exp(-log_std)
    return (-0.5 * scaled * scaled - log_std - _LOG_ROOT_TWO_PI).sum(-1)


def normal_entropy(log_std: Tensor) -> Tensor:
    """sum_i log s_i + log sqrt(2 pi e)."""
    return (log_std + (0.5 + _LOG_ROOT_TWO_PI)).sum(-1)


def normal_kl(old_mean: Tensor, old_log_std: Tensor, new_mean: Tensor, new_log_std: Tensor) -> Tensor:
    """sum_i log(t_i / s_i) + (s_i^2 + (m_i - n_i)^2) / 2 t_i^2 - 1/2, old N(m, s^2) against new N(n, t^2).

    A squashed normal has the same: the divergence does not change under a one-to-one map of both.
    """
    precision = torch.exp(-2.0 * new_log_std)
    distance = torch.exp(2.0 * old_log_std) + (old_mean - new_mean).square()
    return (new_log_std - old_log_std + 0.5 * distance * precision - 0.5).sum(-1)


def log_slope_of_tanh(u: Tensor) -> Tensor:
    """log(1 - tanh(u)^2), without the cancellation near 1."""
    return 2.0 * (math.log(2.0) - u - softplus(-2.0 * u))


def squashed_log_prob(mean: Tensor, log_std: Tensor, u: Tensor) -> Tensor:
    """Of tanh(u), with u normal: the normal's density divided by the slope of tanh (the Jacobian)."""
    return normal_log_prob(mean, log_std, u) - log_slope_of_tanh(u).sum(-1)


def squashed_entropy(mean: Tensor, log_std: Tensor) -> Tensor:
    """Of tanh(u): H(u) + E log(1 - tanh(u)^2).

    The expectation has no elementary form. The trapezoid rule converges exponentially on it: within 1e-9 for standard
    deviations up to 1, 2e-4 at 3.
    """
    half = (_NODES - 1) // 2
    z = _SPACING * torch.arange(-half, half + 1, dtype=mean.dtype, device=mean.device)
    density = _SPACING * torch.exp(-0.5 * z * z - _LOG_ROOT_TWO_PI)
    u = mean.unsqueeze(-1) + log_std.exp().unsqueeze(-1) * z  # [..., C, nodes]
    expected = (density * log_slope_of_tanh(u)).sum(-1)
    return normal_entropy(log_std) + expected.sum(-1)


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
        parts.append(log_probabilities(outputs[..., start : start + count], allowed))
        start += count
    mean = outputs[..., start:]
    return Distribution(layout, tuple(parts), mean, log_std.expand_as(mean))


def action_log_prob(policy: Distribution, action: Tensor) -> Tensor:
    """[B] of actions [B, W]."""
    layout, total = policy.layout, torch.zeros_like(action[..., 0])
    for column, log_p in enumerate(policy.log_p):
        total = total + categorical_log_prob(log_p, action[..., column].long())
    if layout.continuous:
        density = squashed_log_prob if layout.squashed else normal_log_prob
        total = total + density(policy.mean, policy.log_std, action[..., len(layout.counts) :])
    return total


def action_entropy(policy: Distribution) -> Tensor:
    total = torch.zeros(policy.mean.shape[:-1], dtype=policy.mean.dtype, device=policy.mean.device)
    for log_p in policy.log_p:
        total = total + categorical_entropy(log_p)
    if policy.layout.squashed:
        return total + squashed_entropy(policy.mean, policy.log_std)
    return total + normal_entropy(policy.log_std) if policy.layout.continuous else total


def action_kl(old: Distribution, new: Distribution) -> Tensor:
    """KL(old || new) [B]."""
    total = torch.zeros(old.mean.shape[:-1], dtype=old.mean.dtype, device=old.mean.device)
    for old_log_p, new_log_p in zip(old.log_p, new.log_p, strict=True):
        total = total + categorical_kl(old_log_p, new_log_p)
    if old.layout.continuous:
        total = total + normal_kl(old.mean, old.log_std, new.mean, new.log_std)
    return total


class GraphDistribution(NamedTuple):
    """Of B graphs: mean and log std of the numbers before tanh, log p of each node's choices."""

    mean: Tensor  # [B, C]
    log_std: Tensor  # [B, C]
    log_p: Tensor | None  # [nodes, A], None where nodes have no choice
    node_graph: Tensor  # [nodes] int64
    num_graphs: int


def graph_distribution(
    mean: Tensor, log_std: Tensor, node_logits: Tensor | None, node_graph: Tensor, num_graphs: int
) -> GraphDistribution:
    """From the network's outputs; `node_graph` says which graph a node belongs to."""
    log_p = None if node_logits is None else log_probabilities(node_logits)
    return GraphDistribution(mean, log_std, log_p, node_graph, num_graphs)


def graph_action_log_prob(
    policy: GraphDistribution, u: Tensor, choices: Tensor | None = None, counts: Tensor | None = None
) -> Tensor:
    """[B] of numbers u [B, C] before tanh and choices [nodes]; `counts` [B, C]: which of the numbers count."""
    of_numbers = _sum(squashed_log_prob(_each(policy.mean), _each(policy.log_std), _each(u)), counts)
    if policy.log_p is None:
        return of_numbers
    assert choices is not None, "this policy has a choice for each node"
    return of_numbers + _node_mean(policy, categorical_log_prob(policy.log_p, choices))


def graph_action_entropy(policy: GraphDistribution, counts: Tensor | None = None) -> Tensor:
    """[B]"""
    of_numbers = _sum(squashed_entropy(_each(policy.mean), _each(policy.log_std)), counts)
    if policy.log_p is None:
        return of_numbers
    return of_numbers + _node_mean(policy, categorical_entropy(policy.log_p))


def graph_action_kl(old: GraphDistribution, new: GraphDistribution, counts: Tensor | None = None) -> Tensor:
    """KL(old || new) [B], with the mean over nodes in place of their sum."""
    numbers = (old.mean, old.log_std, new.mean, new.log_std)
    of_numbers = _sum(normal_kl(*map(_each, numbers)), counts)
    if old.log_p is None or new.log_p is None:
        return of_numbers
    return of_numbers + _node_mean(old, categorical_kl(old.log_p, new.log_p))


def _each(numbers: Tensor) -> Tensor:
    """As so many distributions of one number: the closed forms sum over the last axis, before `counts` could say."""
    return numbers.unsqueeze(-1)


def _sum(terms: Tensor, counts: Tensor | None) -> Tensor:
    return (terms if counts is None else terms.masked_fill(~counts, 0.0)).sum(-1)


def _node_mean(policy: GraphDistribution, terms: Tensor) -> Tensor:
    """[B] of terms [nodes]."""
    sums, nodes = torch.zeros(2, policy.num_graphs, dtype=terms.dtype, device=terms.device)
    total = sums.index_add(0, policy.node_graph, terms)
    return total / nodes.index_add(0, policy.node_graph, torch.ones_like(terms)).clamp(min=1.0)
