"""A policy's parameters and its optimizer's moments in flat vectors, which torch's own objects are views of.

So nothing has to be carried over before a model is saved, evaluated or trained by somebody else: `policy.state_dict()`
and `policy.optimizer.state_dict()` are true at any time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from hotloop.core.errors import ArgumentError, NonFiniteError
from hotloop.core.types import Array
from hotloop.lanes.optimizer import FlatParameters
from hotloop.learners.own_network import Sharing
from hotloop.nets.given_network import SharedNetwork

ACTED_TOGETHER = 256
"""Observations that are acted on in machine code at once; of more, torch's own threads make better use."""


class Home(NamedTuple):
    """Vectors [P] that the memory is to be, where kernels want several networks side by side."""

    online: Array
    mean: Array
    square: Array
    target: Array


class SharedMemory:
    """`online` [P] is the network's, `target` [P] its slowly moving copy's (or empty), `moments` are Adam's two."""

    def __init__(
        self,
        network: SharedNetwork,
        optimizer: torch.optim.Optimizer,
        target: SharedNetwork | None,
        home: Home | None = None,
    ) -> None:
        self.optimizer, self._state = optimizer, optimizer.state
        self._parameters, self._home = list(network.parameters()), home
        self.online_tensor = _flattened(network, home.online if home else None)
        self.target_tensor = torch.zeros(0) if target is None else _flattened(target, home.target if home else None)
        self._sharing = Sharing("policy", network.network)
        every = self._parameters + ([] if target is None else list(target.parameters()))
        self._every, self._addresses = every, [parameter.data_ptr() for parameter in every]
        self.online: Array = self.online_tensor.numpy()
        self.target: Array = self.target_tensor.numpy()
        mean, square, steps = self._adopt_moments()
        self.moments: tuple[Array, Array] = (mean.numpy(), square.numpy())
        self._steps: Array = steps.numpy()
        self._first_state = self._state[self._parameters[0]]

    def _adopt_moments(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Adam's state as views: flat moments, and a step count for each parameter, as torch keeps it."""
        home, zeros = self._home, self.online_tensor.numpy() * np.float32(0)
        mean, square = map(torch.from_numpy, (home.mean, home.square) if home else (zeros, zeros.copy()))
        steps, start = torch.zeros(len(self._parameters)), 0
        for place, parameter in enumerate(self._parameters):
            kept = {"step": steps[place]}
            for name, vector in (("exp_avg", mean), ("exp_avg_sq", square)):
                kept[name] = vector[start : start + parameter.numel()].view_as(parameter)
            for name, tensor in self._state.get(parameter, {}).items():
                kept[name].copy_(tensor)
            self._state[parameter] = kept
            start += parameter.numel()
        return mean, square, steps

    @property
    def count(self) -> int:
        """Optimizer steps made so far."""
        return int(self._steps[0])

    def advance(self, updates: int) -> None:
        self._steps += updates

    def is_shared(self, optimizer: torch.optim.Optimizer) -> bool:
        """Whether torch's objects still are the views they were, and none was replaced or frozen."""
        if optimizer is not self.optimizer or optimizer.state is not self._state:
            return False
        if self._state.get(self._parameters[0]) is not self._first_state:
            return False
        try:
            self._sharing.require()
        except ArgumentError:
            return False
        return self.is_in_place()

    def is_in_place(self) -> bool:
        """The same of the parameters' addresses alone, which is all that acting needs."""
        return [parameter.data_ptr() for parameter in self._every] == self._addresses


def _flattened(network: nn.Module, home: Array | None) -> torch.Tensor:
    flat = FlatParameters(network)
    if home is not None:
        home[:] = flat.values.numpy()
        flat.values = torch.from_numpy(home)
        flat.attach()
    for parameter in network.parameters():
        parameter.grad = None  # machine code has no use for it, and a later `backward` begins afresh
    return flat.values


def steps_made(optimizer: torch.optim.Optimizer) -> int:
    """Of its first parameter, and of all where there is no `steps_problem`."""
    state = next(iter(optimizer.state.values()), None)
    return 0 if state is None else int(state["step"])


def steps_problem(optimizer: torch.optim.Optimizer) -> str:
    """Why these steps cannot be counted by one number; empty where they can."""
    counts = {float(state["step"]) for state in optimizer.state.values() if "step" in state}
    held = len(optimizer.state) in (0, sum(len(group["params"]) for group in optimizer.param_groups))
    return "" if held and len(counts) <= 1 else "its optimizer has not stepped all parameters equally often"


def not_finite(update: int) -> NonFiniteError:
    """What stops a model of which an update was not made."""
    return NonFiniteError(
        f"update {update} has a loss or gradient that is not finite; it was not made",
        "look for NaN in observations and rewards, or take a smaller learning rate",
    )


def as_float_rows(obs: Array, leading: int) -> Array:
    """[..., F] float32 after `leading` axes, as Stable-Baselines3's `obs.float()` and its `Flatten` give them."""
    return np.ascontiguousarray(obs.reshape(*obs.shape[:leading], -1), np.float32)
