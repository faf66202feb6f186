"""A network wired by a NetworkX graph, level by level: a level is one matrix product on all values before it.

The structure is computed once, weights and biases are one vector each, and no tensor is written in place: autograd
refuses the backward of a tensor that was changed after it was read.
"""

from itertools import groupby

import networkx as nx
import torch
import torch.nn as nn
import torch.nn.functional as F


class LevelNetwork(nn.Module):
    cells: torch.Tensor
    output_places: torch.Tensor

    def __init__(self, topology, inputs, outputs, activation="leaky_relu"):
        super().__init__()
        self.activation = activation
        level = dict.fromkeys(inputs, 0)
        for node in nx.topological_sort(topology):
            if node not in level:
                level[node] = 1 + max((level[source] for source in topology.predecessors(node)), default=0)
        self.nodes = sorted((node for node in level if level[node] > 0), key=lambda node: level[node])
        self.edges = list(topology.edges)
        self.widths = [len(list(nodes)) for _, nodes in groupby(self.nodes, key=level.get)]
        self.weight = nn.Parameter(torch.randn(len(self.edges)) * 0.1)
        self.bias = nn.Parameter(torch.randn(len(self.nodes)) * 0.1)

        place = {node: i for i, node in enumerate([*inputs, *self.nodes])}
        self.shapes: list = []  # of each level's matrix: values before it, its nodes
        starts = []
        before = len(inputs)
        for width in self.widths:
            starts.append(sum(rows * columns for rows, columns in self.shapes))
            self.shapes.append((before, width))
            before += width
        cells = []
        for source, target in self.edges:
            rows, columns = self.shapes[level[target] - 1]
            cells.append(starts[level[target] - 1] + place[source] * columns + place[target] - rows)
        self.register_buffer("cells", torch.tensor(cells))
        self.register_buffer("output_places", torch.tensor([place[node] for node in sorted(outputs)]))

    def forward(self, x):
        sizes = [rows * columns for rows, columns in self.shapes]
        dense = torch.zeros(sum(sizes)).scatter(0, self.cells, self.weight)
        matrices = [part.view(shape) for part, shape in zip(dense.split(sizes), self.shapes, strict=True)]
        values = x
        for matrix, bias in zip(matrices, self.bias.split(self.widths), strict=True):
            values = torch.cat([values, self.activate(torch.addmm(bias, values, matrix))], dim=1)
        return values.index_select(1, self.output_places)

    def activate(self, total):
        return torch.tanh(total) if self.activation == "tanh" else F.leaky_relu(total, 0.1)
