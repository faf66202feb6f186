"""The loss of PPO and A2C: clipped or plain policy gradient, value error and entropy, over minibatches of a rollout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from hotloop.core.types import Array, GraphRollout, RolloutRow, RolloutSlab, map_obs
from hotloop.lanes.nonfinite import (
    FailedUpdate,
    Named,
    as_arrays,
    as_tensors,
    bound_network,
    tensors_of_batch,
    tensors_of_state,
    tensors_of_step,
)
from hotloop.lanes.objective import ONLINE, Network, Networks, Outcome, Stage, as_tensors_on, map_tensors
from hotloop.lanes.spec import Lane
from hotloop.maths import distributions, ppo
from hotloop.maths.action_kernels import draw_actions
from hotloop.maths.distributions import NO_MASK, ActionLayout, distribution
from hotloop.maths.gae import normalize
from hotloop.nets.actor_critic import LOG_STD, ActorCriticLayout

MEASURES = ("loss", "policy_loss", "value_loss", "entropy", "kl", "clip_fraction", "gradient_norm")
KL = MEASURES.index("kl")
WHOLE = ("reward", "value", "final_value")
"""Kept of the whole rollout: a reward that is not finite spreads to rows of other minibatches."""


@dataclass(frozen=True, kw_only=True)
class PolicySpec:
    """Loss terms and optimizer constants of one PPO or A2C update."""

    actions: ActionLayout
    rows: int  # of a minibatch
    policy_loss: Literal["clipped", "plain"]
    normalize_advantage: bool  # within each minibatch
    value_clip: float  # 0: none
    vf_coef: float
    ent_coef: float
    kl_stop: float  # no further epoch once an epoch's mean KL is above; 0: never
    max_grad_norm: float  # 0: no clipping
    beta1: float
    beta2: float
    epsilon: float


class Minibatches(NamedTuple):
    """A rollout, and the order in which its rows are learned from, `spec.rows` of them per update."""

    rollout: RolloutSlab | GraphRollout
    order: Array  # [epochs, T * N]
    clip: float

    def chosen(self, j: int, rows: int) -> Array:
        """The rows of minibatch j, counted over all epochs."""
        return self.order.reshape(-1)[j * rows : (j + 1) * rows]


class RolloutBatch(NamedTuple):
    """Rows of a rollout as tensors on the learner's device."""

    obs: Tensor | dict[str, Tensor]
    outputs: Tensor  # [B, O], of the policy that acted
    action: Tensor  # [B, W]
    value: Tensor  # [B], before the update
    returns: Tensor  # [B]
    advantage: Tensor  # [B]
    weight: Tensor  # [B]
    action_mask: Tensor | None  # [B, A]


class PolicyShared(NamedTuple):
    """What all minibatches of a rollout have in common."""

    clip: float | Tensor
    old_log_std: Tensor  # [C], of the policy that acted


class RolloutBatches:
    """Minibatches are views of the rollout's rows, put in order once per epoch."""

    def __init__(self, data: Minibatches, rows: int, device: torch.device) -> None:
        self._rows = rows
        self._flat, self._order = rollout_rows(data.rollout, device), as_tensors_on(device)(data.order)
        self.per_epoch = data.order.shape[1] // rows
        self._epoch, self._shuffled = -1, self._flat

    def one(self, j: int) -> RolloutBatch:
        start = self._enter(j) * self._rows
        return map_tensors(lambda field: field[start : start + self._rows], self._shuffled)

    def several(self, start: int, count: int) -> RolloutBatch:
        first = self._enter(start)
        cut = map_tensors(lambda field: field.unflatten(0, (self.per_epoch, -1)), self._shuffled)
        return map_tensors(lambda field: field[first : first + count], cut)

    def _enter(self, j: int) -> int:
        """The place of minibatch j within its epoch, whose rows are now in order."""
        epoch, place = divmod(j, self.per_epoch)
        if epoch != self._epoch:
            order = self._order[epoch]
            self._epoch, self._shuffled = epoch, map_tensors(lambda field: field[order], self._flat)
        return place


def rollout_rows(rollout: Any, device: torch.device) -> RolloutBatch:
    """Time and envs as one axis."""
    fields = {name: getattr(rollout, name) for name in RolloutBatch._fields} | {"value": rollout.value[:-1]}
    tensors = map_tensors(as_tensors_on(device), RolloutBatch(**fields))
    return map_tensors(lambda field: field.flatten(0, 1), tensors)


class PolicyObjective:
    """One stage, one network that says the policy's outputs and a value."""

    measures: tuple[str, ...] = MEASURES
    targets: tuple[str, ...] = ()
    acts_in_precision = True  # before the first update the ratio of what acted and what is learned must be 1
    noisy, accumulate, target_every, target_tau = False, 1, 0, 0.0
    native_title = "a plain multilayer network on float observations"

    def __init__(self, spec: PolicySpec) -> None:
        self.spec = spec
        self.stages = (Stage(ONLINE, self.loss),)

    def loss(self, networks: Networks, batch: RolloutBatch, shared: PolicyShared) -> Outcome:
        """Weighted means over one minibatch.

        The old policy is what acted: rebuilt from its outputs by the same arithmetic, so that before the first update
        the ratio is exactly 1 wherever the network gives the same outputs again.
        """
        spec, clip = self.spec, shared.clip
        outputs, value = networks[ONLINE].forward(batch.obs)
        log_std = networks[ONLINE].parameters.get(LOG_STD, shared.old_log_std)
        new = distribution(spec.actions, outputs, log_std, batch.action_mask)
        old = distribution(spec.actions, batch.outputs, shared.old_log_std, batch.action_mask)
        advantage = normalize(batch.advantage, batch.weight) if spec.normalize_advantage else batch.advantage
        log_prob = distributions.action_log_prob(new, batch.action)
        ratio = ppo.ratio(log_prob, distributions.action_log_prob(old, batch.action))
        if spec.policy_loss == "plain":
            policy_rows = ppo.policy_gradient(log_prob, advantage)
        else:
            policy_rows = ppo.clipped_surrogate(ratio, advantage, clip)
        share = batch.weight / batch.weight.sum().clamp(min=1.0)
        policy_loss = share @ policy_rows
        value_loss = share @ ppo.value_error(value, batch.value, batch.returns, spec.value_clip)
        entropy = share @ distributions.action_entropy(new)
        loss = policy_loss + spec.vf_coef * value_loss - spec.ent_coef * entropy
        with torch.no_grad():
            kl = share @ distributions.action_kl(old, new)
            clipped = share @ ppo.clip_fraction(ratio, clip)
            return Outcome(loss, torch.stack((loss, policy_loss, value_loss, entropy, kl, clipped)))

    def groups(self, network: nn.Module) -> dict[str, nn.Module]:
        return {ONLINE: network}

    def on_device(self, data: Minibatches, device: torch.device) -> RolloutBatches:
        return RolloutBatches(data, self.spec.rows, device)

    def call_constants(self, data: Minibatches, networks: Networks) -> PolicyShared:
        acted = networks[ONLINE].parameters
        none = next(iter(acted.values())).new_zeros(0)
        return PolicyShared(data.clip, acted.get(LOG_STD, none).detach().clone())

    def known_targets(self, target: Network, batches: Any) -> None:
        return None

    def stop_early(self, epoch: Sequence[Tensor]) -> bool:
        return kl_above_limit(self.spec, epoch)

    def obs_tensors(self, obs: Any, device: torch.device) -> Any:
        return map_obs(as_tensors_on(device), obs)

    def infer(self, network: Network, obs: Any, action_mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """The policy's outputs [N, O] and the values [N]."""
        return network.forward(obs)

    def failure_batch(self, data: Minibatches, j: int, shared: Any) -> dict[str, Any]:
        """With rewards and values of the whole rollout."""
        rollout, chosen = data.rollout, data.chosen(j, self.spec.rows)
        fields = {name: getattr(rollout, name) for name in RolloutBatch._fields} | {"value": rollout.value[:-1]}
        rows = {
            name: map_obs(lambda part: part.reshape(-1, *part.shape[2:])[chosen], field)
            for name, field in fields.items()
            if field is not None
        }
        whole = {name: getattr(rollout, name) for name in WHOLE}
        return as_arrays({"rollout": whole, **rows, "acted_log_std": shared.old_log_std, "clip": data.clip})

    def nan_search_order(self, network: nn.Module, precision: str, failed: FailedUpdate) -> Named:
        yield from tensors_of_state(network, failed)
        yield from tensors_of_rollout(failed)
        arrays = as_tensors(failed.batch)
        batch = RolloutBatch._make(arrays.get(name) for name in RolloutBatch._fields)
        values, online = bound_network(network, failed.state["online"], {}, precision)
        outputs, value = online.forward(batch.obs)
        yield "policy outputs", outputs.detach()
        yield "value", value.detach()
        outcome = self.loss({ONLINE: online}, batch, PolicyShared(float(arrays["clip"]), arrays["acted_log_std"]))
        yield from tensors_of_terms(outcome)
        yield from tensors_of_step(self.spec, network, failed, values, outcome.loss)

    def native_problem(self, layout: ActorCriticLayout | None) -> str:
        return "" if layout is not None else f"the network is not {self.native_title}"

    def native_lane(self, network: nn.Module, layout: ActorCriticLayout, batch_size: int) -> Lane:
        from hotloop.lanes.native.policy_lane import NativePolicyLane

        return NativePolicyLane(self, network, layout)


def forward_and_draw(lane: Any, network: Any, row: RolloutRow, state: Array, mask: Array | None) -> None:
    """Outputs, values and drawn actions of the row's observations, into the row; advances the generator `state`."""
    row.outputs[:], row.value[:] = lane.infer(row.obs)
    log_std = network.log_std.detach().cpu().numpy()
    counts = np.array(lane.objective.spec.actions.counts, np.int64)
    draw_actions(state, row.outputs, log_std, NO_MASK if mask is None else mask, counts, row.action)


def kl_above_limit(spec: PolicySpec, epoch: Sequence[Tensor]) -> bool:
    """Whether KL stops the epochs: one read from the device for each, none where nothing is to be stopped."""
    return (
        spec.kl_stop > 0.0 and torch.cat([measures[KL].reshape(-1) for measures in epoch]).mean().item() > spec.kl_stop
    )


def tensors_of_rollout(failed: FailedUpdate) -> Named:
    """Observation and reward before what was made of them."""
    whole = failed.batch["rollout"]
    yield from tensors_of_batch(failed.batch, ["obs"])
    yield from tensors_of_batch(whole, ["reward"])
    yield from ((f"{name} when acting", tensor) for name, tensor in tensors_of_batch(whole, WHOLE[1:]))
    yield from tensors_of_batch({name: rows for name, rows in failed.batch.items() if name not in ("obs", "rollout")})


def tensors_of_terms(outcome: Outcome) -> Named:
    for place, name in enumerate(MEASURES[1:4], start=1):
        yield name.replace("_", " "), torch.as_tensor(outcome.measures[place])
