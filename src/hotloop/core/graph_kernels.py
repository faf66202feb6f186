"""Taking some graphs out of many: first how large they are, then their values.

One pass over what foreign envs returned: a numpy `isfinite(...).all()` on 4 numbers costs three times as much.
"""

from __future__ import annotations

import math

from hotloop.core.kernels import inline_kernel, kernel
from hotloop.core.types import Array


@kernel
def count_rows(rows, node_offsets, edge_offsets, out_node_offsets, out_edge_offsets):
    for j in range(len(rows)):
        g = rows[j]
        out_node_offsets[j + 1] = out_node_offsets[j] + node_offsets[g + 1] - node_offsets[g]
        out_edge_offsets[j + 1] = out_edge_offsets[j] + edge_offsets[g + 1] - edge_offsets[g]


@kernel
def take_rows(
    rows, nodes, edges, edge_features, graph, node_offsets, edge_offsets,
    out_nodes, out_edges, out_edge_features, out_graph, out_node_offsets, out_edge_offsets,
):  # fmt: skip
    for j in range(len(rows)):
        g = rows[j]
        _copy(nodes, node_offsets[g], node_offsets[g + 1], out_nodes, out_node_offsets[j])
        _copy(edges, edge_offsets[g], edge_offsets[g + 1], out_edges, out_edge_offsets[j])
        _copy(edge_features, edge_offsets[g], edge_offsets[g + 1], out_edge_features, out_edge_offsets[j])
        _copy(graph, g, g + 1, out_graph, j)


@kernel
def list_nodes(rows, node_offsets, out):
    """The places of all nodes of the graphs `rows`, in order, into `out` [nodes of them]."""
    at = 0
    for j in range(len(rows)):
        for node in range(node_offsets[rows[j]], node_offsets[rows[j] + 1]):
            out[at] = node
            at += 1


@inline_kernel
def _copy(values, start, end, out, at):
    for row in range(end - start):
        for column in range(values.shape[1]):
            out[at + row, column] = values[start + row, column]


@kernel
def count_not_finite(values: Array) -> int:
    """How many of `values` [n] are NaN or infinite (counted to the end: an early exit would not vectorize)."""
    count = 0
    for index in range(values.shape[0]):
        if not math.isfinite(values[index]):
            count += 1
    return count
