"""The loss of every DQN variant, written once for all lanes that run PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hotloop.core.types import map_obs
from hotloop.lanes.spec import UpdateSpec
from hotloop.maths import categorical, td

Network = Callable[[Tensor | dict[str, Tensor]], Tensor]


class Rows(NamedTuple):
    """One batch as tensors on the learner's device."""

    obs: Tensor | dict[str, Tensor]
    action: Tensor  # [B]
    reward: Tensor  # [B]
    discount: Tensor  # [B]
    next_obs: Tensor | dict[str, Tensor]
    weight: Tensor  # [B]
    next_action_mask: Tensor | None  # [B, A]


def map_rows(function: Callable[..., Any], fields: Iterable[Any]) -> Rows:
    """`function` of every field that is there, dict observations part by part."""
    return Rows._make(None if field is None else map_obs(function, field) for field in fields)


class Objective(NamedTuple):
    loss: Tensor  # scalar
    td_error: Tensor  # [B]
    q_mean: Tensor  # scalar, of the actions taken


def objective(spec: UpdateSpec, online: Network, target: Network, rows: Rows) -> Objective:
    """Weighted mean loss of one batch. The row loss differs by variant; weighting and reduction happen here only."""
    compute = _scalar_rows if spec.atoms == 1 else _categorical_rows
    loss_per_row, td_error, q = compute(spec, online, target, rows)
    loss = (rows.weight * loss_per_row).mean()
    return Objective(loss, td_error.detach(), q.detach().mean())


def _scalar_rows(spec: UpdateSpec, online: Network, target: Network, rows: Rows) -> tuple[Tensor, Tensor, Tensor]:
    with torch.no_grad():
        q_eval = target(rows.next_obs)  # [B, A]
        q_select = online(rows.next_obs) if spec.double else q_eval
        q_select = td.mask_actions(q_select, rows.next_action_mask)
        y = td.td_target(rows.reward, rows.discount, q_eval, q_select)
    q = td.take(online(rows.obs), rows.action)
    error = y - q
    row_loss = td.huber if spec.loss == "huber" else td.squared
    return row_loss(error), error.abs(), q


def _categorical_rows(spec: UpdateSpec, online: Network, target: Network, rows: Rows) -> tuple[Tensor, Tensor, Tensor]:
    support = categorical.make_support(spec.v_min, spec.v_max, spec.atoms, rows.reward.device)
    with torch.no_grad():
        next_logits = target(rows.next_obs)  # [B, A, Z]
        select = online(rows.next_obs) if spec.double else next_logits
        q_select = td.mask_actions(categorical.expected_q(select, support), rows.next_action_mask)
        best = q_select.argmax(-1)
        projected = categorical.project(rows.reward, rows.discount, take_atoms(next_logits, best).softmax(-1), support)
    logits = take_atoms(online(rows.obs), rows.action)  # [B, Z]
    row_loss = categorical.cross_entropy(projected, logits)
    return row_loss, row_loss, logits.softmax(-1) @ support


def take_atoms(logits: Tensor, action: Tensor) -> Tensor:
    """The logits [B, Z] of one action per row, from [B, A, Z]."""
    index = action[:, None, None].expand(-1, 1, logits.shape[-1])
    return logits.gather(1, index).squeeze(1)
