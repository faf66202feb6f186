"""A short training of two networks side by side: gradients at every optimizer step, parameters and buffers after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from hotloop.proof.difference import Difference, LetPass, Tolerance, first_difference, size_of_all
from hotloop.proof.pair_calls import mixture, text_of
from hotloop.proof.randomness import SEED, seed_library
from hotloop.proof.values import copied, leaves_of

State = dict[str, Tensor]
Mapping = Callable[[State], State]
MOVE = 0.01
"""Of the parameters' length, that the first optimizer step moves them by."""


class _Training:
    """A copy of a network under gradient descent on a fixed mixture of its outputs."""

    def __init__(self, module: nn.Module, arguments: tuple[Any, ...]) -> None:
        self.module, self._arguments = copied(module), arguments
        self.error: str | None = None

    def backward(self, number: int) -> None:
        self.module.zero_grad(set_to_none=True)
        seed_library(SEED + number)
        own = copied(self._arguments)
        inputs = [one.requires_grad_() for one in own if isinstance(one, Tensor) and one.is_floating_point()]
        try:
            answer = self.module(*own)
            outputs = [part for _, part in leaves_of(answer) if isinstance(part, Tensor) and part.requires_grad]
            torch.autograd.backward(outputs, [mixture(output, place) for place, output in enumerate(outputs)])
        except Exception as error:
            self.error = text_of(error)
        self.of_inputs = [one.grad for one in inputs]

    def gradients(self) -> State:
        """By name, zeros for whatever has none."""
        own = {name: parameter.grad for name, parameter in self.module.named_parameters(remove_duplicate=False)}
        state = self.module.state_dict()
        return {name: torch.zeros_like(value) if own.get(name) is None else own[name] for name, value in state.items()}

    def rate(self) -> float:
        """A step length that fits the network, whatever its size and its outputs."""
        parameters = [parameter for parameter in self.module.parameters() if parameter.grad is not None]
        length = float(sum(parameter.detach().double().square().sum() for parameter in parameters)) ** 0.5
        slope = float(sum(parameter.grad.double().square().sum() for parameter in parameters)) ** 0.5
        return MOVE * (length or 1.0) / slope if slope > 0 else 0.0

    def step(self, rate: float) -> None:
        with torch.no_grad():
            for parameter in self.module.parameters():
                if parameter.grad is not None:
                    parameter -= rate * parameter.grad


def training_difference(
    modules: tuple[nn.Module, nn.Module],
    arguments: tuple[Any, ...],
    steps: int,
    mapping: Mapping,
    tolerance: float,
    let_pass: LetPass,
) -> Difference | None:
    """The first of `steps` optimizer steps at which gradients, parameters or buffers differ, by the fast's names."""
    plain, fast = (_Training(module, arguments) for module in modules)
    for number in range(1, steps + 1):
        for training in (plain, fast):
            training.backward(number)
        if plain.error is not None or fast.error is not None:
            said = plain.error or "has gradients", fast.error or "has gradients"
            both = plain.error is not None and fast.error is not None
            return None if both else Difference("gradients", "raised", *said, when=f"at optimizer step {number}")
        allowed = Tolerance(tolerance * number, let_pass=let_pass)
        found = _of_states("gradient of {}", plain.gradients(), (fast, fast.gradients()), mapping, allowed)
        found = found or first_difference("gradient of inputs", plain.of_inputs, fast.of_inputs, allowed)
        if found is not None:
            return found.at(f"at optimizer step {number}")
        rate = plain.rate()
        for training in (plain, fast):
            training.step(rate)
        found = _of_states("{}", plain.module.state_dict(), (fast, fast.module.state_dict()), mapping, allowed)
        if found is not None:
            return found.at(f"after optimizer step {number}")
    return None


def _of_states(
    what: str, plain: State, fast: tuple[_Training, State], mapping: Mapping, tolerance: Tolerance
) -> Difference | None:
    """What is trained is measured together; a buffer by itself, since it may hold a mask."""
    mapped = mapping({name: tensor.clone() for name, tensor in plain.items()})
    trained = {name for name, _ in fast[0].module.named_parameters(remove_duplicate=False)}
    together = replace(tolerance, floor=size_of_all(one for name, one in mapped.items() if name in trained))
    for name, tensor in fast[1].items():
        allowed = together if name in trained else tolerance
        if found := first_difference(what.format(name), mapped.get(name), tensor, allowed):
            return found
    return None
