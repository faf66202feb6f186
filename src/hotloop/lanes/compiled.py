"""The compiled lane: the eager lane's network and loss, several updates fused into one call of machine code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hotloop.core.errors import LaneError
from hotloop.core.types import Array, Batch, Obs, UpdateStats
from hotloop.lanes.compiled_build import EAGER_HINT, Compiled, compile_function, require_compiler
from hotloop.lanes.compiled_step import FunctionalNetwork, flatten_batch, make_step
from hotloop.lanes.eager import EagerLane
from hotloop.lanes.spec import UpdateSpec
from hotloop.nets.noisy import NoisyLinear

UNROLLED = 8
"""Updates in one long call: per update it costs two thirds of single calls; 16 gain little and compile twice as long."""


class CompiledLane:
    """Shares its state with an eager lane, which acts; only `update` differs."""

    name = "compiled"

    def __init__(
        self, spec: UpdateSpec, network: nn.Module, device: str, seed: int, precision: str = "float32"
    ) -> None:
        _refuse(network)
        self.eager = EagerLane(spec, network, device, seed)
        require_compiler(self.eager.device)
        self.spec = spec
        self.network = FunctionalNetwork(self.eager.online.module, precision)
        self._in_place = self.eager.device.type == "cpu"  # a CUDA graph would not see writes to its inputs
        self._compiled: dict[tuple[Any, ...], Compiled] = {}

    def warm_up(self, batches: Batch, most_updates: int = 1) -> None:
        """Compile all that updates of this shape need, `most_updates` of them at once; nothing else changes."""
        fields = self._fields(batches)
        for count in {1, UNROLLED} if max(most_updates, len(batches.reward)) >= UNROLLED else {1}:
            self._function(count, fields, batches)

    def update(self, batches: Batch, lr: Array, first_update: int) -> UpdateStats:
        spec, k = self.spec, len(lr)
        fields = self._fields(batches)
        factors = torch.from_numpy(adam_factors(spec, lr, first_update)).to(self.eager.device)
        stats = []
        for start, count in chunks(k, first_update, spec.target_every):
            part = slice(start, start + count)
            run = self._function(count, fields, batches)
            inputs = (factors[part], self._noise(count), *(field[part] for field in fields))
            stats.append(self._run(run, inputs))
            if spec.target_every and (first_update + part.stop) % spec.target_every == 0:
                self.move_target(spec.target_tau)
        if len(stats) == 1:
            return UpdateStats(*stats[0])
        td_errors, scalars = zip(*stats, strict=True)
        return UpdateStats(torch.cat(td_errors), torch.cat(scalars, 1))

    def _run(self, run: Compiled, inputs: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        if self._in_place:
            td_error, scalars = run(*self._vectors(), *inputs)
            return td_error, scalars
        *new, td_error, scalars = run(*self._vectors(), *inputs)
        for old, values in zip(self._vectors(), new, strict=False):
            old.copy_(values)
        return td_error.clone(), scalars.clone()

    def _function(self, count: int, fields: list[Tensor], batches: Batch) -> Compiled:
        """The machine code for `count` updates on fields like these, compiled when first asked for."""
        key = (count, *((field.shape[1:], field.dtype) for field in fields))
        if key not in self._compiled:
            names = tuple(batches.obs) if isinstance(batches.obs, dict) else None
            step = make_step(self.spec, self.network, names, self._in_place)
            ones = [field[:1].expand(count, *field.shape[1:]) for field in fields]
            factors = torch.ones(count, 2, device=self.eager.device)
            noise = torch.zeros(count, 2, sum(self.network.noise_sizes), device=self.eager.device)
            self._compiled[key] = compile_function(step, (*self._vectors(), factors, noise, *ones))
        return self._compiled[key]

    def _fields(self, batches: Batch) -> list[Tensor]:
        device = self.eager.device
        return [torch.from_numpy(array).to(device, non_blocking=True).contiguous() for array in flatten_batch(batches)]

    def _noise(self, count: int) -> Tensor:
        """Standard normal draws in the eager lane's order: per update the online network's layers, then the target's."""
        sizes = self.network.noise_sizes
        noise = torch.zeros(count, 2, sum(sizes), device=self.eager.device)
        if self.spec.noisy:
            for layer in noise.view(-1).split(sizes * 2 * count):
                layer.normal_(generator=self.eager.generator)
        return noise

    def _vectors(self) -> tuple[Tensor, ...]:
        return (self.eager.online.values, *self.eager.moments, self.eager.target.values)

    def greedy(self, obs: Obs, action_mask: Array | None, noisy: bool) -> Array:
        return self.eager.greedy(obs, action_mask, noisy)

    def move_target(self, tau: float) -> None:
        self.eager.move_target(tau)

    def parameters(self) -> Array:
        return self.eager.parameters()

    def load_parameters(self, values: Array) -> None:
        self.eager.load_parameters(values)

    def state(self) -> dict[str, Any]:
        return self.eager.state()

    def load_state(self, state: dict[str, Any]) -> None:
        self.eager.load_state(state)


def chunks(k: int, first_update: int, target_every: int) -> Iterator[tuple[int, int]]:
    """(start, count) of each call: long ones while they fit, single updates otherwise; the target may move only after
    the last update of a call. A function of its arguments alone, or a resumed run would round differently."""
    start = 0
    while start < k:
        room = target_every - (first_update + start) % target_every if target_every else k
        count = UNROLLED if min(k - start, room) >= UNROLLED else 1
        yield start, count
        start += count


def adam_factors(spec: UpdateSpec, lr: Array, first_update: int) -> Array:
    """[k, 2] float32: step length lr / (1 - beta1^t) and root of 1 - beta2^t, for updates t counted from 1."""
    count = first_update + 1.0 + np.arange(len(lr))
    return np.stack((lr / (1.0 - spec.beta1**count), np.sqrt(1.0 - spec.beta2**count)), 1).astype(np.float32)


def _refuse(network: nn.Module) -> None:
    """Modules whose forward is more than a function of parameters, observation and noise."""
    for name, module in network.named_modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            raise LaneError(f"the compiled lane cannot draw the random numbers of `{name}` (dropout)", EAGER_HINT)
        foreign = [] if isinstance(module, NoisyLinear) else [key for key, _ in module.named_buffers(recurse=False)]
        if foreign:
            raise LaneError(
                f"the compiled lane does not support `{name}`, which keeps a buffer `{foreign[0]}`", EAGER_HINT
            )
