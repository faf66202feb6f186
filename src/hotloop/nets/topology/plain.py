"""The same network node by node in PyTorch: for other devices, torch.compile and second derivatives."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from hotloop.nets.topology.graph import Topology
from hotloop.nets.topology.topology_kernels import LEAK, LEAKY_RELU, TANH


class Plan:
    """The graph as plain lists, which torch.compile can look into."""

    def __init__(self, graph: Topology, codes: list[int]) -> None:
        starts, sources = graph.starts.tolist(), graph.sources.tolist()
        self.rows: list[list[int]] = [sources[start:end] for start, end in zip(starts, starts[1:], strict=False)]
        self.widths = [len(row) for row in self.rows]
        self.codes = codes
        self.outputs: list[int] = graph.output_positions.tolist()

    def __deepcopy__(self, memo: Any) -> Plan:
        return self  # nothing in it changes


def plain_values(obs: Tensor, weight: Tensor, bias: Tensor, plan: Plan) -> list[Tensor]:
    """The value [B] of every node by position.

    A list of rows, never rows written into one tensor: autograd refuses the backward of a tensor that was changed after
    its rows were read.
    """
    values = list(obs.unbind(-1))
    parts = zip(plan.rows, plan.codes, weight.split(plan.widths), bias.unbind(), strict=True)
    for sources, code, weights, node_bias in parts:
        before = [values[source] for source in sources]
        total = weights @ torch.stack(before) if before else torch.zeros_like(obs[..., 0])
        values.append(_activate(total + node_bias, code))
    return values


def plain_forward(obs: Tensor, weight: Tensor, bias: Tensor, plan: Plan) -> Tensor:
    """[B, I] -> [B, O]."""
    values = plain_values(obs, weight, bias, plan)
    return torch.stack([values[position] for position in plan.outputs], -1)


def _activate(total: Tensor, code: int) -> Tensor:
    if code == LEAKY_RELU:
        return functional.leaky_relu(total, LEAK)
    return torch.tanh(total) if code == TANH else total
