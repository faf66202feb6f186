"""What the contract asks of observations that are graphs."""

from __future__ import annotations

import numpy as np

from hotloop.core.graphs import FIELDS, Graphs, GraphSpec
from hotloop.core.types import Array


def fault_in(graphs: object, spec: GraphSpec, num_envs: int) -> str:
    """What is wrong with the shape of N graphs, or an empty text."""
    if not isinstance(graphs, Graphs):
        return f"is a {type(graphs).__name__} where Graphs were declared"
    for name, (shape, dtype) in _expected(graphs, spec, num_envs).items():
        array = getattr(graphs, name)
        if array.shape != shape or array.dtype != dtype:
            return f"has `{name}` {array.dtype}{array.shape} where {np.dtype(dtype)}{shape} was expected"
    for name in ("node_offsets", "edge_offsets"):
        offsets = getattr(graphs, name)
        if offsets[0] != 0 or (np.diff(offsets) < 0).any():
            return f"has `{name}` that do not rise from 0"
    most = np.repeat(graphs.num_nodes, np.diff(graphs.edge_offsets))[:, None]  # [edges of all, 1]
    if ((graphs.edges < 0) | (graphs.edges >= most)).any():
        return "has an edge to a node that is not in its graph"
    return ""


def _expected(graphs: Graphs, spec: GraphSpec, num_envs: int) -> dict[str, tuple[tuple[int, ...], type]]:
    num_nodes, num_edges = int(graphs.node_offsets[-1]), int(graphs.edge_offsets[-1])
    shapes: tuple[tuple[tuple[int, ...], type], ...] = (
        ((num_nodes, spec.node_features), np.float32),
        ((num_edges, 2), np.int32),
        ((num_edges, spec.edge_features), np.float32),
        ((num_envs, spec.graph_features), np.float32),
        ((num_envs + 1,), np.int64),
        ((num_envs + 1,), np.int64),
    )
    return dict(zip(FIELDS, shapes, strict=True))


def finite(graphs: Graphs) -> list[Array]:
    """The arrays that hold measures."""
    return [graphs.nodes, graphs.edge_features, graphs.graph]
