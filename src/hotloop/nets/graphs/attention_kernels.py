"""Attention along messages and its gradients, each as one call of machine code.

Queries, keys and values lie side by side as their linear map left them, [R, 3, D], of which a head is W contiguous
columns; keys and links are added on the way and never kept. Short loops cost more to start than to run: a factor of
each head is therefore spread over its columns, so that loops are D long, which halved the time of the backward. (Loops
of a known length were three times slower: they are unrolled before they can vectorize.) `reassoc` lets the sums
vectorize and `contract` fuses multiply and add; neither depends on anything but the shapes, so the same call gives the
same bits. The kernels allocate nothing and are compiled without reference counts.

Who hears from whom in a batch of graphs, in one pass over its edges.

Rows are all nodes, then one token per graph. Link rows are all edges, all edges turned round, node to token, token to
node: the last two are single rows, however many messages use them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core.options import DefaultOptions

from hotloop.core.kernels import compiled, inline_kernel, kernel
from hotloop.core.types import Array

# Numba's own name for it has an underscore: a version that drops it compiles the same code, with counts.
_WITHOUT_COUNTS: dict[str, Any] = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}


def _attention_kernel(function: Callable[..., Any]) -> Any:
    options = {"fastmath": {"reassoc", "contract", "nsz"}, **_WITHOUT_COUNTS}
    return compiled(function, **options)


@_attention_kernel
def attend_forward(
    inputs: Array,  # [R, 3, D] queries, keys, values
    links: Array,  # [L, D]
    sources: Array,  # [M]
    link_rows: Array,  # [M]
    starts: Array,  # [R + 1]
    factors: Array,  # [2, H, W], scratch
    probabilities: Array,  # [M, H], written
    out: Array,  # [R, D], written
) -> None:
    _, heads, width = factors.shape
    scale = np.float32(1.0 / math.sqrt(width))
    split, split_links = inputs.reshape(len(inputs), 3, heads, width), links.reshape(len(links), heads, width)
    factor = factors.reshape(2, heads * width)[0]
    out[:] = np.float32(0)
    for row in range(len(inputs)):
        first, end = starts[row], starts[row + 1]
        for m in range(first, end):
            source, link = sources[m], link_rows[m]
            for h in range(heads):
                probabilities[m, h] = scale * _dot(split[row, 0, h], split[source, 1, h], split_links[link, h])
        for h in range(heads):
            _softmax(probabilities[first:end, h])
        for m in range(first, end):
            _spread(factors[0], probabilities[m])
            _add_sum(out[row], factor, inputs[sources[m], 2], links[link_rows[m]])


@_attention_kernel
def attend_backward(
    inputs: Array,
    links: Array,
    sources: Array,
    link_rows: Array,
    starts: Array,
    factors: Array,
    probabilities: Array,  # [M, H], as the forward left them
    out_gradient: Array,  # [R, D]
    scores: Array,  # [M, H], written: their gradients
    gradient: Array,  # [R, 3, D], written
    link_gradient: Array,  # [L, D], written
) -> None:
    _, heads, width = factors.shape
    _to_scores(
        inputs.reshape(len(inputs), 3, heads, width), links.reshape(len(links), heads, width), sources, link_rows,
        starts, probabilities, out_gradient.reshape(len(inputs), heads, width), scores,
    )  # fmt: skip
    flat = factors.reshape(2, heads * width)
    of_score, of_value = flat[0], flat[1]
    gradient[:] = np.float32(0)
    link_gradient[:] = np.float32(0)
    for row in range(len(inputs)):
        query, of_out, of_query = inputs[row, 0], out_gradient[row], gradient[row, 0]
        for m in range(starts[row], starts[row + 1]):
            source, link = sources[m], link_rows[m]
            _spread(factors[0], scores[m])
            _spread(factors[1], probabilities[m])
            _add_sum(of_query, of_score, inputs[source, 1], links[link])
            _add(gradient[source, 1], of_score, query)
            _add(gradient[source, 2], of_value, of_out)
            _add_both(link_gradient[link], of_score, query, of_value, of_out)  # four results in one loop: slower


@_attention_kernel
def _to_scores(
    inputs: Array,  # [R, 3, H, W]
    links: Array,  # [L, H, W]
    sources: Array,
    link_rows: Array,
    starts: Array,
    probabilities: Array,
    out_gradient: Array,  # [R, H, W]
    scores: Array,
) -> None:
    scale = np.float32(1.0 / math.sqrt(links.shape[2]))
    for row in range(len(inputs)):
        first, end = starts[row], starts[row + 1]
        for m in range(first, end):
            source, link = sources[m], link_rows[m]
            for h in range(links.shape[1]):
                scores[m, h] = _dot(out_gradient[row, h], inputs[source, 2, h], links[link, h])
        for h in range(links.shape[1]):
            _through_softmax(probabilities[first:end, h], scores[first:end, h], scale)


@_attention_kernel
def _spread(factors: Array, of_heads: Array) -> None:
    for h in range(len(of_heads)):
        factor = of_heads[h]
        for c in range(factors.shape[1]):
            factors[h, c] = factor


@_attention_kernel
def _add_sum(out: Array, factor: Array, one: Array, other: Array) -> None:
    for c in range(len(out)):
        out[c] += factor[c] * (one[c] + other[c])


@_attention_kernel
def _add(out: Array, factor: Array, one: Array) -> None:
    for c in range(len(out)):
        out[c] += factor[c] * one[c]


@_attention_kernel
def _add_both(out: Array, factor: Array, one: Array, other_factor: Array, other: Array) -> None:
    for c in range(len(out)):
        out[c] += factor[c] * one[c] + other_factor[c] * other[c]


@_attention_kernel
def _dot(one: Array, other: Array, added: Array) -> np.float32:
    total = np.float32(0)
    for c in range(len(one)):
        total += one[c] * (other[c] + added[c])
    return total


@_attention_kernel
def _softmax(scores: Array) -> None:
    top = np.float32(-np.inf)
    for m in range(len(scores)):
        top = max(top, scores[m])
    total = np.float32(0)
    for m in range(len(scores)):
        scores[m] = math.exp(scores[m] - top)
        total += scores[m]
    for m in range(len(scores)):
        scores[m] /= total


@_attention_kernel
def _through_softmax(probabilities: Array, gradient: Array, scale: float) -> None:
    total = np.float32(0)
    for m in range(len(gradient)):
        total += probabilities[m] * gradient[m]
    for m in range(len(gradient)):
        gradient[m] = scale * probabilities[m] * (gradient[m] - total)


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
