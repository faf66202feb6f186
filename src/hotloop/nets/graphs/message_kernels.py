"""Who hears from whom in a batch of graphs, in one pass over its edges.

Rows are all nodes, then one token per graph. Link rows are all edges, all edges turned round, node to token, token to
node: the last two are single rows, however many messages use them.
"""

from __future__ import annotations

from hotloop.core.kernels import inline_kernel, kernel
from hotloop.core.types import Array


@kernel
def build_messages(
    edges: Array,  # [E, 2] places within their graph
    edge_features: Array,  # [E, K]
    node_offsets: Array,  # [B + 1]
    edge_offsets: Array,  # [B + 1]
    both_ways: Array,  # [2E, K], written
    messages: Array,  # [3, M], written: source row, target row, link row; sorted by target
    starts: Array,  # [N + B + 1], written: where each target's messages begin
    cursor: Array,  # [N + B], scratch
    node_graph: Array,  # [N], written
) -> None:
    num_nodes, num_edges = len(node_graph), len(edges)
    _turn(edge_features, both_ways)
    _count(edges, node_offsets, edge_offsets, num_nodes, starts)
    for row in range(len(cursor)):
        starts[row + 1] += starts[row]
        cursor[row] = starts[row]
    for g in range(len(node_offsets) - 1):
        first, token = node_offsets[g], num_nodes + g
        for edge in range(edge_offsets[g], edge_offsets[g + 1]):
            source, target = first + edges[edge, 0], first + edges[edge, 1]
            _put(messages, cursor, source, target, edge)
            _put(messages, cursor, target, source, num_edges + edge)
        for node in range(first, node_offsets[g + 1]):
            _put(messages, cursor, node, token, 2 * num_edges)
            _put(messages, cursor, token, node, 2 * num_edges + 1)
            node_graph[node] = g


@inline_kernel
def _turn(features: Array, both_ways: Array) -> None:
    """The first feature is a length and stays; the others are a direction."""
    num_edges = len(features)
    for edge in range(num_edges):
        for column in range(features.shape[1]):
            value = features[edge, column]
            both_ways[edge, column] = value
            both_ways[num_edges + edge, column] = value if column == 0 else -value


@inline_kernel
def _count(edges: Array, node_offsets: Array, edge_offsets: Array, num_nodes: int, starts: Array) -> None:
    """Leave at `starts[row + 1]` how many messages arrive at the row."""
    starts[0] = 0
    for node in range(num_nodes):
        starts[node + 1] = 1  # from the token
    for g in range(len(node_offsets) - 1):
        first = node_offsets[g]
        starts[num_nodes + g + 1] = node_offsets[g + 1] - first
        for edge in range(edge_offsets[g], edge_offsets[g + 1]):
            starts[first + edges[edge, 0] + 1] += 1
            starts[first + edges[edge, 1] + 1] += 1


@inline_kernel
def _put(messages: Array, cursor: Array, source: int, target: int, link: int) -> None:
    place = cursor[target]
    messages[0, place], messages[1, place], messages[2, place] = source, target, link
    cursor[target] = place + 1
