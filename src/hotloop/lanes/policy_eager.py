"""The plain lane of the actor-critic family: PyTorch, any network, any device."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hotloop.core.types import Array, Obs, Rollout, RolloutRow, map_obs
from hotloop.lanes.guarded import At
from hotloop.lanes.numbers import FailedUpdate, NotFiniteError
from hotloop.lanes.policy_adam import PolicyAdam, moved_too_far
from hotloop.lanes.policy_numbers import minibatch, policy_failure
from hotloop.lanes.policy_objective import PolicyRows, map_policy_rows, policy_objective
from hotloop.lanes.policy_spec import PolicySpec, PolicyStats, forward_and_draw
from hotloop.lanes.spec import Precision
from hotloop.nets.actor_critic import ActorCritic


class EagerPolicyLane:
    """One update per minibatch, each as autograd makes it."""

    name = "eager"

    def __init__(self, spec: PolicySpec, network: ActorCritic, device: str, precision: Precision = "float32") -> None:
        self.spec = spec
        self.device = torch.device(device)
        self.network = network.to(self.device)
        self.adam = PolicyAdam(spec, self.network)
        self.parameters, self.load_parameters = self.adam.parameters, self.adam.load_parameters
        self.state, self.load_state = self.adam.state, self.adam.load_state
        self._precision, self._half = precision, precision == "bfloat16"

    def _compute(self, obs: Any) -> tuple[Tensor, Tensor]:
        """The network's products in bfloat16 if asked; everything after it in float32."""
        if not self._half:
            return self.network(obs)
        with torch.autocast(self.device.type, torch.bfloat16):
            outputs, value = self.network(obs)
        return outputs.float(), value.float()

    @torch.no_grad()
    def forward(self, obs: Obs, out: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
        outputs, value = (tensor.cpu().numpy() for tensor in self._compute(map_obs(self.tensor, obs)))
        if out is None:
            return outputs, value
        out[0][:], out[1][:] = outputs, value
        return out

    def log_std(self) -> Array:
        return self.network.log_std.detach().cpu().numpy()

    def act(self, row: RolloutRow, state: Array, mask: Array | None) -> None:
        forward_and_draw(self, row, state, mask)

    def update(self, rollout: Rollout, order: Array, lr: Array, clip: float, first_update: int) -> PolicyStats:
        rows, old_log_std = self.rows(rollout), self.network.log_std.detach().clone()
        measured: list[Tensor] = []
        for epoch in self.tensor(order):
            shuffled = map_policy_rows(lambda field, epoch=epoch: field[epoch], rows)  # minibatches are views of it
            begun = len(measured)
            for start in range(0, len(epoch), self.spec.rows):
                part = map_policy_rows(lambda field, at=start: field[at : at + self.spec.rows], shuffled)
                at = At(float(lr[len(measured)]), first_update + len(measured) + 1)
                scalars, made = self._one_update(part, old_log_std, clip, at)
                if not made:
                    chosen = epoch[start : start + self.spec.rows].numpy()
                    raise self.failure(minibatch(rollout, chosen, old_log_std.numpy(), clip), at)
                measured.append(scalars)
            if moved_too_far(self.spec, measured[begun:]):
                break
        return PolicyStats(torch.stack(measured, 1))

    def _one_update(self, rows: PolicyRows, old_log_std: Tensor, clip: float, at: At) -> tuple[Tensor, bool]:
        log_stds = (old_log_std, self.network.log_std)
        terms = policy_objective(self.spec, self._compute(rows.obs), log_stds, rows, clip)
        norm, made = self.adam.descend(terms.loss, at)
        return torch.cat((terms.measures, norm[None])), made

    def failure(self, batch: dict[str, Any], at: At) -> NotFiniteError:
        """The error that names what was wrong first in an update that was not made."""
        failed = FailedUpdate(at.number, at.lr, self.state(), batch)
        return policy_failure(self.spec, self.network, self._precision, failed)

    def rows(self, rollout: Rollout) -> PolicyRows:
        """Time and envs as one axis: shared memory on a CPU, one copy per field elsewhere."""
        value = rollout.value[:-1]
        fields = (rollout.obs, rollout.outputs, rollout.action, value, rollout.returns, rollout.advantage)
        tensors = map_policy_rows(self.tensor, (*fields, rollout.weight, rollout.action_mask))
        return map_policy_rows(lambda field: field.flatten(0, 1), tensors)

    def tensor(self, array: Array) -> Tensor:
        return torch.from_numpy(array).to(self.device, non_blocking=True)
