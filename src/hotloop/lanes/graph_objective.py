"""The loss of PPO and A2C over graphs: a value for each part of the reward, a choice for each node."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from hotloop.lanes.policy_objective import PolicyTerms
from hotloop.lanes.policy_spec import PolicySpec
from hotloop.maths import graph_actions, ppo
from hotloop.maths.gae import normalise
from hotloop.maths.graph_actions import graph_distribution
from hotloop.nets.graphs.network import GraphOutcome


class GraphRows(NamedTuple):
    """B graphs of a rollout, all but their observations, as tensors on the learner's device."""

    mean: Tensor  # [B, C], of the policy that acted; so is the next
    log_std: Tensor  # [B, C]
    numbers: Tensor  # [B, C]
    counts: Tensor  # [B, C] bool
    value: Tensor  # [B, P], before the update
    returns: Tensor  # [B, P]
    advantage: Tensor  # [B]
    node_graph: Tensor  # [nodes] int64: which graph a node belongs to
    node_logits: Tensor | None  # [nodes, A], of the policy that acted
    choices: Tensor | None  # [nodes] int64


def graph_objective(
    spec: PolicySpec, outcome: GraphOutcome, rows: GraphRows, part_weights: Tensor, clip: float
) -> PolicyTerms:
    """Means over a minibatch of graphs; values are weighted by `part_weights` [P] before they are summed."""
    of_nodes = (rows.node_graph, len(rows.mean))
    new = graph_distribution(outcome.mean, outcome.log_std, outcome.node_logits, *of_nodes)
    old = graph_distribution(rows.mean, rows.log_std, rows.node_logits, *of_nodes)
    weight = torch.ones_like(rows.advantage)
    advantage = normalise(rows.advantage, weight) if spec.normalise_advantage else rows.advantage
    log_prob = graph_actions.log_prob(new, rows.numbers, rows.choices, rows.counts)
    ratio = ppo.ratio(log_prob, graph_actions.log_prob(old, rows.numbers, rows.choices, rows.counts))
    if spec.policy_loss == "plain":
        policy_loss = ppo.policy_gradient(log_prob, advantage).mean()
    else:
        policy_loss = ppo.clipped_surrogate(ratio, advantage, clip).mean()
    errors = ppo.value_error(outcome.value, rows.value, rows.returns, spec.value_clip)  # [B, P]
    value_loss = (errors @ part_weights).mean()
    entropy = graph_actions.entropy(new, rows.counts).mean()
    loss = policy_loss + spec.value_weight * value_loss - spec.entropy_weight * entropy
    with torch.no_grad():
        kl = graph_actions.kl(old, new, rows.counts).mean()
        clipped = ppo.clip_fraction(ratio, clip).mean()
        return PolicyTerms(loss, torch.stack((loss, policy_loss, value_loss, entropy, kl, clipped)))
