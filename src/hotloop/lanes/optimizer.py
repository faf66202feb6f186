"""A module's parameters in one flat vector, with the moments that Adam keeps of their gradient.

One owner, because views break easily: `.to()` and loading by assignment give parameters storage of their own, and
`zero_grad(set_to_none=True)` drops the gradient views. `attach` makes them views again; nobody else may.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from hotloop.core.types import Array
from hotloop.lanes.spec import AdamSpec


class FlatParameters:
    """`values` and `gradient` [P]; `module` keeps working, saving and exporting as usual."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        parameters = list(module.parameters())
        self.values = torch.cat([parameter.detach().reshape(-1) for parameter in parameters])
        self.gradient = torch.zeros_like(self.values)
        self.attach()

    def attach(self) -> None:
        """Point every parameter and its gradient into the flat vectors, whose numbers count."""
        start = 0
        for parameter in self.module.parameters():
            end = start + parameter.numel()
            parameter.data = self.values[start:end].view_as(parameter)
            parameter.grad = self.gradient[start:end].view_as(parameter)
            start = end

    def is_attached(self) -> bool:
        """Whether the module's parameters still are the views they should be."""
        offset = 0
        for parameter in self.module.parameters():
            gradient = parameter.grad
            if gradient is None or gradient.data_ptr() != self.gradient.data_ptr() + offset:
                return False
            if parameter.data_ptr() != self.values.data_ptr() + offset:
                return False
            offset += parameter.numel() * parameter.element_size()
        return True

    def to(self, device: torch.device | str) -> FlatParameters:
        """Move module and vectors together."""
        self.module.to(device)
        self.values = self.values.to(device)
        self.gradient = self.gradient.to(device)
        self.attach()
        return self

    def load(self, values: Tensor) -> None:
        self.values.copy_(values)


class AdamStep(NamedTuple):
    """Which step it is, counted from 1, and its learning rate."""

    lr: float
    t: int

    def length(self, spec: AdamSpec) -> float:
        """What Adam multiplies with."""
        return self.lr / (1.0 - spec.beta1**self.t)


class FlatAdam:
    """A module's flat parameters with Adam's running mean and square of their gradient."""

    def __init__(self, module: nn.Module) -> None:
        self.flat = FlatParameters(module)
        self.parameters = list(module.parameters())
        self.mean, self.square = torch.zeros_like(self.flat.values), torch.zeros_like(self.flat.values)
        self.on_host = self.flat.values.device.type == "cpu"  # where a read is free

    def vectors(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.flat.values, self.mean, self.square


def as_array(vector: Tensor) -> Array:
    """A copy on the host."""
    return vector.cpu().numpy().copy()


def load_vector(vector: Tensor, values: Any) -> None:
    vector.copy_(torch.from_numpy(np.asarray(values)))


def shapes_of(module: nn.Module) -> dict[str, torch.Size]:
    return {name: parameter.shape for name, parameter in module.named_parameters()}


def split_vector(vector: Tensor, shapes: dict[str, torch.Size]) -> dict[str, Tensor]:
    """The pieces of a flat vector by name, as views."""
    parts = vector.split([shape.numel() for shape in shapes.values()]) if shapes else ()
    return {name: part.view(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}


def as_float(outputs: Any) -> Any:
    """What a network says, a tensor or a tuple of them, in float32."""
    if isinstance(outputs, Tensor):
        return outputs.float()
    parts = [None if part is None else part.float() for part in outputs]
    return type(outputs)._make(parts) if hasattr(outputs, "_make") else tuple(parts)
