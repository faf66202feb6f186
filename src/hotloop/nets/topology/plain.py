"""The same network node by node in PyTorch: for other devices, torch.compile and second derivatives."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from hotloop.nets.topology.graph import Topology
from hotloop.nets.topology.topology_kernels import LEAK, LEAKY_RELU, TANH


def plain_values(obs: Tensor, weight: Tensor, bias: Tensor, graph: Topology, codes: list[int]) -> list[Tensor]:
    """The value [B] of every node by position.

    A list of rows, never rows written into one tensor: autograd refuses the backward of a tensor that was changed after
    its rows were read.
    """
    values = list(obs.unbind(-1))
    starts, sources = graph.starts.tolist(), graph.sources.tolist()
    weights, biases = weight.split([end - start for start, end in zip(starts, starts[1:], strict=False)]), bias.unbind()
    for i, code in enumerate(codes):
        before = [values[source] for source in sources[starts[i] : starts[i + 1]]]
        total = weights[i] @ torch.stack(before) if before else torch.zeros_like(obs[..., 0])
        values.append(_activate(total + biases[i], code))
    return values


def plain_forward(obs: Tensor, weight: Tensor, bias: Tensor, graph: Topology, codes: list[int]) -> Tensor:
    """[B, I] -> [B, O]."""
    values = plain_values(obs, weight, bias, graph, codes)
    return torch.stack([values[position] for position in graph.output_positions.tolist()], -1)


def _activate(total: Tensor, code: int) -> Tensor:
    if code == LEAKY_RELU:
        return functional.leaky_relu(total, LEAK)
    return torch.tanh(total) if code == TANH else total
