"""The compiled lane: the eager lane's network and loss, several updates fused into one call of machine code."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hotloop.core.errors import LaneError
from hotloop.core.types import Array, Batch, Obs, UpdateStats
from hotloop.lanes.compiled_build import EAGER_HINT, Compiled, compile_function, require_compiler
from hotloop.lanes.compiled_step import AdamSpec, FunctionalNetwork, flatten_batch, flatten_obs, make_choice, make_step
from hotloop.lanes.eager import EagerLane
from hotloop.lanes.numbers import FailedUpdate, NotFiniteError, first_spoiled
from hotloop.lanes.q_numbers import batch_rows, q_failure
from hotloop.lanes.spec import Precision, UpdateSpec
from hotloop.nets.noisy import NoisyLinear

UNROLLED = 4
"""Updates in one long call, which takes a third off an update of a 64-64 network; with 8 no gain could be measured, and
compiling took 1.6 times as long."""


class CompiledLane:
    """Shares its state with an eager lane, which acts for any number of envs but `num_envs`."""

    name = "compiled"

    def __init__(
        self,
        spec: UpdateSpec,
        network: nn.Module,
        device: str,
        seed: int,
        precision: Precision = "float32",
        num_envs: int = 0,
    ) -> None:
        _refuse(network)
        require_compiler(torch.device(device))
        self.spec, self._precision = spec, precision
        self.eager = EagerLane(spec, network, device, seed, precision)
        self.network = FunctionalNetwork(self.eager.online.module, precision)
        self._actor = FunctionalNetwork(self.eager.online.module, "float32")  # as the eager lane acts
        self._device = self.eager.device
        self._in_place = self._device.type == "cpu"  # a CUDA graph would not see writes to its inputs
        self._num_envs = num_envs
        self._compiled: dict[tuple[Any, ...], Compiled] = {}

    def prepare(self, example: Batch, most_updates: int) -> None:
        """Compile for batches shaped like `example`, up to `most_updates` at once, and for acting; changes no state.

        Without it the first call of each kind compiles: what is computed never depends on who compiled it when.
        """
        fields = self._tensors(flatten_batch(example))
        for count in (1, UNROLLED) if most_updates >= UNROLLED else (1,):
            self._step(count, fields, example.obs)
        if self._num_envs:
            mask = [] if example.next_action_mask is None else [example.next_action_mask]
            rows = [np.repeat(part[0, :1], self._num_envs, axis=0) for part in (*flatten_obs(example.obs), *mask)]
            self._choice(self._tensors(rows), example.obs)

    def update(self, batches: Batch, lr: Array, first_update: int) -> UpdateStats:
        k, every, stats = len(lr), self.spec.target_every, []
        fields = self._tensors(flatten_batch(batches))
        (factors,) = self._tensors([adam_factors(self.spec, lr, first_update)])
        for start, count in chunks(k, first_update, every):
            end = start + count
            step = self._step(count, fields, batches.obs)
            noise = self._noise(count, 2) if self.spec.noisy else self._silence(count, 2)
            inputs = [factors, *fields] if count == k else [part[start:end] for part in (factors, *fields)]
            stats.append(self._run(step, noise, *inputs))
            if self.eager.on_host and (j := first_spoiled(stats[-1][1])) >= 0:
                raise self._failure(batches, start + j, noise[j], lr, first_update)
            if every and (first_update + end) % every == 0:
                self.move_target(self.spec.target_tau)
        if len(stats) == 1:
            return UpdateStats(*stats[0])
        td_errors, scalars = zip(*stats, strict=True)
        return UpdateStats(torch.cat(td_errors), torch.cat(scalars, 1))

    def _failure(self, batches: Batch, j: int, noise: Tensor, lr: Array, first_update: int) -> NotFiniteError:
        """The error that names what was wrong first in batch j, which changed nothing and was the last."""
        buffers = {name: self.network.buffers(noise[i]) for i, name in enumerate(("online", "target"))}
        batch = batch_rows(batches, j, buffers if self.spec.noisy else None)
        failed = FailedUpdate(first_update + j + 1, float(lr[j]), self.state(), batch)
        return q_failure(self.spec, self.eager.online.module, self._precision, failed)

    def _run(self, step: Compiled, *inputs: Tensor) -> Sequence[Tensor]:
        """One call: td_error [n, B] and scalars [3, n]."""
        vectors = self._vectors()
        outputs = step(*vectors, *inputs)
        if self._in_place:
            return outputs
        *new, td_error, scalars = outputs
        for old, values in zip(vectors, new, strict=False):  # the target, which comes last, has not moved
            old.copy_(values)
        return td_error.clone(), scalars.clone()

    def _step(self, count: int, fields: list[Tensor], obs: Obs) -> Compiled:
        """The machine code for `count` updates on fields like these."""

        def build() -> Compiled:
            factors = torch.ones(count, 2, device=self._device)
            rows = [field[:1].expand(count, *field.shape[1:]).contiguous() for field in fields]
            example = (*self._vectors(), self._silence(count, 2), factors, *rows)
            return compile_function(make_step(self.spec, self.network, obs, self._in_place), example)

        return self._remember((count, *((field.shape[1:], field.dtype) for field in fields)), build)

    def _choice(self, fields: list[Tensor], obs: Obs) -> Compiled:
        """The machine code that acts on fields like these."""

        def build() -> Compiled:
            example = (self.eager.online.values, self._silence(), *fields)
            return compile_function(make_choice(self.spec, self._actor, obs), example)

        return self._remember(("act", *((field.shape, field.dtype) for field in fields)), build)

    def _remember(self, key: tuple[Any, ...], build: Callable[[], Compiled]) -> Compiled:
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._compiled[key] = build()
        return compiled

    def _tensors(self, arrays: list[Array]) -> list[Tensor]:
        """On the device, and contiguous: machine code takes the strides for granted."""
        if self._in_place:
            return [torch.from_numpy(array).contiguous() for array in arrays]
        return [torch.from_numpy(array).contiguous().to(self._device, non_blocking=True) for array in arrays]

    def _noise(self, *shape: int) -> Tensor:
        """[*shape, S] standard normal draws in the eager lane's order: update by update, the online network's layers
        before the target's, a draw of its own for each buffer (torch draws short and long vectors differently)."""
        noise = self._silence(*shape)
        for part in noise.view(-1).split(self.network.noise_sizes * int(np.prod(shape))):
            part.normal_(generator=self.eager.generator)
        return noise

    def _silence(self, *shape: int) -> Tensor:
        return torch.zeros(*shape, sum(self.network.noise_sizes), device=self._device)

    def _vectors(self) -> tuple[Tensor, ...]:
        return (self.eager.online.values, *self.eager.moments, self.eager.target.values)

    def greedy(self, obs: Obs, action_mask: Array | None, noisy: bool) -> Array:
        parts = flatten_obs(obs)
        if len(parts[0]) != self._num_envs:
            return self.eager.greedy(obs, action_mask, noisy)
        fields = self._tensors(parts if action_mask is None else [*parts, action_mask])
        noise = self._noise(1)[0] if noisy and self.spec.noisy else self._silence()
        (action,) = self._choice(fields, obs)(self.eager.online.values, noise, *fields)
        return action.cpu().numpy()

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
    """(start, count) of each call: long ones while they fit, single updates otherwise; the target moves between calls
    only. A function of its arguments alone: a resumed run must make the same calls."""
    start = 0
    while start < k:
        room = target_every - (first_update + start) % target_every if target_every else k
        count = UNROLLED if min(k - start, room) >= UNROLLED else 1
        yield start, count
        start += count


def adam_factors(spec: AdamSpec, lr: Array, first_update: int) -> Array:
    """[k, 2] float32: step length lr / (1 - beta1^t) and root of 1 - beta2^t, for updates t counted from 1."""
    pairs = [
        (rate / (1.0 - spec.beta1**count), math.sqrt(1.0 - spec.beta2**count))
        for count, rate in enumerate(lr.tolist(), first_update + 1)
    ]
    return np.array(pairs, np.float32)


def _refuse(network: nn.Module) -> None:
    """Name a module whose forward is more than a function of parameters, observation and noise."""
    for name, module in network.named_modules():
        kind = f"`{name}` ({type(module).__name__})"
        if isinstance(module, nn.modules.dropout._DropoutNd):
            raise LaneError(f"the compiled lane cannot draw the random numbers of {kind}", EAGER_HINT)
        buffers = [] if isinstance(module, NoisyLinear) else [key for key, _ in module.named_buffers(recurse=False)]
        if buffers:
            raise LaneError(f"the compiled lane cannot keep the buffer `{buffers[0]}` of {kind}", EAGER_HINT)
