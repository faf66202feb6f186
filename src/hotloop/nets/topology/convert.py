"""From NetworkX and from JSON files to a `Topology`, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.nets.topology.graph import Edge, Node, Topology, TopologyError, make_topology

if TYPE_CHECKING:
    import networkx

Given = tuple[dict[Edge, float], dict[Node, float]]
"""Weights and biases that a graph came with."""


def read_networkx(
    graph: networkx.DiGraph, inputs: Sequence[Node] | None = None, outputs: Sequence[Node] | None = None
) -> tuple[Topology, Given]:
    """A checked graph; inputs and outputs are those named, those that `graph.graph` names, or its sources and sinks."""
    if not (hasattr(graph, "predecessors") and hasattr(graph, "edges")):
        kind = "an undirected graph" if hasattr(graph, "adj") else f"a {type(graph).__name__}"
        raise TopologyError(
            f"the network was given {kind}", "give a networkx.DiGraph, or one of our generators' graphs"
        )
    inputs = _ends(inputs, graph.graph.get("inputs"), [node for node, count in graph.in_degree() if count == 0])
    outputs = _ends(outputs, graph.graph.get("outputs"), [node for node, count in graph.out_degree() if count == 0])
    topology = make_topology(graph.nodes, [(edge[0], edge[1]) for edge in graph.edges], inputs, outputs)
    weights = {(source, target): data["weight"] for source, target, data in graph.edges(data=True) if "weight" in data}
    biases = {node: data["bias"] for node, data in graph.nodes(data=True) if "bias" in data}
    return topology, (weights, biases)


def _ends(named: Sequence[Node] | None, noted: Sequence[Node] | None, found: list[Any]) -> Sequence[Node]:
    if named is not None:
        return named
    if noted is not None:
        return noted
    try:
        return sorted(found)
    except TypeError:  # ids of several kinds have no order of their own
        return found


def write_networkx(graph: Topology, weights: Sequence[float], biases: Sequence[float]) -> networkx.DiGraph:
    import networkx

    result = networkx.DiGraph(inputs=list(graph.inputs), outputs=list(graph.outputs))
    result.add_nodes_from(graph.inputs)
    result.add_nodes_from((node, {"bias": bias}) for node, bias in zip(graph.computed, biases, strict=True))
    edges = zip(graph.edges(), weights, strict=True)
    result.add_edges_from((source, target, {"weight": weight}) for (source, target), weight in edges)
    return result


def read_graph_file(path: Path) -> tuple[Topology, Given]:
    """A JSON file in NetworkX's node-link form: `nodes` with `id` (and `bias`), `edges` or `links` with `source`,
    `target` (and `weight`), and in `graph` or beside it the `inputs` and `outputs`."""
    try:
        data = json.loads(path.read_text())
    except OSError as error:
        raise TopologyError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise TopologyError(f"{path} is not valid JSON: {error}") from None
    try:
        return _from_data(data)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise TopologyError(
            f"{path} is no graph: {type(error).__name__} {error}",
            'expected {"nodes": [{"id": 0}, ...], "edges": [{"source": 0, "target": 1}, ...], "inputs": [0], ...}',
        ) from None


def _from_data(data: Mapping[str, Any]) -> tuple[Topology, Given]:
    nodes = [_plain_id(node["id"]) for node in data["nodes"]]
    links = [
        (_plain_id(link["source"]), _plain_id(link["target"]), link) for link in data.get("edges") or data["links"]
    ]
    notes = {**data, **data.get("graph", {})}
    ends = []
    for name, side in (("inputs", 1), ("outputs", 0)):
        taken = {link[side] for link in links}
        noted = notes.get(name)
        ends.append(
            _ends(None, None if noted is None else list(map(_plain_id, noted)), [n for n in nodes if n not in taken])
        )
    topology = make_topology(nodes, [link[:2] for link in links], *ends)
    weights = {link[:2]: float(link[2]["weight"]) for link in links if "weight" in link[2]}
    return topology, (weights, {_plain_id(n["id"]): float(n["bias"]) for n in data["nodes"] if "bias" in n})


def _plain_id(value: Any) -> Node:
    """JSON has no tuples: NetworkX writes them as lists."""
    return tuple(map(_plain_id, value)) if isinstance(value, list) else value
