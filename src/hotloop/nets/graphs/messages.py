"""A batch of graphs as tensors, and the messages that a layer of attention sends in it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from hotloop.core.graphs import Graphs
from hotloop.nets.graphs.message_kernels import build_messages


class Messages(NamedTuple):
    """M messages, sorted by the row that they arrive at. Rows are the N nodes of all graphs, then their B tokens.

    Along every edge goes one message each way, and one each way between a node and its graph's token.
    """

    sources: Tensor  # [M] int64, rows
    targets: Tensor  # [M] int64, rows
    links: Tensor  # [M] int64: rows of the 2E edges (all turned round from E on), then node to token, token to node
    starts: Tensor  # [N + B + 1] int64: those that arrive at row i are starts[i] up to starts[i + 1]


class GraphTensors(NamedTuple):
    """What a network over graphs takes."""

    nodes: Tensor  # [N, F]
    edges: Tensor  # [2E, K]: as they are, then turned round
    graph: Tensor  # [B, S]
    node_graph: Tensor  # [N] int64
    messages: Messages


def to_tensors(graphs: Graphs, device: torch.device | str = "cpu") -> GraphTensors:
    """On a CPU the features of nodes and graphs share the memory of `graphs`; elsewhere four copies are made.

    Of an edge's features the first is taken as a length, the others as a direction, which the message against the edge
    sees with its sign changed.
    """
    num_nodes, num_edges, num_graphs = len(graphs.nodes), len(graphs.edges), len(graphs)
    num_messages, num_rows = 2 * (num_edges + num_nodes), num_nodes + num_graphs
    sizes = [3 * num_messages, num_rows + 1, num_nodes]
    index = np.empty(sum(sizes) + num_rows, np.int64)  # one copy to the device instead of five
    edges = np.empty((2 * num_edges, graphs.edge_features.shape[1]), np.float32)
    after_messages, after_starts, end = sizes[0], sizes[0] + sizes[1], sum(sizes)
    build_messages(
        graphs.edges,
        graphs.edge_features,
        graphs.node_offsets,
        graphs.edge_offsets,
        edges,
        index[:after_messages].reshape(3, num_messages),
        index[after_messages:after_starts],
        index[end:],
        index[after_starts:end],
    )
    on_device = torch.from_numpy(index[:end]).to(device)
    sources, targets, links, starts, node_graph = on_device.split([num_messages] * 3 + sizes[1:])
    return GraphTensors(
        nodes=torch.from_numpy(graphs.nodes).to(device),
        edges=torch.from_numpy(edges).to(device),
        graph=torch.from_numpy(graphs.graph).to(device),
        node_graph=node_graph,
        messages=Messages(sources, targets, links, starts),
    )
