"""Observations that are graphs of different and changing size: values laid end to end, with offsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Array = np.ndarray
FIELDS = ("nodes", "edges", "edge_features", "graph", "node_offsets", "edge_offsets")


@dataclass(frozen=True, slots=True)
class GraphSpec:
    """How many numbers describe a node, an edge and a whole graph."""

    node_features: int
    edge_features: int
    graph_features: int


@dataclass(slots=True)
class Graphs:
    """B graphs. Graph g has the nodes `node_offsets[g]` up to `node_offsets[g + 1]`, and its edges likewise.

    An edge names its two nodes by their place within their own graph, so that graphs can be taken and joined as they
    are.
    """

    nodes: Array  # [nodes of all, F] float32
    edges: Array  # [edges of all, 2] int32, from and to
    edge_features: Array  # [edges of all, D] float32
    graph: Array  # [B, G] float32
    node_offsets: Array  # [B + 1] int64
    edge_offsets: Array  # [B + 1] int64

    def __len__(self) -> int:
        return len(self.graph)

    def __getitem__(self, rows: Array | slice) -> Graphs:
        return self.take(np.arange(len(self))[rows])

    @property
    def num_nodes(self) -> Array:
        """[B]"""
        return np.diff(self.node_offsets)

    def take(self, rows: Array) -> Graphs:
        """The graphs `rows` [R] in that order, copied."""
        from hotloop.core.graph_kernels import (
            count_rows,
            take_rows,  # numba: not before it is needed
        )

        count = len(rows)
        node_offsets, edge_offsets = np.zeros((2, count + 1), np.int64)
        count_rows(rows, self.node_offsets, self.edge_offsets, node_offsets, edge_offsets)
        taken = Graphs(
            nodes=np.empty((node_offsets[-1], self.nodes.shape[1]), self.nodes.dtype),
            edges=np.empty((edge_offsets[-1], 2), self.edges.dtype),
            edge_features=np.empty((edge_offsets[-1], self.edge_features.shape[1]), self.edge_features.dtype),
            graph=np.empty((count, self.graph.shape[1]), self.graph.dtype),
            node_offsets=node_offsets,
            edge_offsets=edge_offsets,
        )
        take_rows(rows, *self.arrays().values(), *taken.arrays().values())
        return taken

    def arrays(self) -> dict[str, Array]:
        """By name, as a checkpoint keeps them."""
        return {name: getattr(self, name) for name in FIELDS}

    def copy(self) -> Graphs:
        return Graphs(**{name: array.copy() for name, array in self.arrays().items()})


def join_graphs(parts: Sequence[Graphs]) -> Graphs:
    """All graphs of all `parts`, in order."""
    return Graphs(
        nodes=np.concatenate([part.nodes for part in parts]),
        edges=np.concatenate([part.edges for part in parts]),
        edge_features=np.concatenate([part.edge_features for part in parts]),
        graph=np.concatenate([part.graph for part in parts]),
        node_offsets=_join_offsets([part.node_offsets for part in parts]),
        edge_offsets=_join_offsets([part.edge_offsets for part in parts]),
    )


def checked_graphs(graphs: Graphs, like: Graphs) -> Graphs:
    """Graphs out of a file, as many and of the kind of `like`: offsets and edges are indices, which kernels do not
    check. Raises ValueError."""
    for name, array in graphs.arrays().items():
        mine = like.arrays()[name]
        if array.dtype != mine.dtype or array.ndim != mine.ndim or array.shape[1:] != mine.shape[1:]:
            raise ValueError(f"`{name}` of the saved graphs is {array.dtype}{list(array.shape)}")
    for offsets, rows in ((graphs.node_offsets, graphs.nodes), (graphs.edge_offsets, graphs.edges)):
        grows = bool((np.diff(offsets) >= 0).all())
        if offsets.shape != (len(like) + 1,) or offsets[0] != 0 or offsets[-1] != len(rows) or not grows:
            raise ValueError("the offsets of the saved graphs do not fit their nodes and edges")
    counts = np.repeat(graphs.num_nodes, np.diff(graphs.edge_offsets))[:, None]
    wrong = bool(((graphs.edges < 0) | (graphs.edges >= counts)).any())
    if wrong or len(graphs.graph) != len(like) or len(graphs.edge_features) != len(graphs.edges):
        raise ValueError("the saved graphs have edges between nodes that are not there")
    return graphs


def same_graphs(one: Graphs, other: Graphs) -> bool:
    """Whether all values are equal."""
    return all(np.array_equal(mine, other.arrays()[name]) for name, mine in one.arrays().items())


def _join_offsets(parts: list[Array]) -> Array:
    counts = np.concatenate([np.diff(part) for part in parts])
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets
