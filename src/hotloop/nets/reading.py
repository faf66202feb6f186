"""A user's module read as a plain multilayer network: what its forward computes, whichever way it is written.

One forward is followed down to PyTorch's basic operations, where `nn.Sequential`, attributes, `torch.relu` and
`functional.linear` all look alike; whatever is not a chain of linear layers with one activation is named instead. What
was read is then held against the module itself on random observations, numbers and gradients. (`torch.fx` would follow
names, not numbers: a forward with `if x.dim() == 1` or `torch.as_tensor` stops it.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from hotloop.nets.actor_critic import ActorCriticLayout
from hotloop.nets.settings import MLPLayout

SELU = (1.6732632423543772, 1.0507009873554805)
FORWARDS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "selu": functional.selu,
    "leaky_relu": functional.leaky_relu,
    "gelu": functional.gelu,
}
"""The activations that the native lane has."""
IN_WORDS = {
    "native_layer_norm": "layer normalisation",
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


@dataclass(frozen=True)
class Reading:
    """What a module turned out to be; `layout` is None where it is nothing that the native lane knows."""

    layout: MLPLayout | ActorCriticLayout | None
    order: tuple[str, ...] = ()
    """The parameters' names in the order of the layout."""
    reason: str = ""
    """Why there is no layout."""


def read_q_network(module: nn.Module, obs_shape: tuple[int, ...]) -> Reading:
    """obs [B, ...] -> Q [B, A]: a multilayer network, or one with a dueling head."""
    return _read(module, obs_shape, _q_layout, ())


def read_actor_critic(module: nn.Module, obs_shape: tuple[int, ...], log_std: str = "") -> Reading:
    """obs [B, ...] -> (outputs [B, O], values [B] or [B, 1]), on one torso or two; `log_std` names a parameter that
    the layers do not use."""
    return _read(module, obs_shape, _actor_critic_layout, (log_std,) if log_std else ())


def _read(
    module: nn.Module, obs_shape: tuple[int, ...], make_layout: Callable[..., Any], apart: tuple[str, ...]
) -> Reading:
    try:
        _refuse_by_kind(module)
        layout, heads, order = make_layout(module, _trace(module, obs_shape), torch.Size(obs_shape).numel())
        _require_all_once(module, order, apart)
        _verify(module, heads, obs_shape)
    except Unreadable as problem:
        return Reading(None, reason=f"the network {problem}")
    return Reading(layout, order)


def _refuse_by_kind(module: nn.Module) -> None:
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
            raise Unreadable(f"has batch normalisation ({kind})")


class Recorder(TorchDispatchMode):
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
        given = [self._known.get(id(one)) for one in args]
        if any(one is not None for one in given):
            value = _value(operation._opname.rstrip("_"), args, kwargs or {}, given, result)
            self._alive.append(result)
            for one in result if isinstance(result, tuple) else (result,):
                self._known[id(one)] = value
        return result

    def of(self, output: Any) -> Value:
        value = self._known.get(id(output), Unknown("has an output that does not come from the observation by layers"))
        if isinstance(value, Unknown):
            raise Unreadable(value.reason)
        return value


def _trace(module: nn.Module, obs_shape: tuple[int, ...]) -> list[Value]:
    """What each output is. In training mode: what happens there only must show."""
    obs = torch.randn(3, *obs_shape, generator=torch.Generator().manual_seed(1))
    known: dict[Tensor, Value] = {parameter: Weight(name) for name, parameter in module.named_parameters()}
    buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}  # a forward may count in them
    recorder = Recorder(known | {obs: Chain(())})
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
    found = _linear(name, given) or _activated(name, args, kwargs, given) or _joined(name, args, kwargs, given)
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


def _activated(name: str, args: Any, kwargs: Any, given: list[Value | None]) -> Value | None:
    if name not in ("relu", "tanh", "elu", "leaky_relu", "gelu") or not isinstance(given[0], Chain):
        return None
    if (name == "elu" and args[1:] != SELU) or (name == "leaky_relu" and args[1:] not in ((), (0.01,))) or kwargs:
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


def _hidden(chain: Value, what: str) -> tuple[tuple[Layer, ...], str]:
    """The layers of a chain that ends with one, and the activation after each but the last."""
    if not isinstance(chain, Chain) or not chain.steps:
        raise Unreadable(f"has {what} that is no linear layer's")
    if not isinstance(chain.steps[-1], Layer):
        raise Unreadable(f"ends with an activation (`{chain.steps[-1]}`)")
    layers, between = chain.steps[::2], chain.steps[1::2]
    if not all(isinstance(step, Layer) for step in layers) or not all(isinstance(step, str) for step in between):
        raise Unreadable("has layers without an activation between them, or several at once")
    if len(set(between)) > 1:
        raise Unreadable(f"has several activations ({', '.join(sorted({str(step) for step in between}))})")
    for layer in layers:
        assert isinstance(layer, Layer)
        if not layer.bias:
            raise Unreadable(f"has a layer without a bias (`{layer.weight}`)")
    return layers, str(between[0]) if between else "relu"  # type: ignore[return-value]


def _q_layout(module: nn.Module, outputs: list[Value], obs_size: int) -> tuple[MLPLayout, Any, tuple[str, ...]]:
    if len(outputs) != 1:
        raise Unreadable(f"gives {len(outputs)} tensors")
    sizes = {name: tuple(parameter.shape) for name, parameter in module.named_parameters()}
    value, advantage = _dueling(outputs[0], sizes)
    layers, activation = _hidden(advantage, "an output")
    heads = layers[-1:]
    if value is not None:
        value_layers, _ = _hidden(value, "a value")
        if value_layers[:-1] != layers[:-1]:
            raise Unreadable("has hidden layers of its own in the value or advantage stream")
        heads = (value_layers[-1], layers[-1])
    hidden = tuple(sizes[layer.weight][0] for layer in layers[:-1])
    layout = MLPLayout(obs_size, hidden, activation, value is not None, sizes[layers[-1].weight][0], 1)
    return layout, (value, advantage), _names((*layers[:-1], *heads))


def _dueling(output: Value, sizes: dict[str, tuple[int, ...]]) -> tuple[Value | None, Value]:
    """Value and advantages of V + A - mean A; None and the output where it is no sum."""
    if not isinstance(output, Sum):
        return None, output
    terms = dict(output.terms)
    means = [term for term in terms if isinstance(term, MeanOf)]
    if len(means) == 1 and len(terms) == 3:
        advantage = means[0].chain
        (value,) = [term for term in terms if term not in (means[0], advantage)] or [None]
        if isinstance(value, Chain) and (terms[value], terms.get(advantage), terms[means[0]]) == (1, 1, -1):
            return value, advantage
    raise Unreadable("has a sum of layers that is no dueling head (value + advantage - mean)")


def _actor_critic_layout(
    module: nn.Module, outputs: list[Value], obs_size: int
) -> tuple[ActorCriticLayout, Any, tuple[str, ...]]:
    if len(outputs) != 2:
        raise Unreadable(f"gives {len(outputs)} tensors")
    sizes = {name: tuple(parameter.shape) for name, parameter in module.named_parameters()}
    policy, activation = _hidden(outputs[0], "a policy")
    value, other = _hidden(outputs[1], "a value")
    hidden, value_hidden = ([sizes[layer.weight][0] for layer in layers[:-1]] for layers in (policy, value))
    shared = bool(hidden) and policy[:-1] == value[:-1]
    if not shared and set(policy) & set(value):
        raise Unreadable("shares only a part of its hidden layers between policy and value")
    if hidden != value_hidden or (hidden and activation != other):
        raise Unreadable(f"has other hidden layers for its policy ({hidden}) than for its value ({value_hidden})")
    layout = ActorCriticLayout(obs_size, tuple(hidden), activation, shared)
    order = (*policy[:-1], value[-1], policy[-1]) if shared else (*policy, *value)
    return layout, tuple(outputs), _names(order)


def _names(layers: Sequence[Layer]) -> tuple[str, ...]:
    return tuple(name for layer in layers for name in layer)


def _require_all_once(module: nn.Module, order: tuple[str, ...], apart: tuple[str, ...]) -> None:
    for name, count in Counter(order).items():
        if count > 1:
            raise Unreadable(f"uses a layer twice (`{name}`)")
    for name, _ in module.named_parameters():
        if name not in order and name not in apart:
            raise Unreadable(f"has a parameter that its forward does not use as a layer (`{name}`)")


def _verify(module: nn.Module, heads: tuple[Value | None, Value], obs_shape: tuple[int, ...]) -> None:
    """The module against what was read of it: outputs and gradients of random observations, in both modes."""
    generator = torch.Generator().manual_seed(0)
    for rows, scale, training in ((1, 1.0, True), (33, 1.0, False), (16, 10.0, True)):
        obs = scale * torch.randn(rows, *obs_shape, generator=generator)
        with torch.enable_grad(), in_mode(module, training):
            answers = module(obs)
            theirs = [answers] if isinstance(answers, Tensor) else list(answers)
            _require_same(module, theirs, _recompute(module, heads, obs, len(theirs)), generator)


def _require_same(module: nn.Module, theirs: list[Tensor], ours: list[Tensor], generator: torch.Generator) -> None:
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    weights = [torch.randn(one.shape, generator=generator) for one in ours]
    for one, other in zip(theirs, ours, strict=True):
        if one.numel() != other.numel() or not _close(one.reshape(other.shape), other):
            raise Unreadable("computes something else than its layers do")
    gradients = []
    for answers in (theirs, ours) if parameters else ():
        total = sum((one.reshape(weight.shape) * weight).sum() for one, weight in zip(answers, weights, strict=True))
        gradients.append(torch.autograd.grad(total, parameters, allow_unused=True))  # type: ignore[arg-type]
    for left, right in zip(*gradients, strict=True) if gradients else ():
        if (left is None) != (right is None) or (left is not None and not _close(left, right)):
            raise Unreadable("stops or changes gradients in its forward (`detach`, `no_grad`?)")


def _close(one: Tensor, other: Tensor) -> bool:
    """To float32's reassociation, relative to the largest number."""
    return torch.allclose(one, other, rtol=1e-4, atol=1e-5 * max(1.0, float(other.detach().abs().max())))


def _recompute(module: nn.Module, heads: tuple[Value | None, Value], obs: Tensor, count: int) -> list[Tensor]:
    """The outputs by what was read alone."""
    tensors = dict(module.named_parameters())

    def run(chain: Any) -> Tensor:
        x = obs.reshape(len(obs), -1)
        for step in chain.steps:
            x = FORWARDS[step](x) if isinstance(step, str) else functional.linear(x, *(tensors[name] for name in step))
        return x

    if count == 2:
        return [run(head) for head in heads]
    value, advantage = heads[0], run(heads[1])
    return [advantage if value is None else run(value) + advantage - advantage.mean(-1, keepdim=True)]


@contextmanager
def in_mode(module: nn.Module, training: bool) -> Iterator[None]:
    """All of a module in training or evaluation mode, each part afterwards as it was."""
    parts = [part for part in module.modules() if part.training != training]
    for part in parts:
        part.training = training
    try:
        yield
    finally:
        for part in parts:
            part.training = not training
