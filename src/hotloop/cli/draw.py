"""`hotloop draw RUN|GRAPH.json`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.errors import RunError, SettingsError

if TYPE_CHECKING:
    from hotloop.core.types import Array
    from hotloop.nets.topology.graph import Topology
    from hotloop.nets.topology.measures import Measures


def run(words: list[str]) -> int:
    parser = VerbParser(
        "draw",
        "Draw a network that is wired by a graph, in topological levels, with weights and biases as colours, and\n"
        "measure the graph. Give a run that was trained with `network.torso = topology` (its best weights are shown),\n"
        "or a JSON file in NetworkX's node-link form.",
        "hotloop draw runs/topology-dqn-20260101-120000 --out network.svg",
    )
    parser.add_argument("what", metavar="RUN|GRAPH.json", help="a run's directory, or a graph")
    parser.add_argument("--out", type=Path, metavar="FILE.svg", help="where the picture goes (default: network.svg)")
    arguments = parser.parse_args(words)
    out = _checked(arguments.out or Path("network.svg"))
    from hotloop.nets.topology.measures import measure
    from hotloop.show.draw_network import draw_network

    graph, weights, biases, title = _load(arguments.what)
    measures = measure(graph)
    _write(out, draw_network(graph, weights, biases, title, _subtitle(measures)))
    if arguments.json:
        print_json({"picture": str(out), **measures.as_data()})
    else:
        _print(measures)
    print(f"wrote {out}", file=sys.stderr)
    return 0


def _checked(out: Path) -> Path:
    if out.suffix.lower() != ".svg":
        raise SettingsError(
            f"`--out` is {out}, and pictures of networks are SVG files", f"`--out {out.with_suffix('.svg')}`"
        )
    return out


def _load(what: str) -> tuple[Topology, Array, Array, str]:
    path = Path(what)
    return _from_file(path) if path.suffix == ".json" and not path.is_dir() else _from_run(path)


def _from_file(path: Path) -> tuple[Topology, Array, Array, str]:
    """Edges and nodes without numbers of their own are drawn as zero."""
    import numpy as np

    from hotloop.nets.topology.convert import read_graph_file

    graph, (weights, biases) = read_graph_file(path)
    edge_values = np.array([weights.get(edge, 0.0) for edge in graph.edges()])
    return graph, edge_values, np.array([biases.get(node, 0.0) for node in graph.computed]), path.stem


def _from_run(path: Path) -> tuple[Topology, Array, Array, str]:
    from hotloop.api import load
    from hotloop.nets.topology.torso import TopologyTorso

    torso: Any = load(path).network.torso
    if not isinstance(torso, TopologyTorso):
        raise RunError(
            f"the network of {path} is made of layers, not wired by a graph",
            "train one that is: `hotloop train topology-dqn`",
        )
    network = torso.network
    weights, biases = network.weight.detach().numpy(), network.bias.detach().numpy()
    return network.graph, weights, biases, path.resolve().name


def _write(out: Path, text: str) -> None:
    try:
        out.write_text(text)
    except OSError as error:
        raise RunError(f"cannot write {out}: {error.strerror}", "give another file: `--out FILE.svg`") from None


def _subtitle(measures: Measures) -> str:
    return (
        f"{measures.nodes} nodes, {measures.edges} edges, {measures.levels} levels; "
        f"clustering {measures.clustering:.2f}, path length {measures.path_length:.2f}{_sigma(measures)}"
    )


def _sigma(measures: Measures) -> str:
    return "" if measures.sigma is None else f", small-worldness {measures.sigma:.2f}"


def _print(measures: Measures) -> None:
    print(f"nodes            {measures.nodes}, {measures.levels} levels, at most {measures.widest_level} in one")
    print(f"edges            {measures.edges} ({measures.parameters} parameters with the biases)")
    print(f"clustering       {measures.clustering:.3f} (random graphs: {measures.random_clustering:.3f})")
    print(f"path length      {measures.path_length:.2f} (random graphs: {measures.random_path_length:.2f})")
    sigma = (
        "not defined for this graph"
        if measures.sigma is None
        else f"{measures.sigma:.2f} (sigma; above 1: small world)"
    )
    print(f"small-worldness  {sigma}")
