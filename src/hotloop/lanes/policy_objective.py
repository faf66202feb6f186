"""The loss of PPO and A2C, written once for all lanes that run PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hotloop.core.types import map_obs
from hotloop.lanes.policy_spec import PolicySpec
from hotloop.maths import actions, ppo
from hotloop.maths.actions import Distribution, distribution
from hotloop.maths.gae import normalise

Network = Callable[[Any], tuple[Tensor, Tensor]]


class PolicyRows(NamedTuple):
    """Rows of a rollout as tensors on the learner's device."""

    obs: Tensor | dict[str, Tensor]
    outputs: Tensor  # [B, O], of the policy that acted
    action: Tensor  # [B, W]
    value: Tensor  # [B], before the update
    returns: Tensor  # [B]
    advantage: Tensor  # [B]
    weight: Tensor  # [B]
    action_mask: Tensor | None  # [B, A]


def map_policy_rows(function: Callable[..., Any], fields: Iterable[Any]) -> PolicyRows:
    """`function` of every field that is there, dict observations part by part."""
    return PolicyRows._make(None if field is None else map_obs(function, field) for field in fields)


class PolicyTerms(NamedTuple):
    loss: Tensor  # scalar
    measures: Tensor  # [6] loss, policy loss, value loss, entropy, KL, clip fraction


def policy_objective(
    spec: PolicySpec,
    outcome: tuple[Tensor, Tensor],
    log_stds: tuple[Tensor, Tensor],
    rows: PolicyRows,
    clip: float | Tensor,
) -> PolicyTerms:
    """Weighted means over one minibatch, from the network's `outcome` and the log stds, (old, new).

    The old policy is what acted: rebuilt from its outputs by the same arithmetic, so that before the first update the
    ratio is exactly 1 wherever the network gives the same outputs again.
    """
    outputs, value = outcome
    old_log_std, log_std = log_stds
    new = distribution(spec.actions, outputs, log_std, rows.action_mask)
    old = distribution(spec.actions, rows.outputs, old_log_std, rows.action_mask)
    advantage = normalise(rows.advantage, rows.weight) if spec.normalise_advantage else rows.advantage
    policy_rows, ratio = _policy_rows(spec, old, new, rows.action, advantage, clip)
    share = rows.weight / rows.weight.sum().clamp(min=1.0)
    policy_loss = share @ policy_rows
    value_loss = share @ ppo.value_error(value, rows.value, rows.returns, spec.value_clip)
    entropy = share @ actions.entropy(new)
    loss = policy_loss + spec.value_weight * value_loss - spec.entropy_weight * entropy
    with torch.no_grad():
        kl = share @ actions.kl(old, new)
        clipped = share @ ppo.clip_fraction(ratio, clip)
        return PolicyTerms(loss, torch.stack((loss, policy_loss, value_loss, entropy, kl, clipped)))


def _policy_rows(
    spec: PolicySpec, old: Distribution, new: Distribution, action: Tensor, advantage: Tensor, clip: float | Tensor
) -> tuple[Tensor, Tensor]:
    log_prob = actions.log_prob(new, action)
    ratio = ppo.ratio(log_prob, actions.log_prob(old, action))
    if spec.policy_loss == "plain":
        return ppo.policy_gradient(log_prob, advantage), ratio
    return ppo.clipped_surrogate(ratio, advantage, clip), ratio
