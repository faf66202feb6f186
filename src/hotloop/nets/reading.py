"""A user's module read as a plain multilayer network: what its forward computes, whichever way it is written.

`tracing.py` says what each output is made of; whatever is not a chain of linear layers with one activation is named
instead. What was read is then held against the module itself on random observations, numbers and gradients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from hotloop.nets.actor_critic import ActorCriticLayout
from hotloop.nets.tracing import (
    Chain,
    Layer,
    MeanOf,
    Sum,
    Unreadable,
    Value,
    in_mode,
    random_obs,
    refuse_by_kind,
    trace_outputs,
)
from hotloop.presets.network_settings import MLPLayout

FORWARDS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "selu": functional.selu,
    "leaky_relu": functional.leaky_relu,
}
"""The activations that the native lane has."""


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
        refuse_by_kind(module)
        layout, heads, order = make_layout(module, trace_outputs(module, obs_shape), torch.Size(obs_shape).numel())
        _require_all_once(module, order, apart)
        _verify(module, heads, obs_shape)
    except Unreadable as problem:
        return Reading(None, reason=f"the network {problem}")
    return Reading(layout, order)


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
    value, advantage = _dueling(outputs[0])
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


def _dueling(output: Value) -> tuple[Value | None, Value]:
    """Value and advantages of V + A - mean A; None and the output where it is no sum."""
    if not isinstance(output, Sum):
        return None, output
    terms = dict(output.terms)
    means = [term for term in terms if isinstance(term, MeanOf)]
    if len(means) == 1 and len(terms) == 3:
        advantage = means[0].chain
        value = next(term for term in terms if term not in (means[0], advantage))
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
        obs = scale * random_obs((rows, *obs_shape), generator)
        with torch.enable_grad(), in_mode(module, training):
            answers = module(obs)
            theirs = [answers] if isinstance(answers, Tensor) else list(answers)
            _require_same(module, theirs, _recompute(module, heads, obs, len(theirs)), generator)


def _require_same(module: nn.Module, theirs: list[Tensor], ours: list[Tensor], generator: torch.Generator) -> None:
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    weights = [random_obs(tuple(one.shape), generator) for one in ours]
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
