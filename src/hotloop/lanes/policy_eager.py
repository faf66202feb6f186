"""The plain lane of the actor-critic family: PyTorch, any network, any device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from hotloop.core.types import Array, Obs, Rollout, map_obs
from hotloop.lanes.flat import FlatParameters
from hotloop.lanes.policy_objective import PolicyRows, map_policy_rows, policy_objective
from hotloop.lanes.policy_spec import PolicySpec, PolicyStats
from hotloop.lanes.spec import Precision
from hotloop.maths.adam import adam_step, clip_scale
from hotloop.nets.actor_critic import ActorCritic


class EagerPolicyLane:
    """Owns the parameters and the optimiser's moments."""

    name = "eager"

    def __init__(self, spec: PolicySpec, network: ActorCritic, device: str, precision: Precision = "float32") -> None:
        self.spec = spec
        self.device = torch.device(device)
        self.network = network.to(self.device)
        self.flat = FlatParameters(self.network)
        self.moments = (torch.zeros_like(self.flat.values), torch.zeros_like(self.flat.values))
        self._half = precision == "bfloat16"

    def _compute(self, obs: Any) -> tuple[Tensor, Tensor]:
        """The network's products in bfloat16 if asked; everything after it in float32."""
        if not self._half:
            return self.network(obs)
        with torch.autocast(self.device.type, torch.bfloat16):
            outputs, value = self.network(obs)
        return outputs.float(), value.float()

    @torch.no_grad()
    def forward(self, obs: Obs, out: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
        outputs, value = (tensor.cpu().numpy() for tensor in self._compute(map_obs(self._tensor, obs)))
        if out is None:
            return outputs, value
        out[0][:], out[1][:] = outputs, value
        return out

    def log_std(self) -> Array:
        return self.network.log_std.detach().cpu().numpy()

    def update(self, rollout: Rollout, order: Array, lr: Array, clip: float, first_update: int) -> PolicyStats:
        rows, old_log_std = self._rows(rollout), self.network.log_std.detach().clone()
        measured: list[Tensor] = []
        for epoch in self._tensor(order):
            shuffled = map_policy_rows(lambda field, epoch=epoch: field[epoch], rows)  # minibatches are views of it
            begun = len(measured)
            for start in range(0, len(epoch), self.spec.rows):
                part = map_policy_rows(lambda field, at=start: field[at : at + self.spec.rows], shuffled)
                j = len(measured)
                measured.append(self._one_update(part, old_log_std, clip, float(lr[j]), first_update + j + 1))
            if self._moved_too_far(measured[begun:]):
                break
        return PolicyStats(torch.stack(measured, 1))

    def _one_update(self, rows: PolicyRows, old_log_std: Tensor, clip: float, lr: float, count: int) -> Tensor:
        spec, gradient = self.spec, self.flat.gradient
        gradient.zero_()
        log_stds = (old_log_std, self.network.log_std)
        terms = policy_objective(spec, self._compute(rows.obs), log_stds, rows, clip)
        terms.loss.backward()
        norm = gradient.norm()
        if spec.max_gradient_norm > 0:
            gradient.mul_(clip_scale(norm, spec.max_gradient_norm))
        constants = (spec.beta1, spec.beta2, spec.epsilon)
        adam_step(self.flat.values, gradient, self.moments, constants, lr, count)
        return torch.cat((terms.measures, norm[None]))

    def _moved_too_far(self, epoch: list[Tensor]) -> bool:
        """One read from the device per epoch, and none where nothing is to be stopped."""
        if self.spec.kl_stop <= 0.0:
            return False
        return torch.stack(epoch)[:, PolicyStats.KL].mean().item() > self.spec.kl_stop

    def _rows(self, rollout: Rollout) -> PolicyRows:
        """Time and envs as one axis: shared memory on a CPU, one copy per field elsewhere."""
        value = rollout.value[:-1]
        fields = (rollout.obs, rollout.outputs, rollout.action, value, rollout.returns, rollout.advantage)
        tensors = map_policy_rows(self._tensor, (*fields, rollout.weight, rollout.action_mask))
        return map_policy_rows(lambda field: field.flatten(0, 1), tensors)

    def _tensor(self, array: Array) -> Tensor:
        return torch.from_numpy(array).to(self.device, non_blocking=True)

    def parameters(self) -> Array:
        return self.flat.values.cpu().numpy().copy()

    def load_parameters(self, values: Array) -> None:
        self.flat.values.copy_(torch.from_numpy(values))

    def state(self) -> dict[str, Any]:
        vectors = zip(("online", "mean", "square"), (self.flat.values, *self.moments), strict=True)
        return {name: vector.cpu().numpy().copy() for name, vector in vectors}

    def load_state(self, state: dict[str, Any]) -> None:
        for name, vector in zip(("online", "mean", "square"), (self.flat.values, *self.moments), strict=True):
            vector.copy_(torch.from_numpy(np.asarray(state[name])))
