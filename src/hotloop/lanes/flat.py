"""All parameters of a module in one flat vector, the module's own as views of it.

One owner, because views break easily: `.to()` and loading by assignment give parameters storage of their own, and
`zero_grad(set_to_none=True)` drops the gradient views. `attach` makes them views again; nobody else may.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


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
