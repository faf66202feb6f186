"""A network wired like a graph, as one product per level of it.

Node by node, the exporter needs six minutes for a graph of 264 nodes; by its levels, seconds.
"""

from __future__ import annotations

import itertools

import numpy as np
import torch
from torch import Tensor, nn

from hotloop.core.types import Array
from hotloop.nets.topology.network import TopologyNetwork
from hotloop.nets.topology.topology_kernels import LEAK


class LevelledTopology(nn.Module):
    """[B, I] -> [B, O], equal to the `TopologyNetwork` but for the order in which sums are taken."""

    def __init__(self, network: TopologyNetwork) -> None:
        super().__init__()
        graph, levels = network.graph, network.graph.levels()
        inputs, outputs = len(graph.inputs), graph.output_positions.tolist()
        linear = set() if network.activate_outputs else set(outputs)
        kinds = {position: (levels[position], position in linear) for position in range(inputs, len(graph.nodes))}
        columns = {position: position for position in range(inputs)}
        self._activated: list[bool] = []
        self._leaky = network.activation == "leaky_relu"
        for place, (kind, group) in enumerate(itertools.groupby(sorted(kinds, key=kinds.__getitem__), kinds.get)):
            nodes = list(group)
            self.register_buffer(f"product_{place}", _product(network, nodes, columns), persistent=False)
            bias = network.bias.detach()[[position - inputs for position in nodes]]
            self.register_buffer(f"bias_{place}", bias, persistent=False)
            assert kind is not None
            self._activated.append(not kind[1])
            columns |= {position: len(columns) + i for i, position in enumerate(nodes)}
        self._outputs = [columns[position] for position in outputs]

    def forward(self, obs: Tensor) -> Tensor:
        values = obs
        for place, activated in enumerate(self._activated):
            nodes = values @ self.get_buffer(f"product_{place}") + self.get_buffer(f"bias_{place}")
            if activated:
                nodes = nn.functional.leaky_relu(nodes, LEAK) if self._leaky else torch.tanh(nodes)
            values = torch.cat((values, nodes), dim=-1)
        return values[:, self._outputs]


def _product(network: TopologyNetwork, nodes: list[int], columns: dict[int, int]) -> Tensor:
    """Weights [values so far, nodes], 0 where there is no edge."""
    graph, weight = network.graph, network.weight.detach().numpy()
    product: Array = np.zeros((len(columns), len(nodes)), np.float32)
    for place, position in enumerate(nodes):
        row = position - len(graph.inputs)
        for edge in range(graph.starts[row], graph.starts[row + 1]):
            product[columns[int(graph.sources[edge])], place] += weight[edge]
    return torch.from_numpy(product)
