"""The loss of every DQN variant: r + discount * Q_target(s', argmax Q), scalar or categorical, double or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from hotloop.core.types import Batch, map_obs
from hotloop.lanes.nonfinite import (
    NOISE,
    FailedUpdate,
    Named,
    as_arrays,
    as_tensors,
    bound_network,
    tensors_of_batch,
    tensors_of_state,
    tensors_of_step,
)
from hotloop.lanes.objective import ONLINE, TARGET, Network, Networks, Outcome, Stage, as_tensors_on, map_tensors
from hotloop.lanes.spec import Lane
from hotloop.maths import td
from hotloop.nets.branches import BranchLayout
from hotloop.presets.network_settings import MLPLayout


@dataclass(frozen=True, kw_only=True)
class QSpec:
    """Loss, optimizer constants and target rule of one DQN update."""

    loss: Literal["huber", "mse"]
    double: bool
    atoms: int
    v_min: float
    v_max: float
    noisy: bool
    max_grad_norm: float  # 0: no clipping
    accumulate: int  # a batch is split into so many parts whose gradients are averaged
    beta1: float
    beta2: float
    epsilon: float
    target_tau: float  # target <- tau * online + (1 - tau) * target
    target_every: int  # in updates; 0: the loop moves the target itself


class TransitionBatch(NamedTuple):
    """One batch as tensors on the learner's device."""

    obs: Tensor | dict[str, Tensor]
    action: Tensor  # [B]
    reward: Tensor  # [B]
    discount: Tensor  # [B]
    next_obs: Tensor | dict[str, Tensor]
    weight: Tensor  # [B]
    next_action_mask: Tensor | None  # [B, A]


class TransitionBatches:
    """k batches, gathered at once and moved at once."""

    def __init__(self, batches: Batch, device: torch.device) -> None:
        fields = TransitionBatch._make(getattr(batches, name) for name in TransitionBatch._fields)
        self._tensors: TransitionBatch = map_tensors(as_tensors_on(device), fields)
        self.per_epoch = len(batches.reward)

    def one(self, j: int) -> TransitionBatch:
        return map_tensors(lambda field: field[j], self._tensors)

    def several(self, start: int, count: int) -> TransitionBatch:
        if count == self.per_epoch:
            return self._tensors
        return map_tensors(lambda field: field[start : start + count], self._tensors)


class QObjective:
    """One stage, one network and its slowly moving copy."""

    measures: tuple[str, ...] = ("loss", "q_mean", "gradient_norm")
    targets: tuple[str, ...] = (ONLINE,)
    acts_in_precision = False
    native_title = "a plain multilayer network or branches with attention, on float observations"

    def __init__(self, spec: QSpec) -> None:
        self.spec = spec
        self.stages = (Stage(ONLINE, self.loss),)
        self.noisy, self.accumulate = spec.noisy, spec.accumulate
        self.target_every, self.target_tau = spec.target_every, spec.target_tau

    def loss(self, networks: Networks, batch: TransitionBatch, shared: None = None) -> Outcome:
        """Weighted mean over a batch. The row loss differs by variant; weighting and reduction happen here only."""
        row_loss = self._scalar_rows if self.spec.atoms == 1 else self._categorical_rows
        loss_per_row, td_error, q = row_loss(networks[ONLINE].forward, networks[TARGET].forward, batch)
        loss = (batch.weight * loss_per_row).mean()
        return Outcome(loss, torch.stack((loss.detach(), q.detach().mean())), td_error.detach())

    def _scalar_rows(self, online: Any, target: Any, batch: TransitionBatch) -> tuple[Tensor, Tensor, Tensor]:
        with torch.no_grad():
            q_eval = target(batch.next_obs)  # [B, A]
            q_select = online(batch.next_obs) if self.spec.double else q_eval
            q_select = td.mask_actions(q_select, batch.next_action_mask)
            y = td.td_target(batch.reward, batch.discount, q_eval, q_select)
        q = td.take(online(batch.obs), batch.action)
        error = y - q
        row_loss = td.huber if self.spec.loss == "huber" else td.squared
        return row_loss(error), error.abs(), q

    def _categorical_rows(self, online: Any, target: Any, batch: TransitionBatch) -> tuple[Tensor, Tensor, Tensor]:
        support = self._support(batch.reward.device)
        with torch.no_grad():
            next_logits = target(batch.next_obs)  # [B, A, Z]
            select = online(batch.next_obs) if self.spec.double else next_logits
            q_select = td.mask_actions(td.expected_q(select, support), batch.next_action_mask)
            chosen = take_atoms(next_logits, q_select.argmax(-1)).softmax(-1)
            projected = td.project(batch.reward, batch.discount, chosen, support)
        logits = take_atoms(online(batch.obs), batch.action)  # [B, Z]
        row_loss = td.cross_entropy(projected, logits)
        return row_loss, row_loss, logits.softmax(-1) @ support

    def _support(self, device: torch.device) -> Tensor:
        return td.make_support(self.spec.v_min, self.spec.v_max, self.spec.atoms, device)

    def groups(self, network: nn.Module) -> dict[str, nn.Module]:
        return {ONLINE: network}

    def on_device(self, data: Batch, device: torch.device) -> TransitionBatches:
        return TransitionBatches(data, device)

    def call_constants(self, data: Batch, networks: Networks) -> None:
        return None

    def known_targets(self, target: Network, batches: TransitionBatch) -> list[Network]:
        """All n batches in one forward, which cut an update of a 64-64 network by a fifth."""
        flat = map_obs(lambda part: part.flatten(0, 1), batches.next_obs)
        everything = target.forward(flat).unflatten(0, (len(batches.reward), -1))
        return [Network(partial(_already_known, q), target.parameters) for q in everything]

    def stop_early(self, epoch: Sequence[Tensor]) -> bool:
        return False

    def obs_tensors(self, obs: Any, device: torch.device) -> Any:
        return map_obs(as_tensors_on(device), obs)

    def infer(self, network: Network, obs: Any, action_mask: Tensor | None) -> tuple[Tensor]:
        """The best action [N] among those that the mask allows."""
        q = network.forward(obs)
        if self.spec.atoms > 1:
            q = td.expected_q(q, self._support(q.device))
        return (td.mask_actions(q, action_mask).argmax(-1),)

    def failure_batch(self, data: Batch, j: int, shared: None = None) -> dict[str, Any]:
        fields = {name: getattr(data, name) for name in TransitionBatch._fields}
        return as_arrays(
            {name: map_obs(lambda part: part[j], field) for name, field in fields.items() if field is not None}
        )

    def nan_search_order(self, network: nn.Module, precision: str, failed: FailedUpdate) -> Named:
        yield from tensors_of_state(network, failed)
        yield from tensors_of_batch(failed.batch, ("obs", "reward", "discount", "next_obs", "weight"))
        arrays = as_tensors(failed.batch)
        noise = arrays.pop(NOISE, {})
        batch = TransitionBatch._make(arrays.get(name) for name in TransitionBatch._fields)
        values, online = bound_network(network, failed.state["online"], noise.get(ONLINE, {}), precision)
        _, target = bound_network(network, failed.state["target"], noise.get(TARGET, {}), precision)
        with torch.no_grad():
            yield "Q of next_obs by the target network", target.forward(batch.next_obs)
            if self.spec.double:
                yield "Q of next_obs", online.forward(batch.next_obs)
            yield "Q", online.forward(batch.obs)
        loss = self.loss({ONLINE: online, TARGET: target}, batch).loss
        yield from tensors_of_step(self.spec, network, failed, values, loss)

    def native_problem(self, layout: MLPLayout | BranchLayout | None) -> str:
        if self.spec.noisy:
            return "it has no noisy layers"
        return "" if layout is not None else f"the network is not {self.native_title}"

    def native_lane(
        self, network: nn.Module, layout: MLPLayout | BranchLayout, batch_size: int, memory: Any = None
    ) -> Lane:
        from hotloop.lanes.native.lane import NativeLane

        return NativeLane(self, network, layout, batch_size, memory)


def _already_known(q: Tensor, obs: Any) -> Tensor:
    return q


def take_atoms(logits: Tensor, action: Tensor) -> Tensor:
    """The logits [B, Z] of one action per row, from [B, A, Z]."""
    index = action[:, None, None].expand(-1, 1, logits.shape[-1])
    return logits.gather(1, index).squeeze(1)
