"""The compiled lane: the eager lane's networks and losses, several updates fused into one call of machine code.

Updates are a pure function of flat vectors (`traced.py`), traced once for fixed shapes and compiled (`compiling.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hotloop.core.errors import LaneError
from hotloop.core.types import Array, UpdateStats
from hotloop.lanes.compiling import EAGER_HINT, Compiled, compile_function, require_compiler
from hotloop.lanes.eager import EagerLane
from hotloop.lanes.nonfinite import (
    NOISE,
    FailedUpdate,
    NonFiniteTensorError,
    as_arrays,
    explained,
    first_nonfinite_update,
)
from hotloop.lanes.objective import (
    ONLINE,
    Objective,
    flatten_obs,
    flatten_tensors,
)
from hotloop.lanes.spec import AdamSpec, go_on
from hotloop.lanes.traced import TracedNetwork, TracedUpdates, make_infer
from hotloop.nets.actor_critic import LogStd
from hotloop.nets.modules import NoisyLinear
from hotloop.presets.run_settings import Precision

UNROLLED = 4
"""Updates in one long call, which takes a third off an update of a 64-64 network; with 8 no gain could be measured, and
compiling took 1.6 times as long."""


class CompiledLane:
    """Shares its state with an eager lane, which acts for any number of envs but `num_envs`."""

    name = "compiled"

    def __init__(
        self,
        objective: Objective,
        network: nn.Module,
        device: str = "cpu",
        seed: int = 0,
        precision: Precision = "float32",
        num_envs: int = 0,
    ) -> None:
        _refuse(network)
        require_compiler(torch.device(device))
        self.objective, self.network = objective, network
        self.eager = EagerLane(objective, network, device, seed, precision)
        self._traced = {name: TracedNetwork(module, precision) for name, module in self.eager.modules.items()}
        acting: Precision = precision if objective.acts_in_precision else "float32"
        self._actor = TracedNetwork(self.eager.modules[ONLINE], acting)
        self._device = self.eager.device
        self.on_host = self._device.type == "cpu"  # where a read is free
        self._in_place = self.on_host  # a CUDA graph would not see writes to its inputs
        self._num_envs = num_envs
        self._rhythm = math.lcm(*(stage.every for stage in objective.stages))  # after so many updates stages recur
        self._vectors = list(self.eager.vectors().values())  # changed in place only, by whoever changes them
        self._zeros: dict[int, Tensor] = {}
        self._compiled: dict[tuple[Any, ...], Compiled] = {}

    def prepare(self, example: Any, most_updates: int) -> None:
        """Compile for data shaped like `example`, up to `most_updates` at once, and for acting; changes no state.

        Without it the first call of each kind compiles: what is computed never depends on who compiled it when.
        """
        like = self.objective.on_device(example, self._device).several(0, 1)
        shared = self._held(self.objective.call_constants(example, self.eager.networks))
        room = self.objective.target_every or most_updates  # the target moves between calls only
        for count in (1, UNROLLED) if min(most_updates, room) >= UNROLLED else (1,):
            fields = [field.expand(count, *field.shape[1:]).contiguous() for field in flatten_tensors(like)]
            for first_update in range(self._rhythm):
                self._step(first_update, fields, (like, shared))
        if self._num_envs:
            mask = [] if example.next_action_mask is None else [example.next_action_mask]
            rows = [np.repeat(part[0, :1], self._num_envs, axis=0) for part in (*flatten_obs(example.obs), *mask)]
            self._choice(self._tensors(rows), example.obs)

    def update(self, data: Any, lr: Array, first_update: int, check: Callable[[], None] = go_on) -> UpdateStats:
        batches = self.objective.on_device(data, self._device)
        shared = self.objective.call_constants(data, self.eager.networks)
        held = self._held(shared)
        (factors,) = self._tensors([adam_factors(self.objective, lr, first_update)])
        row_errors: list[Tensor] = []
        measured: list[Tensor] = []
        epoch = 0  # where its first call's measures are
        for start, count in self._calls(len(lr), batches.per_epoch, first_update):
            check()
            noise, batch = self._noise(count), batches.several(start, count)
            fields, end = _contiguous(batch), start + count
            step = self._step(first_update + start, fields, (batch, held))
            *errors, scalars = self._run(step, noise, factors[start:end], *flatten_tensors(held), *fields)
            if self.on_host and (j := first_nonfinite_update(scalars)) >= 0:
                kept = self.objective.failure_batch(data, start + j, shared)
                raise self._failure(kept, noise[j], float(lr[start + j]), first_update + start + j + 1)
            row_errors += errors
            measured.append(scalars)
            if self.objective.target_every and (first_update + end) % self.objective.target_every == 0:
                self.move_target(self.objective.target_tau)
            if end % batches.per_epoch == 0:
                if self.objective.stop_early(measured[epoch:]):
                    break
                epoch = len(measured)
        return UpdateStats(_joined(measured, 1), _joined(row_errors, 0) if row_errors else None)

    def _calls(self, k: int, per_epoch: int, first_update: int) -> Iterator[tuple[int, int]]:
        """(start, count) of each call; none reaches over the end of an epoch."""
        for epoch in range(0, k, per_epoch):
            for start, count in chunks(per_epoch, first_update + epoch, self.objective.target_every):
                yield epoch + start, count

    def _failure(self, batch: dict[str, Any], noise: Tensor, lr: float, number: int) -> NonFiniteTensorError:
        """The error that names what was wrong first in an update that changed nothing and was the last."""
        if self.objective.noisy:
            named = zip(self._traced.items(), noise, strict=True)
            batch[NOISE] = as_arrays({name: traced.buffers(part) for (name, traced), part in named})
        failed = FailedUpdate(number, lr, self.state(), batch)
        return explained(failed, self.objective.nan_search_order(self.network, self.eager.precision, failed))

    def _run(self, step: Compiled, *inputs: Tensor) -> Sequence[Tensor]:
        """One call: row errors [n, B], if the objective has any, and what was measured [M, n]."""
        outputs = step(*self._vectors, *inputs)
        if self._in_place:
            return outputs
        moved = 3 * len(self.eager.groups)  # targets, which come last, have not moved
        for old, values in zip(self._vectors[:moved], outputs[:moved], strict=True):
            old.copy_(values)
        return [output.clone() for output in outputs[moved:]]

    def _held(self, shared: Any) -> Any:
        """What batches share with its plain numbers as tensors [1]."""
        if shared is None:
            return None
        as_tensor = lambda value: torch.full((1,), value, device=self._device)  # noqa: E731
        return type(shared)._make(value if isinstance(value, Tensor) else as_tensor(value) for value in shared)

    def _step(self, first_update: int, fields: list[Tensor], like: tuple[Any, Any]) -> Compiled:
        """The machine code for updates on fields [n, B, ...] like these, after `first_update` others. `like`: a batch,
        and what batches share, to put the fields back in their places."""
        place = first_update % self._rhythm

        def build() -> Compiled:
            count = len(fields[0])
            factors = torch.ones(count, len(self.objective.stages), 2, device=self._device)
            function = TracedUpdates(self.objective, self._traced, like, self._in_place, place)
            example = (*self._vectors, self._silence(count), factors, *flatten_tensors(like[1]), *fields)
            return compile_function(function, example)

        return self._remember((place, *[(field.shape, field.dtype) for field in fields]), build)

    def _choice(self, fields: list[Tensor], obs: Any) -> Compiled:
        """The machine code that acts on fields like these."""

        def build() -> Compiled:
            function = make_infer(self.objective, self._actor, obs)
            return compile_function(function, (self._online(), self._silence(1)[0, 0], *fields))

        return self._remember(("act", *((field.shape, field.dtype) for field in fields)), build)

    def _remember(self, key: tuple[Any, ...], build: Callable[[], Compiled]) -> Compiled:
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._compiled[key] = build()
        return compiled

    def _online(self) -> Tensor:
        return self.eager.groups[ONLINE].flat.values

    def _tensors(self, arrays: list[Array]) -> list[Tensor]:
        tensors = [torch.from_numpy(array).contiguous() for array in arrays]
        return tensors if self.on_host else [tensor.to(self._device, non_blocking=True) for tensor in tensors]

    def _noise(self, count: int) -> Tensor:
        """[count, networks, S] standard normal draws in the eager lane's order: update by update, the online network's
        layers before the target's, a draw of its own for each buffer (torch draws short and long vectors
        differently); zeros where there are no noisy layers."""
        if self.objective.noisy:
            noise = self._silence(count)
            self._draw(noise)
            return noise
        if count not in self._zeros:
            self._zeros[count] = self._silence(count)
        return self._zeros[count]

    def _draw(self, noise: Tensor) -> None:
        sizes = self._actor.noise_sizes
        for part in noise.view(-1).split(sizes * (noise.numel() // sum(sizes))):
            part.normal_(generator=self.eager.generator)

    def _silence(self, count: int) -> Tensor:
        return torch.zeros(count, len(self._traced), sum(self._actor.noise_sizes), device=self._device)

    def infer(self, obs: Any, action_mask: Array | None = None, noisy: bool = False) -> tuple[Any, ...]:
        parts = flatten_obs(obs)
        if len(parts[0]) != self._num_envs:
            return self.eager.infer(obs, action_mask, noisy)
        fields = self._tensors(parts if action_mask is None else [*parts, action_mask])
        noise = self._silence(1)[0, 0]
        if noisy and self.objective.noisy:
            self._draw(noise)
        return tuple(answer.cpu().numpy() for answer in self._choice(fields, obs)(self._online(), noise, *fields))

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


def adam_factors(objective: Objective, lr: Array, first_update: int) -> Array:
    """[k, stages, 2] float32: step length lr / (1 - beta1^t) and root of 1 - beta2^t, for the t-th step of a stage;
    of one that is not made, what it would be for the first."""
    spec: AdamSpec = objective.spec
    stages, factors = objective.stages, []
    for update, rate in enumerate(lr.tolist(), first_update + 1):
        for stage in stages:
            t = stage.count(update) or 1
            factors += [rate / (1.0 - spec.beta1**t), math.sqrt(1.0 - spec.beta2**t)]
    return np.array(factors, np.float32).reshape(len(lr), len(stages), 2)


def _contiguous(batch: Any) -> list[Tensor]:
    """A batch's fields; machine code takes the strides for granted."""
    return [field.contiguous() for field in flatten_tensors(batch)]


def _joined(parts: list[Tensor], dim: int) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim)


def _refuse(network: nn.Module) -> None:
    if problem := untraceable(network):
        raise LaneError(f"the compiled lane {problem}", EAGER_HINT)


def untraceable(network: nn.Module) -> str:
    """Names a module whose forward is more than a function of parameters, observation and noise; empty: there is
    none."""
    for name, module in network.named_modules():
        kind = f"`{name}` ({type(module).__name__})"
        if isinstance(module, nn.modules.dropout._DropoutNd):
            return f"cannot draw the random numbers of {kind}"
        known = isinstance(module, NoisyLinear | LogStd)
        buffers = [] if known else [key for key, _ in module.named_buffers(recurse=False)]
        if buffers:
            return f"cannot keep the buffer `{buffers[0]}` of {kind}"
    return ""
