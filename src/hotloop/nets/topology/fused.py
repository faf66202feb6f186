"""The whole graph as one operation of autograd, on a CPU."""

from __future__ import annotations

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
