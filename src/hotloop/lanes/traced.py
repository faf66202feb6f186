"""Updates as pure functions of flat vectors, for a compiler to trace.

Losses are the objective's own; Adam and clipping are written out here on whole vectors, with everything that changes
from update to update (learning rate, bias correction, noise, clip range) as a tensor: no number is baked in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value

from hotloop.lanes.objective import (
    Network,
    Objective,
    Stage,
    flatten_obs,
    flatten_tensors,
    joined_measures,
    restore_tensors,
    target_of,
)
from hotloop.lanes.optimizer import as_float, shapes_of, split_vector
from hotloop.lanes.spec import AdamSpec
from hotloop.maths.adam import clip_scale
from hotloop.nets.modules import NoisyLinear
from hotloop.presets.run_settings import Precision

Function = Callable[..., tuple[Tensor, ...]]
Vectors = tuple[Tensor, Tensor, Tensor]  # parameters, running mean, running square


class TracedNetwork:
    """A module's forward as a function of a flat parameter vector and a flat noise vector."""

    def __init__(self, module: nn.Module, precision: Precision) -> None:
        self._module = module
        self._parameters = shapes_of(module)
        self._noise = {
            f"{name}.{key}" if name else key: buffer.shape
            for name, layer in module.named_modules()
            if isinstance(layer, NoisyLinear)
            for key, buffer in layer.named_buffers(recurse=False)
        }
        self._half = precision == "bfloat16"
        self.noise_sizes = [shape.numel() for shape in self._noise.values()]

    def split(self, values: Tensor) -> dict[str, Tensor]:
        return split_vector(values, self._parameters)

    def buffers(self, noise: Tensor) -> dict[str, Tensor]:
        """The noisy layers' buffers, from standard normal draws [S]."""
        return split_vector(noise.sign() * noise.abs().sqrt(), self._noise)

    def bind(self, parameters: dict[str, Tensor], noise: Tensor) -> Network:
        """The network with these numbers in it. Half precision ends at its output: the loss is always in float32."""
        buffers = self.buffers(noise)

        def forward(obs: Any) -> Any:
            if not self._half:
                return functional_call(self._module, parameters | buffers, (obs,))
            with torch.autocast(noise.device.type, torch.bfloat16, cache_enabled=False):
                return as_float(functional_call(self._module, parameters | buffers, (obs,)))

        return Network(forward, parameters)


class TracedUpdates:
    """n updates as a pure function, for `compile_function` to trace.

    It takes each group's parameters, mean and square [P], targets [P], noise [n, networks, S], the Adam factors of each
    update's stages [n, stages, 2], what batches share and the batches' fields [n, B, ...]. It writes to the vectors, or
    returns new ones before row errors [n, B], where there are any, and measures [M, n]. Targets stay: who calls moves
    them in between. From the first update on whose loss or gradient is not finite the vectors stay as they are.
    """

    def __init__(
        self,
        objective: Objective,
        traced: dict[str, TracedNetwork],
        like: tuple[Any, Any],
        in_place: bool,
        first_update: int = 0,
    ) -> None:
        self._objective, self._traced, self._in_place = objective, traced, in_place
        self._first_update = first_update  # decides which stages each update has
        self._like_batch, self._like_shared = like
        self._places = {name: place for place, name in enumerate(traced)}  # of a network among the noise
        self._groups = list(traced)[: len(traced) - len(objective.targets)]

    def __call__(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        num_moving, num_targets = 3 * len(self._groups), len(self._objective.targets)
        moving, fixed = inputs[:num_moving], inputs[num_moving : num_moving + num_targets]
        noise, factors, *rest = inputs[num_moving + num_targets :]
        num_shared = len(flatten_tensors(self._like_shared))
        shared, fields = restore_tensors(rest[:num_shared], self._like_shared), rest[num_shared:]
        vectors = {name: (moving[3 * i], moving[3 * i + 1], moving[3 * i + 2]) for i, name in enumerate(self._groups)}
        good = noise.new_ones((), dtype=torch.bool)
        row_errors, measured = [], []
        targets = self._bound_targets(fixed, noise, restore_tensors(fields, self._like_batch))
        stages = self._objective.stages
        for j in range(len(factors)):
            batch = restore_tensors([field[j] for field in fields], self._like_batch)
            measures: dict[str, Tensor] = {}
            norms: list[Tensor] = []
            for place, stage in enumerate(stages):
                if not stage.is_made(self._first_update + j + 1):
                    continue
                data = (batch, shared)
                gradient, found, errors, next_stage_inputs = self._gradient(stage, vectors, targets[j], noise[j], data)
                vectors[stage.parameters], norm, good = clip_and_step(
                    self._objective.spec, vectors[stage.parameters], gradient, factors[j, place], found[0], good
                )
                measures[stage.parameters] = found
                norms.append(norm)
                row_errors += errors
                batch = batch._replace(**next_stage_inputs) if next_stage_inputs else batch
            measured.append(joined_measures(stages, measures, norms))
        stats = *([torch.stack(row_errors)] if row_errors else []), torch.stack(measured, 1)
        new = [vector for name in self._groups for vector in vectors[name]]
        if not self._in_place:
            return *new, *stats
        for old, values in zip(moving, new, strict=True):
            old.copy_(values)
        return stats

    def _bound_targets(self, fixed: Sequence[Tensor], noise: Tensor, batches: Any) -> list[dict[str, Network]]:
        """The target networks of each of n updates."""
        bound: list[dict[str, Network]] = [{} for _ in noise]
        for group, vector in zip(self._objective.targets, fixed, strict=True):
            name = target_of(group)
            place, parameters = self._places[name], self._traced[name].split(vector)
            each = [self._traced[name].bind(parameters, draws[place]) for draws in noise]
            known = None if self._objective.noisy else self._objective.known_targets(each[0], batches)
            for j, network in enumerate(known or each):
                bound[j][name] = network
        return bound

    def _gradient(
        self,
        stage: Stage,
        vectors: dict[str, Vectors],
        targets: dict[str, Network],
        noise: Tensor,
        data: tuple[Any, Any],
    ) -> tuple[Tensor, Tensor, list[Tensor], dict[str, Tensor]]:
        """The gradient [P] of the stage's loss, its measures, its row errors if it has any, and what it passes on.

        The parts of an accumulated update are of one size: the mean over all its rows is the mean of their means.
        """

        def bind(name: str, parameters: dict[str, Tensor]) -> Network:
            return self._traced[name].bind(parameters, noise[self._places[name]])

        split = {name: self._traced[name].split(vectors[name][0]) for name in self._groups}
        networks = targets | {name: bind(name, split[name]) for name in self._groups}

        def loss(parameters: dict[str, Tensor]) -> tuple[Tensor, tuple[Tensor, list[Tensor], dict[str, Tensor]]]:
            outcome = stage.loss(networks | {stage.parameters: bind(stage.parameters, parameters)}, *data)
            errors = [] if outcome.row_error is None else [outcome.row_error]  # torch takes no None there
            return outcome.loss, (outcome.measures, errors, outcome.next_stage_inputs or {})

        gradients, (_, measured) = grad_and_value(loss, has_aux=True)(split[stage.parameters])
        return torch.cat([part.reshape(-1) for part in gradients.values()]), *measured


def make_infer(objective: Objective, network: TracedNetwork, like: Any) -> Function:
    """What acting needs as a function of parameters [P], noise [S], the observation's parts [N, ...] and a mask."""

    def infer(values: Tensor, noise: Tensor, *fields: Tensor) -> tuple[Tensor, ...]:
        parts = len(flatten_obs(like))
        obs = dict(zip(sorted(like), fields, strict=False)) if isinstance(like, dict) else fields[0]
        mask = fields[parts] if len(fields) > parts else None
        return objective.infer(network.bind(network.split(values), noise), obs, mask)  # type: ignore[return-value]

    return infer


def clip_and_step(
    spec: AdamSpec, vectors: Vectors, gradient: Tensor, factors: Tensor, loss: Tensor, good: Tensor
) -> tuple[Vectors, Tensor, Tensor]:
    """`eager.clip_and_step` without its in-place writes; `factors` are those of `adam_factors`.

    `good` says whether everything before was finite; returned is whether it still is. Where not, nothing moves.
    """
    values, mean, square = vectors
    norm = gradient.norm()
    good = good & norm.isfinite() & loss.isfinite()
    if spec.max_grad_norm > 0:
        gradient = gradient * clip_scale(norm, spec.max_grad_norm)
    mean = mean.lerp(gradient, 1.0 - spec.beta1)
    square = square * spec.beta2 + gradient * gradient * (1.0 - spec.beta2)
    denominator = square.sqrt() / factors[1] + spec.epsilon
    stepped = (values - factors[0] * mean / denominator, mean, square)
    first, second, third = (torch.where(good, new, old) for new, old in zip(stepped, vectors, strict=True))
    return (first, second, third), norm, good
