"""The plain lane: PyTorch, any module, any device. The readable truth that the other lanes are held equal to."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hotloop.core.types import Array, Batch, Obs, UpdateStats, map_obs
from hotloop.lanes.flat import FlatParameters
from hotloop.lanes.guarded import At, guarded_step
from hotloop.lanes.numbers import FailedUpdate, NotFiniteError, as_arrays
from hotloop.lanes.objective import Network, Rows, map_rows, objective
from hotloop.lanes.q_numbers import NOISE, q_failure
from hotloop.lanes.spec import Precision, UpdateSpec
from hotloop.maths import categorical, td
from hotloop.nets.noisy import resample_noise, silence_noise


class EagerLane:
    """Owns online and target parameters, the optimiser's moments and the noise generator."""

    name = "eager"

    def __init__(
        self, spec: UpdateSpec, network: nn.Module, device: str, seed: int, precision: Precision = "float32"
    ) -> None:
        self.spec = spec
        self.device = torch.device(device)
        self.online = FlatParameters(network.to(self.device))
        self.target = FlatParameters(copy.deepcopy(network).requires_grad_(False))
        self._precision = precision
        self.on_host = self.device.type == "cpu"  # where a read is free
        as_asked = self._in_bfloat16 if precision == "bfloat16" else lambda module: module
        self._online_network: Network = as_asked(self.online.module)
        self._target_network: Network = as_asked(self.target.module)
        self.moments = (torch.zeros_like(self.online.values), torch.zeros_like(self.online.values))
        self.generator = torch.Generator(self.device).manual_seed(seed % 2**63)
        self.support = categorical.make_support(spec.v_min, spec.v_max, spec.atoms, self.device)

    def _in_bfloat16(self, module: nn.Module) -> Network:
        """The network's products in bfloat16; everything after it, the loss included, in float32."""

        def forward(obs: Tensor | dict[str, Tensor]) -> Tensor:
            with torch.autocast(self.device.type, torch.bfloat16):
                return module(obs).float()

        return forward

    def prepare(self, example: Batch, most_updates: int) -> None:
        pass

    def update(self, batches: Batch, lr: Array, first_update: int) -> UpdateStats:
        k, num_rows = batches.reward.shape
        td_error = torch.empty(k, num_rows, device=self.device)
        scalars = torch.empty(3, k, device=self.device)  # loss, q_mean, gradient norm
        rows_of = self._rows(batches)
        for j in range(k):
            rows = map_rows(lambda field, j=j: field[j], rows_of)
            td_error[j], scalars[:, j] = self._one_update(rows, At(float(lr[j]), first_update + j + 1))
        return UpdateStats(td_error, scalars)

    def _one_update(self, rows: Rows, at: At) -> tuple[Tensor, Tensor]:
        spec = self.spec
        if spec.noisy:
            resample_noise(self.online.module, self.generator)
            resample_noise(self.target.module, self.generator)
        self.online.gradient.zero_()
        td_errors, totals = [], torch.zeros(2, device=self.device)
        for part in _split(rows, spec.accumulate):
            outcome = objective(spec, self._online_network, self._target_network, part)
            (outcome.loss / spec.accumulate).backward()
            td_errors.append(outcome.td_error)
            totals += torch.stack((outcome.loss.detach(), outcome.q_mean)) / spec.accumulate
        vectors = (self.online.values, *self.moments)
        norm, made = guarded_step(spec, vectors, self.online.gradient, totals[0], at, self.on_host)
        if not made:
            raise self._failure(rows, at)
        if spec.target_every and at.number % spec.target_every == 0:
            self.move_target(spec.target_tau)
        return torch.cat(td_errors), torch.cat((totals, norm[None]))

    def _failure(self, rows: Rows, at: At) -> NotFiniteError:
        """The error that names what was wrong first in an update that was not made."""
        fields = rows._asdict()
        if self.spec.noisy:
            networks = {"online": self.online.module, "target": self.target.module}
            fields[NOISE] = {name: dict(module.named_buffers()) for name, module in networks.items()}
        failed = FailedUpdate(at.number, at.lr, self.state(), as_arrays(fields))
        return q_failure(self.spec, self.online.module, self._precision, failed)

    def _rows(self, batches: Batch) -> Rows:
        """The k batches as tensors: shared memory on a CPU, one copy per field elsewhere."""

        def move(array: Array) -> Tensor:
            return torch.from_numpy(array).to(self.device, non_blocking=True)

        return map_rows(move, (getattr(batches, name) for name in Rows._fields))

    @torch.no_grad()
    def greedy(self, obs: Obs, action_mask: Array | None, noisy: bool) -> Array:
        if self.spec.noisy and noisy:
            resample_noise(self.online.module, self.generator)
        elif self.spec.noisy:
            silence_noise(self.online.module)
        obs_tensor = map_obs(lambda array: torch.from_numpy(array).to(self.device), obs)
        q = self.online.module(obs_tensor)
        if self.spec.atoms > 1:
            q = categorical.expected_q(q, self.support)
        mask = None if action_mask is None else torch.from_numpy(action_mask).to(self.device)
        return td.mask_actions(q, mask).argmax(-1).cpu().numpy()

    def move_target(self, tau: float) -> None:
        self.target.values.lerp_(self.online.values, tau)

    def parameters(self) -> Array:
        return self.online.values.cpu().numpy().copy()

    def load_parameters(self, values: Array) -> None:
        self.online.values.copy_(torch.from_numpy(values))

    def state(self) -> dict[str, Any]:
        return {
            "online": self.online.values.cpu().numpy().copy(),
            "target": self.target.values.cpu().numpy().copy(),
            "mean": self.moments[0].cpu().numpy().copy(),
            "square": self.moments[1].cpu().numpy().copy(),
            "generator": self.generator.get_state().numpy().copy(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        for vector, name in zip(self._vectors(), ("online", "target", "mean", "square"), strict=True):
            vector.copy_(torch.from_numpy(np.asarray(state[name])))
        self.generator.set_state(torch.from_numpy(np.asarray(state["generator"])))

    def _vectors(self) -> tuple[Tensor, ...]:
        return (self.online.values, self.target.values, *self.moments)


def _split(rows: Rows, parts: int) -> list[Rows]:
    if parts == 1:
        return [rows]
    size = rows.reward.shape[0] // parts
    return [map_rows(lambda field, i=i: field[i * size : (i + 1) * size], rows) for i in range(parts)]
