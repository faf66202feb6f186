"""What kind of graph it is: clustering, path length, and how much of a small world."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from hotloop.nets.topology.graph import Topology

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
