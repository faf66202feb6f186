"""A module's forward followed from the observation on, operation by operation: what each tensor is made of.

At the level of PyTorch's basic operations `nn.Sequential`, attributes, `torch.relu` and `functional.linear` all look
alike. One forward is really run, so that a forward with `if x.dim() == 1` or `torch.as_tensor` can be followed too,
where `torch.fx` stops; one that decides by its numbers is told apart by its reading them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils._python_dispatch import TorchDispatchMode

SELU = (1.6732632423543772, 1.0507009873554805)
IN_WORDS = {
    "native_layer_norm": "layer normalization",
    "embedding": "an embedding",
    "elu": "an `elu`",
}
SAME_NUMBERS = {"view", "_unsafe_view", "reshape", "squeeze", "unsqueeze", "clone", "alias", "detach", "_to_copy"}
SAME_NUMBERS |= {"select", "expand"}
"""Operations that keep the numbers and their order, where they keep their count; a sum may expand a value."""


class Unreadable(Exception):
    """Why a module is no plain multilayer network, as the end of a sentence that begins with "the network"."""


class Layer(NamedTuple):
    """A linear layer, by the names of its parameters."""

    weight: str
    bias: str = ""


class Weight(NamedTuple):
    name: str


class Chain(NamedTuple):
    """Layers and activations between the observation and here: `Layer`s and names, in order."""

    steps: tuple[Layer | str, ...]


class MeanOf(NamedTuple):
    """The mean over the last axis."""

    chain: Chain


class Sum(NamedTuple):
    """Chains and means, each so many times."""

    terms: frozenset[tuple[Chain | MeanOf, int]]


class Unknown(NamedTuple):
    """Anything else; it matters only where it reaches an output."""

    reason: str


Value = Weight | Chain | MeanOf | Sum | Unknown


def refuse_by_kind(module: nn.Module) -> None:
    """What is told sooner, or in better words, by its class than by its operations."""
    for name, part in module.named_modules():
        kind = f"`{name or type(part).__name__}`"
        if any((part._forward_hooks, part._forward_pre_hooks, part._backward_hooks, part._backward_pre_hooks)):
            raise Unreadable(f"has hooks (on {kind}), which need PyTorch to call them")
        if isinstance(part, nn.modules.conv._ConvNd):
            raise Unreadable(f"has a convolution ({kind})")
        if isinstance(part, nn.modules.dropout._DropoutNd):
            raise Unreadable(f"has dropout ({kind})")
        if isinstance(part, nn.modules.batchnorm._NormBase):
            raise Unreadable(f"has batch normalization ({kind})")


class OperationRecorder(TorchDispatchMode):
    """Follows every operation from the observation on, and says of each tensor what it is."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch imports its compiler, 1.5 s, only to leave this class out of it

    def __init__(self, known: dict[Tensor, Value]) -> None:
        super().__init__()
        self._known: dict[int, Value] = {id(tensor): value for tensor, value in known.items()}
        self._alive: list[Any] = list(known)  # an id is a tensor's as long as it lives

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = operation(*args, **(kwargs or {}))
        given = [self._of_argument(one, operation) for one in args]
        if any(one is not None for one in given):
            value = _value(operation._opname.rstrip("_"), args, kwargs or {}, given, result)
            self._alive.append(result)
            for one in result if isinstance(result, tuple) else (result,):
                self._known[id(one)] = value
        return result

    def _of_argument(self, argument: Any, operation: Any) -> Value | None:
        """Tensors in a list, as `cat` takes them, are nothing that layers would need."""
        if isinstance(argument, list | tuple) and any(id(one) in self._known for one in argument):
            return Unknown(f"has `{operation._opname}` in its forward")
        return self._known.get(id(argument))

    def of(self, output: Any) -> Value:
        value = self._known.get(id(output), Unknown("has an output that does not come from the observation by layers"))
        if isinstance(value, Unknown):
            raise Unreadable(value.reason)
        return value


def random_obs(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Whatever dtype and device are the user's defaults."""
    return torch.randn(shape, generator=generator, dtype=torch.float32, device="cpu")


def trace_outputs(module: nn.Module, obs_shape: tuple[int, ...]) -> list[Value]:
    """What each output is. In training mode: what happens there only must show."""
    obs = random_obs((3, *obs_shape), torch.Generator().manual_seed(1))
    known: dict[Tensor, Value] = {parameter: Weight(name) for name, parameter in module.named_parameters()}
    buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}  # a forward may count in them
    recorder = OperationRecorder(known | {obs: Chain(())})
    try:
        with torch.no_grad(), in_mode(module, training=True), recorder:
            outputs = functional_call(module, buffers, (obs,))
    except Unreadable:
        raise
    except Exception as error:
        said = str(error).strip().partition("\n")[0] or type(error).__name__
        raise Unreadable(f"does not take observations of shape {obs_shape} ({said})") from error
    return [recorder.of(one) for one in ([outputs] if isinstance(outputs, Tensor) else outputs)]


def _value(name: str, args: Any, kwargs: Any, given: list[Value | None], result: Any) -> Value:
    if name == "_local_scalar_dense":
        raise Unreadable("has a forward that looks at its numbers (`if`, `item`)")
    for one in given:
        if isinstance(one, Unknown):
            return one
    found = _linear(name, given) or _activated(name, args, given) or _joined(name, args, kwargs, given)
    kept = name in SAME_NUMBERS and given[0] is not None
    if found is None and kept and (name == "expand" or result.numel() == args[0].numel()):
        return given[0]  # type: ignore[return-value]
    return found or Unknown(f"has {IN_WORDS.get(name, f'`{name}` in its forward')}")


def _linear(name: str, given: list[Value | None]) -> Value | None:
    """`addmm(bias, x, W^T)`, `mm(x, W^T)` and a bias added to the latter; a weight counts as transposed by `t`."""
    match name, given:
        case ("t" | "transpose" | "permute", [Weight(weight), *_]):
            return Weight(f"{weight}^T")
        case "addmm", [Weight(bias), Chain(steps), Weight(weight)] if weight.endswith("^T"):
            return Chain((*steps, Layer(weight[:-2], bias)))
        case "mm", [Chain(steps), Weight(weight)] if weight.endswith("^T"):
            return Chain((*steps, Layer(weight[:-2])))
        case "add", [Chain((*steps, Layer(weight, ""))), Weight(bias)]:
            return Chain((*steps, Layer(weight, bias)))
        case "add", [Weight(bias), Chain((*steps, Layer(weight, "")))]:
            return Chain((*steps, Layer(weight, bias)))
    return None


def _activated(name: str, args: Any, given: list[Value | None]) -> Value | None:
    if name not in ("relu", "tanh", "elu", "leaky_relu") or not isinstance(given[0], Chain):
        return None
    if (name == "elu" and args[1:] != SELU) or (name == "leaky_relu" and args[1:] not in ((), (0.01,))):
        return None  # other constants than the native lane's
    return Chain((*given[0].steps, "selu" if name == "elu" else name))


def _joined(name: str, args: Any, kwargs: Any, given: list[Value | None]) -> Value | None:
    """Sums, differences and means, as dueling heads make them."""
    if name == "mean" and isinstance(given[0], Chain):
        return MeanOf(given[0]) if len(args) > 1 and list(args[1]) in ([-1], [args[0].ndim - 1]) else None
    if name in ("add", "sub") and not kwargs and len(given) == 2:
        total: Counter[Chain | MeanOf] = Counter()
        for sign, part in zip((1, 1 if name == "add" else -1), given, strict=True):
            if not isinstance(part, Chain | MeanOf | Sum):
                return None
            for term, count in part.terms if isinstance(part, Sum) else [(part, 1)]:
                total[term] += sign * count
        return Sum(frozenset((term, count) for term, count in total.items() if count))
    return None


@contextmanager
def in_mode(module: nn.Module, training: bool) -> Iterator[None]:
    """All of a module in training or evaluation mode, each part afterwards as it was."""
    parts = [part for part in module.modules() if part.training != training]
    for part in parts:
        object.__setattr__(part, "training", training)  # a module's own way looks for parameters first, 2 us each
    try:
        yield
    finally:
        for part in parts:
            object.__setattr__(part, "training", not training)
