"""A directed acyclic graph, checked and put into the order in which its nodes can be computed.

What kind of graph it is: clustering, path length, and how much of a small world.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NoReturn

import numpy as np

from hotloop.core.errors import HotloopError
from hotloop.core.types import Array

Node = Hashable
Edge = tuple[Node, Node]


class TopologyError(HotloopError):
    """A graph that is no network, or a node or edge that the network does not have."""


@dataclass(frozen=True, eq=False)
class Topology:
    """Nodes by position: the inputs first, the others in topological order. Edges lie in compressed rows: those into
    node `inputs + i` come from the positions `sources[starts[i] : starts[i + 1]]`."""

    nodes: tuple[Node, ...]
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    sources: Array  # [E] int64
    starts: Array  # [V - I + 1] int64
    output_positions: Array  # [O] int64

    @property
    def num_edges(self) -> int:
        return len(self.sources)

    @property
    def computed(self) -> tuple[Node, ...]:
        """The nodes that have a bias: all but the inputs."""
        return self.nodes[len(self.inputs) :]

    def edges(self) -> list[Edge]:
        """(source, target) in the order of the rows."""
        rows = zip(self.computed, self.starts, self.starts[1:], strict=False)
        return [(self.nodes[source], node) for node, start, end in rows for source in self.sources[start:end]]

    def levels(self) -> list[int]:
        """Of each position, the edges on the longest way to it."""
        levels = [0] * len(self.nodes)
        for i, position in enumerate(range(len(self.inputs), len(self.nodes))):
            before = self.sources[self.starts[i] : self.starts[i + 1]]
            levels[position] = 1 + max((levels[source] for source in before), default=-1)
        return levels

    def __deepcopy__(self, memo: Any) -> Topology:
        return self  # nothing in it changes


def make_topology(
    nodes: Iterable[Node], edges: Iterable[Edge], inputs: Sequence[Node], outputs: Sequence[Node]
) -> Topology:
    """Check a graph and order it. Nodes that could be computed next are taken in the order of `nodes`."""
    nodes, edges, inputs, outputs = tuple(nodes), list(edges), tuple(inputs), tuple(outputs)
    _check_ids(nodes, inputs, outputs)
    sources = _sources_by_target(nodes, edges, inputs)
    order = _topological_order(nodes, inputs, sources)
    position = {node: number for number, node in enumerate(order)}
    _check_reached(order, inputs, outputs, sources)
    rows = [sorted(position[source] for source in sources[node]) for node in order[len(inputs) :]]
    starts = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=starts[1:])
    return Topology(
        nodes=order,
        inputs=inputs,
        outputs=outputs,
        sources=np.array([source for row in rows for source in row], np.int64),
        starts=starts,
        output_positions=np.array([position[node] for node in outputs], np.int64),
    )


def _check_ids(nodes: Sequence[Node], inputs: Sequence[Node], outputs: Sequence[Node]) -> None:
    for name, group in (("the graph", nodes), ("`inputs`", inputs), ("`outputs`", outputs)):
        twice = [node for node, count in Counter(group).items() if count > 1]
        if twice:
            raise TopologyError(f"{name} lists node {twice[0]!r} more than once", "every node needs an id of its own")
    known = set(nodes)
    for name, group in (("inputs", inputs), ("outputs", outputs)):
        if not group:
            raise TopologyError(f"`{name}` is empty", "a network needs at least one input and one output")
        for node in group:
            if node not in known:
                raise TopologyError(f"`{name}` lists node {node!r}, which the graph does not have", _kinds(node, known))
    for node in set(inputs) & set(outputs):
        raise TopologyError(f"node {node!r} is both an input and an output", "put a node of its own between the two")


def _kinds(node: Node, known: set[Node]) -> str:
    """Ids read from text are the usual mistake: 3 is not "3"."""
    same_text = [other for other in known if str(other) == str(node)]
    return f"the graph has {same_text[0]!r}: did you mean that?" if same_text else f"it has {len(known)} other nodes"


def _sources_by_target(
    nodes: Sequence[Node], edges: Sequence[Edge], inputs: Sequence[Node]
) -> dict[Node, dict[Node, None]]:
    sources: dict[Node, dict[Node, None]] = {node: {} for node in nodes}
    for source, target in edges:
        for node in (source, target):
            if node not in sources:
                raise TopologyError(f"edge {source!r} -> {target!r} names node {node!r}, which the graph does not have")
        if source in sources[target]:
            raise TopologyError(f"edge {source!r} -> {target!r} is there twice", "join the two into one weight")
        sources[target][source] = None
    for node in inputs:
        if sources[node]:
            source = next(iter(sources[node]))
            raise TopologyError(
                f"input {node!r} has an incoming edge from {source!r}", "an input's value is what the network is given"
            )
    return sources


def _topological_order(
    nodes: Sequence[Node], inputs: Sequence[Node], sources: dict[Node, dict[Node, None]]
) -> tuple[Node, ...]:
    """Kahn's algorithm, the first in `nodes` first: the same graph always gets the same order."""
    rank = {node: number for number, node in enumerate(nodes)}
    targets: dict[Node, list[Node]] = {node: [] for node in nodes}
    for target, before in sources.items():
        for source in before:
            targets[source].append(target)
    waiting = {node: len(before) for node, before in sources.items()}
    given = set(inputs)
    ready = [rank[node] for node in nodes if not waiting[node] and node not in given]
    order = list(inputs)
    for source in inputs:
        _release(source, targets, waiting, ready, rank)
    heapq.heapify(ready)
    while ready:
        order.append(nodes[heapq.heappop(ready)])
        _release(order[-1], targets, waiting, ready, rank, heapq.heappush)
    if len(order) < len(nodes):
        _raise_cycle(sources, set(nodes) - set(order))
    return tuple(order)


def _release(
    source: Node,
    targets: Any,
    waiting: dict[Node, int],
    ready: list[int],
    rank: dict[Node, int],
    put: Any = list.append,
) -> None:
    for target in targets[source]:
        waiting[target] -= 1
        if waiting[target] == 0:
            put(ready, rank[target])


def _raise_cycle(sources: dict[Node, dict[Node, None]], stuck: set[Node]) -> NoReturn:
    """Name one cycle: walk backwards among nodes that wait for each other until one comes again."""
    node, path = next(iter(stuck)), []
    while node not in path:
        path.append(node)
        node = next(source for source in sources[node] if source in stuck)
    cycle = [node, *reversed(path[path.index(node) :])]
    shown = " -> ".join(map(repr, cycle if len(cycle) <= 12 else [*cycle[:6], "...", *cycle[-5:]]))
    raise TopologyError(f"the graph has a cycle: {shown}", "a node can only be computed after its predecessors")


def _check_reached(
    order: Sequence[Node], inputs: Sequence[Node], outputs: Sequence[Node], sources: dict[Node, dict[Node, None]]
) -> None:
    reached = set(inputs)
    for node in order:
        if any(source in reached for source in sources[node]):
            reached.add(node)
    for node in outputs:
        if node not in reached:
            raise TopologyError(
                f"output {node!r} cannot be reached from any input", "its value would be the same for every observation"
            )


RANDOM_GRAPHS = 10


@dataclass(frozen=True)
class Measures:
    """Of the graph without its directions; the last three against random graphs of as many nodes and edges.

    `sigma` = (clustering / random clustering) / (path length / random path length): well above 1 in a small world
    (Humphries & Gurney 2008). None where it is not defined.
    """

    nodes: int
    edges: int
    parameters: int
    levels: int
    widest_level: int
    clustering: float
    path_length: float
    random_clustering: float
    random_path_length: float
    sigma: float | None

    def as_data(self) -> dict[str, Any]:
        return asdict(self)


def measure(graph: Topology) -> Measures:
    """Path lengths are averages over the pairs of the largest connected part."""
    import networkx

    whole = networkx.Graph(graph.edges())
    whole.add_nodes_from(graph.nodes)
    nodes, edges = whole.number_of_nodes(), whole.number_of_edges()
    clustering, length = networkx.average_clustering(whole), _path_length(whole)
    random = [networkx.gnm_random_graph(nodes, edges, seed=seed) for seed in range(RANDOM_GRAPHS)]
    random_clustering = sum(map(networkx.average_clustering, random)) / RANDOM_GRAPHS
    random_length = sum(map(_path_length, random)) / RANDOM_GRAPHS
    levels = graph.levels()
    defined = random_clustering > 0 and random_length > 0 and length > 0
    return Measures(
        nodes=nodes,
        edges=edges,
        parameters=edges + len(graph.computed),
        levels=len(set(levels)),
        widest_level=max(map(levels.count, set(levels))),
        clustering=clustering,
        path_length=length,
        random_clustering=random_clustering,
        random_path_length=random_length,
        sigma=(clustering / random_clustering) / (length / random_length) if defined else None,
    )


def _path_length(graph: Any) -> float:
    import networkx

    largest = max(networkx.connected_components(graph), key=len)
    return networkx.average_shortest_path_length(graph.subgraph(largest)) if len(largest) > 1 else 0.0
