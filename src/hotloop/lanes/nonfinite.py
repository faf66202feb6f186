"""When an update is not to be made because its numbers are not finite: what it was computed from, and what came first.

Looking for the first tensor costs a forward and a backward in plain PyTorch, and is done only once something is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from hotloop.core.errors import NonFiniteError
from hotloop.core.types import Array
from hotloop.lanes.objective import ONLINE, Network, Stage, moment_of, target_of
from hotloop.lanes.optimizer import as_float, shapes_of, split_vector
from hotloop.lanes.spec import AdamSpec
from hotloop.maths.adam import adam_step, clip_scale

HINT = "a smaller `optimizer.learning_rate` or `optimizer.max_grad_norm` helps; no step was made on it"
NOISE = "noise"
"""The name under which a failed update keeps the buffers of noisy layers, network by network."""
Named = Iterator[tuple[str, Tensor]]
"""An update's tensors in the order in which they are computed."""


@dataclass(frozen=True)
class FailedUpdate:
    """Everything that one update was computed from."""

    update: int
    """Its number, from 1; 0 where it is no update that failed."""
    lr: float
    state: dict[str, Any]
    """The lane's: parameters and moments as they were before the step."""
    batch: dict[str, Any]
    """The batch, and what else it took; arrays by name."""


class NonFiniteTensorError(NonFiniteError):
    """Carries what was found, for those who want to keep or repeat it."""

    def __init__(self, message: str, hint: str, first: str, failed: FailedUpdate) -> None:
        super().__init__(message, hint)
        self.first, self.failed = first, failed


def explained(failed: FailedUpdate, tensors: Named) -> NonFiniteTensorError:
    """The error that names the first of `tensors` that is not finite."""
    first = first_nonfinite(tensors) or "the loss or gradient, on its own lane only"
    message = f"the loss or gradient of update {failed.update:,} is NaN or infinite, first of all: {first}"
    return NonFiniteTensorError(message, HINT, first, failed)


def first_nonfinite(tensors: Named) -> str:
    """The name of the first that holds NaN or infinity; empty where none does."""
    return next((name for name, tensor in tensors if not is_finite(tensor)), "")


def is_finite(tensor: Tensor) -> bool:
    return not tensor.is_floating_point() or bool(tensor.isfinite().all())


def first_nonfinite_update(scalars: Tensor) -> int:
    """The first update whose loss or gradient norm is not finite, first and last of its `scalars` [S, k]; -1: none.
    For a CPU, where reading is free."""
    losses, *_, norms = scalars.tolist()  # a few numbers: an array's functions would take four times as long
    bad = (j for j, pair in enumerate(zip(losses, norms, strict=True)) if not all(map(math.isfinite, pair)))
    return next(bad, -1)


def tensors_of_state(network: nn.Module, failed: FailedUpdate, group: str = ONLINE) -> Named:
    """What an update begins with: learning rate, parameters, moments; of `group`, whose module `network` is."""
    yield "learning rate", torch.tensor(failed.lr, dtype=torch.float64)
    shapes = shapes_of(network)
    mean, square = (moment_of(group, moment) for moment in ("mean", "square"))
    titles = {group: "parameter", target_of(group): "target parameter", mean: "mean of", square: "square of"}
    for key, title in titles.items():
        if key in failed.state:
            yield from ((f"{title} {name}", part) for name, part in _split(failed.state[key], shapes).items())


def tensors_of_step(
    spec: AdamSpec, network: nn.Module, failed: FailedUpdate, values: Tensor, loss: Tensor, stage: Stage | None = None
) -> Named:
    """What an update, or one stage of it, ends with: loss, gradients, their norm, and the parameters that Adam would
    make."""
    group = ONLINE if stage is None else stage.parameters
    yield "loss", loss.detach()
    shapes = shapes_of(network)
    (gradient,) = torch.autograd.grad(loss, values)
    yield from ((f"gradient of {name}", part) for name, part in split_vector(gradient, shapes).items())
    norm = gradient.norm()
    yield "gradient norm", norm
    if spec.max_grad_norm > 0:
        gradient = gradient * clip_scale(norm, spec.max_grad_norm)
    number = max(failed.update if stage is None else stage.count(failed.update), 1)
    yield "step length", torch.tensor(failed.lr / (1.0 - spec.beta1**number), dtype=torch.float32)
    names = (group, moment_of(group, "mean"), moment_of(group, "square"))
    after, mean, square = (torch.tensor(failed.state[name]) for name in names)
    constants = (spec.beta1, spec.beta2, spec.epsilon)
    adam_step(after, gradient, (mean, square), constants, failed.lr, number)
    yield from ((f"parameter {name} after the step", part) for name, part in split_vector(after, shapes).items())


def tensors_of_batch(batch: Mapping[str, Any], order: Sequence[str] = (), prefix: str = "") -> Named:
    """Arrays by name, those of nested tables as `table.name`; in that order, or sorted: files keep none."""
    for name in order or sorted(batch):
        value = batch[name]
        if isinstance(value, Mapping):
            yield from tensors_of_batch(value, (), f"{prefix}{name}.")
        else:
            yield prefix + name, torch.from_numpy(np.ascontiguousarray(value))


def bound_network(
    network: nn.Module, vector: Array, noise: Mapping[str, Tensor], precision: str
) -> tuple[Tensor, Network]:
    """The network with the parameters of a flat vector and these buffers, its own left as they are; and a copy of the
    vector that gradients can be taken of. Half precision ends at its output."""
    values = torch.tensor(vector).requires_grad_()
    parameters = split_vector(values, shapes_of(network))

    def forward(obs: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16", cache_enabled=False):
            return as_float(functional_call(network, {**parameters, **noise}, (obs,)))

    return values, Network(forward, parameters)


def as_arrays(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Copies on the host of all fields that are there; dicts stay dicts."""

    def copied(value: Any) -> Any:
        if isinstance(value, Mapping):
            return as_arrays(value)
        return value.detach().cpu().numpy().copy() if isinstance(value, Tensor) else np.array(value)

    return {name: copied(value) for name, value in fields.items() if value is not None}


def as_tensors(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse, sharing memory."""
    return {
        name: as_tensors(value) if isinstance(value, Mapping) else torch.from_numpy(np.ascontiguousarray(value))
        for name, value in fields.items()
    }


def _split(vector: Array, shapes: dict[str, torch.Size]) -> dict[str, Tensor]:
    return split_vector(torch.from_numpy(np.ascontiguousarray(vector)), shapes)
