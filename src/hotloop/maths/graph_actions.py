"""The policy's distribution over what a graph does: some numbers for the whole of it, and maybe a choice of each node.

The numbers are normal before tanh. The choices enter every quantity by their *mean* over the graph's nodes, so that the
ratio of two policies does not explode with the size of the graph; a graph without nodes adds 0.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from hotloop.maths import distributions as d


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
    log_p = None if node_logits is None else d.log_probabilities(node_logits)
    return GraphDistribution(mean, log_std, log_p, node_graph, num_graphs)


def log_prob(
    policy: GraphDistribution, u: Tensor, choices: Tensor | None = None, counts: Tensor | None = None
) -> Tensor:
    """[B] of numbers u [B, C] before tanh and choices [nodes]; `counts` [B, C]: which of the numbers count."""
    of_numbers = _sum(d.squashed_log_prob(_each(policy.mean), _each(policy.log_std), _each(u)), counts)
    if policy.log_p is None:
        return of_numbers
    assert choices is not None, "this policy has a choice for each node"
    return of_numbers + _node_mean(policy, d.categorical_log_prob(policy.log_p, choices))


def entropy(policy: GraphDistribution, counts: Tensor | None = None) -> Tensor:
    """[B]"""
    of_numbers = _sum(d.squashed_entropy(_each(policy.mean), _each(policy.log_std)), counts)
    if policy.log_p is None:
        return of_numbers
    return of_numbers + _node_mean(policy, d.categorical_entropy(policy.log_p))


def kl(old: GraphDistribution, new: GraphDistribution, counts: Tensor | None = None) -> Tensor:
    """KL(old || new) [B], with the mean over nodes in place of their sum."""
    numbers = (old.mean, old.log_std, new.mean, new.log_std)
    of_numbers = _sum(d.normal_kl(*map(_each, numbers)), counts)
    if old.log_p is None or new.log_p is None:
        return of_numbers
    return of_numbers + _node_mean(old, d.categorical_kl(old.log_p, new.log_p))


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
