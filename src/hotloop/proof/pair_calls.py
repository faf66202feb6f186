"""Calling two functions alike: each on a copy of the input of its own, from the same state of every generator.

What a call answered, what it raised, what became of its inputs; and the gradients of its answer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hotloop.core.extras import torch_if_loaded
from hotloop.proof.difference import LetPass, Tolerance, first_difference, size_of_all
from hotloop.proof.made_inputs import Arguments
from hotloop.proof.randomness import Generators
from hotloop.proof.values import copied, is_module, is_optimizer, is_tensor, leaves_of, parts_of

if TYPE_CHECKING:
    import torch
    from torch import nn

Function = Callable[..., Any]


@dataclass(frozen=True)
class CallAnswer:
    """Of one call: `error` is None where it returned."""

    result: Any = None
    error: str | None = None
    inputs: Any = None
    generators: dict[str, Any] = field(default_factory=dict)


def name_of(function: Any) -> str:
    """As its author calls it."""
    named = function if hasattr(function, "__qualname__") else getattr(function, "func", type(function))
    return str(getattr(named, "__qualname__", type(function).__name__)).replace("<locals>.", "")


class Calls:
    """Two functions ready to be called on the same input."""

    def __init__(self, plain: Function, fast: Function) -> None:
        self.plain, self.fast = plain, fast
        self.last_error = ""
        self._generators = Generators(plain, fast)
        self._names = _parameter_names(plain)

    def both(self, arguments: Arguments) -> tuple[CallAnswer, CallAnswer]:
        return self._answer(self.plain, arguments), self._answer(self.fast, arguments)

    def plain_repeats(self, arguments: Arguments) -> bool:
        one, other = self._answer(self.plain, arguments), self._answer(self.plain, arguments)
        return first_difference("", one.result, other.result) is None

    def _answer(self, function: Function, arguments: Arguments) -> CallAnswer:
        own = copied(arguments)
        called = _fresh(function)
        self._generators.reset()
        try:
            result = called(*own.positional, **own.named)
        except Exception as error:
            self.last_error = text_of(error)
            return CallAnswer(error=self.last_error)
        result = list(result) if inspect.isgenerator(result) else result
        return CallAnswer(result, None, self._named(own), self._generators.states())

    def _named(self, arguments: Arguments) -> dict[str, Any]:
        """Inputs by the names that the plain function has for them."""
        names = self._names + [f"argument {n}" for n in range(len(self._names), len(arguments.positional))]
        return dict(zip(names, arguments.positional, strict=False)) | arguments.named

    def may_have_gradients(self, arguments: Arguments) -> bool:
        return any(True for _ in _tensors(arguments)) or any(map(_module_of, (self.plain, self.fast)))

    def both_gradients(self, arguments: Arguments) -> tuple[CallAnswer, CallAnswer]:
        """The gradient of a fixed mixture of all outputs, by input and parameter; empty where nothing has any."""
        return self._gradients(self.plain, arguments), self._gradients(self.fast, arguments)

    def _gradients(self, function: Function, arguments: Arguments) -> CallAnswer:
        own, called = copied(arguments), _fresh(function)
        module = _module_of(called)
        leaves = dict(_asked_for(self._named(own), module is not None))
        for leaf in leaves.values():
            leaf.requires_grad_(True).grad = None
        leaves |= dict(module.named_parameters() if module else ())
        self._generators.reset()
        try:
            result = called(*own.positional, **own.named)
            outputs = [part for _, part in leaves_of(result) if is_tensor(part) and part.requires_grad]
            if not outputs:
                return CallAnswer({})
            for leaf in leaves.values():
                leaf.grad = None  # those of a backward of its own are compared as what became of the inputs
            torch_if_loaded().autograd.backward(
                outputs, [mixture(output, place) for place, output in enumerate(outputs)]
            )
        except Exception as error:
            return CallAnswer(error=text_of(error))
        return CallAnswer({name: leaf.grad for name, leaf in leaves.items()})

    @staticmethod
    def tolerance_of(gradients: dict[str, Any], value: float, let_pass: LetPass) -> Tolerance:
        """A gradient that vanishes but for rounding is as exact as the largest ones."""
        floor = size_of_all(one for one in gradients.values() if one is not None)
        return Tolerance(value, floor=floor, let_pass=let_pass)


def _asked_for(inputs: Any, has_module: bool) -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors whose gradient counts: those that require it, with parameters of networks; else all of floats."""
    found = [(_bare(path), leaf) for path, leaf in _tensors(inputs)]
    wanted = [(path, leaf) for path, leaf in found if leaf.requires_grad]
    return iter(wanted if wanted or has_module else found)


def _tensors(value: Any, path: str = "", seen: tuple[int, ...] = ()) -> Iterator[tuple[str, torch.Tensor]]:
    """Float tensors of a value; of networks the parameters themselves."""
    if is_module(value):
        yield from ((f"{path}.{name}", parameter) for name, parameter in value.named_parameters())
    elif is_tensor(value):
        if value.is_floating_point():
            yield path, value
    elif not is_optimizer(value) and id(value) not in seen:
        for name, part in parts_of(value) or ():
            yield from _tensors(part, path + name, (*seen, id(value)))


def _bare(path: str) -> str:
    """`['x'][0]` -> `x[0]`."""
    head, _, rest = path.removeprefix("['").partition("']")
    return head + rest if path.startswith("['") else path


def mixture(output: torch.Tensor, place: int) -> torch.Tensor:
    """Weights that are all different, so that no two errors cancel."""
    torch = torch_if_loaded()
    numbers = torch.arange(output.numel(), dtype=torch.float64) + 1.0
    return torch.cos(0.7 * numbers + place).reshape(output.shape).to(output.dtype)


def _fresh(function: Function) -> Function:
    """A network, or a method of one, is copied: no call sees what the one before left in its buffers."""
    if is_module(function):
        return copied(function)
    owner = getattr(function, "__self__", None)
    return getattr(copied(owner), function.__name__) if is_module(owner) else function


def _module_of(function: Any) -> nn.Module | None:
    owner = function if is_module(function) else getattr(function, "__self__", None)
    return owner if is_module(owner) else None


def _parameter_names(function: Any) -> list[str]:
    try:
        parameters = inspect.signature(function.forward if is_module(function) else function).parameters
    except (TypeError, ValueError):  # some of C have none
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [name for name, one in parameters.items() if one.kind in kinds]


def text_of(error: BaseException) -> str:
    text = " ".join(str(error).split()).partition(" Hint:")[0]
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
