"""Attention of each row over the messages that arrive at it: as torch operations, or as machine code on a CPU.

A batch of graphs as tensors, and the messages that a layer of attention sends in it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from hotloop.core.graphs import Graphs
from hotloop.core.types import Array
from hotloop.nets.graphs.attention_kernels import attend_backward, attend_forward, build_messages


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


def attend(inputs: Tensor, links: Tensor, messages: Messages, heads: int, fused: bool | None = None) -> Tensor:
    """sum_m p_m (v_source + e_link) [R, D], with p = softmax over a row's messages of q . (k_source + e_link) / sqrt W.

    `inputs` [R, 3D] are queries, keys and values, `links` [L, D]; heads are W = D / `heads` columns each. A row where
    nothing arrives gets 0. Numbers of half precision are attended to in single. `fused` None: machine code wherever
    it can be, which is float32 on a CPU outside `torch.compile`.
    """
    if inputs.dtype in (torch.bfloat16, torch.float16):
        return attend(inputs.float(), links.float(), messages, heads, fused).to(inputs.dtype)
    if fused is None:
        fused = inputs.device.type == "cpu" and inputs.dtype == torch.float32 and not torch.compiler.is_compiling()
    if not fused:
        return attend_plain(inputs, links, messages, heads)
    if torch.is_grad_enabled() and (inputs.requires_grad or links.requires_grad):
        return _Attention.apply(inputs, links, messages, heads)
    return _compute(inputs, links, messages, heads)[0]


def attend_plain(inputs: Tensor, links: Tensor, messages: Messages, heads: int) -> Tensor:
    """On any device, with any number of derivatives."""
    num_rows, width = inputs.shape[0], links.shape[1] // heads
    queries, keys, values = inputs.view(num_rows, 3, heads, width).unbind(1)
    link = links.view(-1, heads, width).index_select(0, messages.links)
    key = keys.index_select(0, messages.sources) + link
    scores = (queries.index_select(0, messages.targets) * key).sum(-1) / math.sqrt(width)
    probabilities = segment_softmax(scores, messages.targets, num_rows)
    value = probabilities.unsqueeze(-1) * (values.index_select(0, messages.sources) + link)
    return segment_sum(value.flatten(1), messages.targets, num_rows)


def segment_softmax(scores: Tensor, segments: Tensor, num_segments: int) -> Tensor:
    """Of scores [M, H] over all rows of the same segment [M], each column apart."""
    fixed = scores.detach()  # the largest is only subtracted against overflow: it has no gradient
    lowest = fixed.new_full((num_segments, scores.shape[1]), -math.inf)
    top = lowest.scatter_reduce(0, segments.unsqueeze(1).expand_as(fixed), fixed, "amax")
    weights = (scores - top.index_select(0, segments)).exp()
    return weights / segment_sum(weights, segments, num_segments).index_select(0, segments)


def segment_sum(values: Tensor, segments: Tensor, num_segments: int) -> Tensor:
    """[S, D] of values [M, D]."""
    return values.new_zeros(num_segments, values.shape[1]).index_add(0, segments, values)


def _compute(inputs: Tensor, links: Tensor, messages: Messages, heads: int) -> tuple[Tensor, Array]:
    """The result [R, D], and each message's probabilities [M, H]."""
    depth = links.shape[1]
    probabilities = np.empty((len(messages.sources), heads), np.float32)
    out = np.empty((len(inputs), depth), np.float32)
    attend_forward(
        _array(inputs).reshape(-1, 3, depth),
        _array(links),
        *_indices(messages),
        np.empty((2, heads, depth // heads), np.float32),
        probabilities,
        out,
    )
    return torch.from_numpy(out), probabilities


class _Attention(torch.autograd.Function):
    """The probabilities stay until the backward."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, links: Tensor, messages: Messages, heads: int) -> Tensor:
        out, probabilities = _compute(inputs, links, messages, heads)
        ctx.save_for_backward(inputs, links)
        ctx.kept = (messages, probabilities)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, out_gradient: Tensor) -> tuple[Tensor | None, ...]:
        inputs, links = ctx.saved_tensors
        messages, probabilities = ctx.kept
        (num_links, depth), heads = links.shape, probabilities.shape[1]
        gradient = np.empty((len(inputs), 3, depth), np.float32)
        link_gradient = np.empty((num_links, depth), np.float32)
        attend_backward(
            _array(inputs).reshape(-1, 3, depth),
            _array(links),
            *_indices(messages),
            np.empty((2, heads, depth // heads), np.float32),
            probabilities,
            _array(out_gradient),
            np.empty_like(probabilities),
            gradient,
            link_gradient,
        )
        return torch.from_numpy(gradient).flatten(1), torch.from_numpy(link_gradient), None, None


def _indices(messages: Messages) -> tuple[Array, Array, Array]:
    return messages.sources.numpy(), messages.links.numpy(), messages.starts.numpy()


def _array(matrix: Tensor) -> Array:
    """The tensor's own memory where it is contiguous."""
    return matrix.detach().contiguous().numpy()
