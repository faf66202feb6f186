"""The plain lane: PyTorch, any objective, any module, any device. The readable truth that other lanes are held to.

One update, in the order of the methods below: batches become tensors, the loss is computed, its gradient taken and
clipped, Adam stepped, the target moved.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from hotloop.core.types import Array, UpdateStats
from hotloop.lanes.nonfinite import NOISE, FailedUpdate, NonFiniteTensorError, as_arrays, explained
from hotloop.lanes.objective import (
    ONLINE,
    Network,
    Objective,
    Outcome,
    Stage,
    as_tensors_on,
    flatten_tensors,
    joined_measures,
    map_tensors,
    moment_of,
    target_of,
)
from hotloop.lanes.optimizer import AdamStep, FlatAdam, FlatParameters, as_array, as_float, load_vector
from hotloop.lanes.spec import AdamSpec, go_on
from hotloop.maths.adam import adam_step, clip_scale
from hotloop.nets.modules import resample_noise, silence_noise
from hotloop.presets.run_settings import Precision

LARGEST = torch.finfo(torch.float32).max


class EagerLane:
    """Owns the parameters as flat vectors, the optimizer's moments, target copies and the noise generator."""

    name = "eager"

    def __init__(
        self,
        objective: Objective,
        network: nn.Module,
        device: str = "cpu",
        seed: int = 0,
        precision: Precision = "float32",
    ) -> None:
        self.objective, self.precision = objective, precision
        self.device = torch.device(device)
        self.network = network.to(self.device)
        self.modules = objective.groups(self.network)
        self.groups = {name: FlatAdam(module) for name, module in self.modules.items()}
        self.targets: dict[str, FlatParameters] = {}
        for name in objective.targets:
            self.modules[target_of(name)] = copy.deepcopy(self.modules[name]).requires_grad_(False)
            self.targets[name] = FlatParameters(self.modules[target_of(name)])
        self._buffers = [
            (buffer, self.modules[target_of(name)].get_buffer(key))
            for name in objective.targets
            for key, buffer in kept_buffers(self.modules[name])
        ]
        self.networks = {name: self._bound(module, precision) for name, module in self.modules.items()}
        self._actor = self._bound(self.modules[ONLINE], precision if objective.acts_in_precision else "float32")
        # of the Q family noisy or not: its checkpoints have always held one
        self.generator = noise_generator(self.device, seed) if objective.targets else None

    def _bound(self, module: nn.Module, precision: Precision) -> Network:
        """The module as the objective takes it. Half precision ends at its output: the loss is always in float32."""

        def forward_in_half(obs: Any) -> Any:
            with torch.autocast(self.device.type, torch.bfloat16):
                return as_float(module(obs))

        forward = forward_in_half if precision == "bfloat16" else module
        return Network(forward, dict(module.named_parameters()))

    def prepare(self, example: Any, most_updates: int) -> None:
        pass

    def update(self, data: Any, lr: Array, first_update: int, check: Callable[[], None] = go_on) -> UpdateStats:
        batches, shared = (
            self.objective.on_device(data, self.device),
            self.objective.call_constants(data, self.networks),
        )
        measured: list[Tensor] = []
        row_errors: list[Tensor] = []
        for j in range(len(lr)):
            check()
            step = AdamStep(float(lr[j]), first_update + j + 1)
            outcome = self._one_update(batches.one(j), shared, step)
            if outcome is None:
                raise self._failure(self.objective.failure_batch(data, j, shared), step)
            measured.append(outcome.measures)
            if outcome.row_error is not None:
                row_errors.append(outcome.row_error)
            if (j + 1) % batches.per_epoch == 0 and self.objective.stop_early(measured[-batches.per_epoch :]):
                break
        return UpdateStats(torch.stack(measured, 1), torch.stack(row_errors) if row_errors else None)

    def _one_update(self, batch: Any, shared: Any, step: AdamStep) -> Outcome | None:
        """What it computed, measures with the gradient's norm; None where it was not made, for it was not finite."""
        objective = self.objective
        if objective.noisy and self.generator is not None:
            for module in self.modules.values():
                resample_noise(module, self.generator)
        outcomes: dict[str, Outcome] = {}
        norms: list[Tensor] = []
        for stage in (stage for stage in objective.stages if stage.is_made(step.t)):
            group = self.groups[stage.parameters]
            group.flat.gradient.zero_()
            outcome = outcomes[stage.parameters] = self._loss_and_gradient(stage, batch, shared)
            norm = clip_and_step(objective.spec, group, outcome.measures[0], step._replace(t=stage.count(step.t)))
            if norm is None:
                return None
            norms.append(norm)
            batch = batch._replace(**outcome.next_stage_inputs) if outcome.next_stage_inputs else batch
        if objective.target_every and step.t % objective.target_every == 0:
            self.move_target(objective.target_tau)
        measured = {name: outcome.measures for name, outcome in outcomes.items()}
        first = outcomes[objective.stages[0].parameters]
        return first._replace(measures=joined_measures(objective.stages, measured, norms))

    def _loss_and_gradient(self, stage: Stage, batch: Any, shared: Any) -> Outcome:
        """The gradient is in the group's flat vector afterwards. A batch that is accumulated goes part by part."""
        parts = self.objective.accumulate
        if parts == 1:
            outcome = stage.loss(self.networks, batch, shared)
            self._backward(stage, outcome.loss)
            return outcome
        measures: Any = 0.0
        row_errors, passed = [], []
        for part in _split(batch, parts):
            outcome = stage.loss(self.networks, part, shared)
            self._backward(stage, outcome.loss / parts)
            measures = measures + outcome.measures / parts
            row_errors += [] if outcome.row_error is None else [outcome.row_error]
            passed.append(outcome.next_stage_inputs or {})
        joined = {name: torch.cat([part[name] for part in passed]) for name in passed[0]}
        return Outcome(measures[0], measures, torch.cat(row_errors) if row_errors else None, joined)

    def _backward(self, stage: Stage, loss: Tensor) -> None:
        """Into the stage's own parameters: a loss that looks through other networks moves none of theirs."""
        alone = len(self.groups) == 1
        loss.backward(inputs=None if alone else self.groups[stage.parameters].parameters)

    def _failure(self, batch: dict[str, Any], step: AdamStep) -> NonFiniteTensorError:
        """The error that names what was wrong first in an update that was not made."""
        if self.objective.noisy:
            batch[NOISE] = as_arrays({name: dict(module.named_buffers()) for name, module in self.modules.items()})
        failed = FailedUpdate(step.t, step.lr, self.state(), batch)
        return explained(failed, self.objective.nan_search_order(self.network, self.precision, failed))

    @torch.no_grad()
    def infer(self, obs: Any, action_mask: Array | None = None, noisy: bool = False) -> tuple[Any, ...]:
        if self.objective.noisy and noisy and self.generator is not None:
            resample_noise(self.modules[ONLINE], self.generator)
        elif self.objective.noisy:
            silence_noise(self.modules[ONLINE])
        mask = None if action_mask is None else as_tensors_on(self.device)(action_mask)
        answers = self.objective.infer(self._actor, self.objective.obs_tensors(obs, self.device), mask)
        return tuple(None if answer is None else answer.cpu().numpy() for answer in answers)

    def move_target(self, tau: float) -> None:
        """Buffers (a batch normalization's statistics) are no parameters: they are taken over whole."""
        for name, target in self.targets.items():
            target.values.lerp_(self.groups[name].flat.values, tau)
            for new, old in self._buffers:
                old.copy_(new)

    def parameters(self) -> Array:
        return as_array(torch.cat([group.flat.values for group in self.groups.values()]))

    def load_parameters(self, values: Array) -> None:
        for group in self.groups.values():
            load_vector(group.flat.values, values[: group.flat.values.numel()])
            values = values[group.flat.values.numel() :]

    def vectors(self) -> dict[str, Tensor]:
        """All that updates change, by the names that checkpoints know: `online`, `mean`, `square`, `target`; with the
        group's name before the moments of any group but `online`."""
        named: dict[str, Tensor] = {}
        for name, group in self.groups.items():
            names = (name, moment_of(name, "mean"), moment_of(name, "square"))
            named |= zip(names, group.vectors(), strict=True)
        return named | {target_of(name): target.values for name, target in self.targets.items()}

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = {name: as_array(vector) for name, vector in self.vectors().items()}
        return state if self.generator is None else state | {"generator": self.generator.get_state().numpy().copy()}

    def load_state(self, state: dict[str, Any]) -> None:
        for name, vector in self.vectors().items():
            load_vector(vector, state[name])
        if self.generator is not None:
            self.generator.set_state(torch.from_numpy(state["generator"].copy()))


def clip_and_step(spec: AdamSpec, group: FlatAdam, loss: Tensor, step: AdamStep) -> Tensor | None:
    """Down the gradient, in place; its norm before clipping, or None where no step was made.

    On a CPU no step is made where loss or gradient are not finite. Elsewhere nobody waits for the numbers: nothing
    moves either, which is decided on the device, and it is found out when they are read for the next log row.
    """
    gradient = group.flat.gradient
    norm = gradient.norm()
    if group.on_host and not (math.isfinite(norm.item()) and math.isfinite(loss.item())):
        return None
    if not step.length(spec) <= LARGEST:  # nor is one by a learning rate that is NaN
        return None
    if spec.max_grad_norm > 0:
        gradient.mul_(clip_scale(norm, spec.max_grad_norm))
    before = () if group.on_host else [vector.clone() for vector in group.vectors()]
    constants = (spec.beta1, spec.beta2, spec.epsilon)
    adam_step(group.flat.values, gradient, (group.mean, group.square), constants, step.lr, step.t)
    for vector, old in zip(group.vectors(), before, strict=False):
        vector.copy_(torch.where(norm.isfinite() & loss.isfinite(), vector, old))
    return norm


def kept_buffers(module: nn.Module) -> list[tuple[str, Tensor]]:
    """The buffers that a `state_dict` has, by name."""
    kept = module.state_dict()
    return [(name, buffer) for name, buffer in module.named_buffers() if name in kept]


def noise_generator(device: torch.device, seed: int) -> torch.Generator:
    return torch.Generator(device).manual_seed(seed % 2**63)


def _split(batch: Any, parts: int) -> list[Any]:
    size = len(flatten_tensors(batch)[0]) // parts
    return [map_tensors(lambda field, i=i: field[i * size : (i + 1) * size], batch) for i in range(parts)]
