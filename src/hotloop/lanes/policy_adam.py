"""A network's parameters and Adam's moments as flat vectors: the half of an actor-critic lane that all lanes on PyTorch
share."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hotloop.core.types import Array
from hotloop.lanes.flat import FlatParameters
from hotloop.lanes.guarded import At, guarded_step
from hotloop.lanes.policy_spec import PolicySpec, PolicyStats

NAMES = ("online", "mean", "square")


class PolicyAdam:
    """Owns the parameters and the optimiser's moments."""

    def __init__(self, spec: PolicySpec, network: nn.Module) -> None:
        self._spec = spec
        self.flat = FlatParameters(network)
        self.on_host = self.flat.values.device.type == "cpu"  # where a read is free
        self.moments = (torch.zeros_like(self.flat.values), torch.zeros_like(self.flat.values))

    def descend(self, loss: Tensor, at: At) -> tuple[Tensor, bool]:
        """One step down the gradient of `loss`: the gradient's norm before clipping, and whether the step was made."""
        self.flat.gradient.zero_()
        loss.backward()
        vectors = (self.flat.values, *self.moments)
        return guarded_step(self._spec, vectors, self.flat.gradient, loss.detach(), at, self.on_host)

    def parameters(self) -> Array:
        return self.flat.values.cpu().numpy().copy()

    def load_parameters(self, values: Array) -> None:
        self.flat.values.copy_(torch.from_numpy(values))

    def state(self) -> dict[str, Any]:
        vectors = zip(NAMES, (self.flat.values, *self.moments), strict=True)
        return {name: vector.cpu().numpy().copy() for name, vector in vectors}

    def load_state(self, state: dict[str, Any]) -> None:
        for name, vector in zip(NAMES, (self.flat.values, *self.moments), strict=True):
            vector.copy_(torch.from_numpy(np.asarray(state[name])))


def moved_too_far(spec: PolicySpec, epoch: list[Tensor]) -> bool:
    """Whether KL stops the epochs: one read from the device for each, and none where nothing is to be stopped."""
    if spec.kl_stop <= 0.0:
        return False
    return torch.stack(epoch)[:, PolicyStats.KL].mean().item() > spec.kl_stop
