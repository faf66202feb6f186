"""The whole graph as one operation of autograd, on a CPU.

Parameters by name: the weight of an edge, the bias of a node.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, MutableMapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hotloop.core.types import Array
from hotloop.nets.topology.graph import Topology, TopologyError
from hotloop.nets.topology.topology_kernels import backward_kernel, forward_kernel

DTYPES = {torch.float32: np.float32, torch.float64: np.float64}


class Wiring:
    """What the kernels need to know of a graph."""

    def __init__(self, graph: Topology, codes: Array) -> None:
        self.sizes = (len(graph.nodes), len(graph.inputs), len(graph.outputs))
        self.arrays = (graph.starts, graph.sources, codes, graph.output_positions)

    def __deepcopy__(self, memo: Any) -> Wiring:
        return self  # nothing in it changes


def fused_forward(obs: Tensor, weight: Tensor, bias: Tensor, wiring: Wiring) -> Tensor:
    """[B, I] -> [B, O], differentiable once."""
    if torch.is_grad_enabled() and (weight.requires_grad or bias.requires_grad or obs.requires_grad):
        return _WholeGraph.apply(obs, weight, bias, wiring)
    return compute(obs, _array(weight), bias, wiring)[0]


def compute(obs: Tensor, weight: Array, bias: Tensor, wiring: Wiring) -> tuple[Tensor, Array]:
    """The outputs [B, O], and the values of all nodes [V, B] by position."""
    (nodes, _, outputs), rows, dtype = wiring.sizes, len(obs), weight.dtype
    values, out = np.empty((nodes, rows), dtype), np.empty((rows, outputs), dtype)
    forward_kernel(_array(obs), weight, _array(bias), *wiring.arrays, values, out)
    return torch.from_numpy(out), values


def all_values(obs: Tensor, weight: Tensor, bias: Tensor, wiring: Wiring) -> Tensor:
    """The values of all nodes [V, B]."""
    return torch.from_numpy(compute(obs, _array(weight), bias, wiring)[1])


def _array(tensor: Tensor) -> Array:
    """The tensor's own memory where it is contiguous."""
    return (tensor if tensor.is_contiguous() else tensor.contiguous()).detach().numpy()


class _WholeGraph(torch.autograd.Function):
    """All values stay with the graph until the backward: the slopes follow from them."""

    @staticmethod
    def forward(ctx: Any, obs: Tensor, weight: Tensor, bias: Tensor, wiring: Wiring) -> Tensor:
        array = _array(weight)
        out, values = compute(obs, array, bias, wiring)
        ctx.kept = (array, wiring, values)
        ctx.save_for_backward(weight)  # only so that a weight changed in between is noticed
        return out

    @staticmethod
    def backward(ctx: Any, out_gradient: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # `create_graph`; torch's own decorator for this costs a third of the backward
            raise TopologyError("machine code has no second derivative", "`fused=False` has one")
        _ = ctx.saved_tensors
        weight, wiring, values = ctx.kept
        nodes, inputs, _ = wiring.sizes
        of_nodes, of_weight = np.empty(values.shape, values.dtype), np.empty(len(weight), values.dtype)
        of_bias = np.empty(nodes - inputs, values.dtype)
        backward_kernel(weight, *wiring.arrays, values, _array(out_gradient), of_nodes, of_weight, of_bias)
        of_obs = torch.from_numpy(of_nodes[:inputs].T.copy()) if ctx.needs_input_grad[0] else None
        return of_obs, torch.from_numpy(of_weight), torch.from_numpy(of_bias), None


class ParameterView(MutableMapping[Any, float]):
    """A dict over one parameter's numbers that reads from and writes to the parameter itself."""

    def __init__(self, parameter: Tensor, places: Mapping[Hashable, int], what: str) -> None:
        self._parameter = parameter
        self._places = places
        self._what = what

    def __getitem__(self, key: Hashable) -> float:
        return self._parameter[self._place(key)].item()

    def __setitem__(self, key: Hashable, value: float | Tensor) -> None:
        number = as_number(value)
        with torch.no_grad():
            self._parameter[self._place(key)] = number

    def __delitem__(self, key: Hashable) -> None:
        raise TopologyError(f"the {self._what} of {key!r} cannot be removed", "set it to 0, or make another graph")

    def __iter__(self) -> Iterator[Any]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return repr(dict(self))

    def _place(self, key: Hashable) -> int:
        try:
            return self._places[key]
        except KeyError:
            raise TopologyError(f"there is no {self._what} of {key!r}", self._hint(key)) from None

    def _hint(self, key: Hashable) -> str:
        if isinstance(key, tuple) and key[::-1] in self._places:
            return f"there is an edge {key[1]!r} -> {key[0]!r}: keys are (source, target)"
        same_text = [other for other in self._places if str(other) == str(key)]
        return f"did you mean {same_text[0]!r}?" if same_text else "`to_networkx()` shows what there is"


def as_number(value: Any) -> float:
    return value.item() if isinstance(value, Tensor) else float(value)


def names_of(graph: Topology) -> dict[str, tuple[str, int]]:
    """Name -> ("weight" or "bias", place): "source_to_target" for edges, the id as text for nodes."""
    named = [(f"{source}_to_{target}", "weight", place) for place, (source, target) in enumerate(graph.edges())]
    named += [(str(node), "bias", place) for place, node in enumerate(graph.computed)]
    names: dict[str, tuple[str, int]] = {}
    for name, kind, place in named:
        if name in names:
            raise TopologyError(f"two parts of the graph are called `{name}`", "give its nodes ids that differ as text")
        names[name] = (kind, place)
    return names


def plain_name(key: str) -> str:
    """`weights.0_to_4` and `biases.4`, as a module of parameter dictionaries saves them, without the dictionary."""
    for prefix in ("weights.", "biases."):
        if key.startswith(prefix):
            return key[len(prefix) :]
    return key
