"""`hotloop draw RUN|GRAPH.json`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.errors import RunError, SettingsError
from hotloop.core.terminal import print_line, say

if TYPE_CHECKING:
    from hotloop.core.types import Array
    from hotloop.nets.topology.graph import Measures, Topology


PICTURES, VIDEOS = (".svg", ".png"), (".mp4", ".gif")


def run(words: list[str]) -> int:
    parser = VerbParser(
        "draw",
        "Draw a network that is wired by a graph, in topological levels, with weights and biases as colours, and\n"
        "measure the graph. Give a run that was trained with `network.torso = topology` (its best weights are shown),\n"
        "or a JSON file in NetworkX's node-link form. FILE.mp4 and FILE.gif show the weights over training, from the\n"
        "checkpoints the run kept (train with `--checkpoint.every 2k --checkpoint.keep 100`).",
        "hotloop draw runs/topology-dqn-20260101-120000 --out network.svg",
    )
    parser.add_argument("what", metavar="RUN|GRAPH.json", help="a run's directory, or a graph")
    parser.add_argument("--out", type=Path, metavar="FILE", help=".svg (default: network.svg), .png, .mp4 or .gif")
    arguments = parser.parse_args(words)
    out = _checked(arguments.out or Path("network.svg"))
    from hotloop.nets.topology.graph import measure

    drawn = _load(arguments.what)
    measures = measure(drawn.graph)
    if out.suffix.lower() in VIDEOS:
        _animate(Path(arguments.what), drawn, out)
    else:
        _write(out, _picture(drawn, measures, out))
    if arguments.json:
        print_json({"picture": str(out), **measures.as_data()})
    else:
        _print(measures)
    say(f"wrote {out}")
    return 0


@dataclass(frozen=True)
class Drawn:
    """A graph, the numbers on it, and what it is called."""

    graph: Topology
    weights: Array
    biases: Array
    title: str


def _checked(out: Path) -> Path:
    if out.suffix.lower() not in (*PICTURES, *VIDEOS):
        raise SettingsError(
            f"`--out` is {out}, no kind of picture that we write", f"one of FILE{', FILE'.join((*PICTURES, *VIDEOS))}"
        )
    return out


def _picture(drawn: Drawn, measures: Measures, out: Path) -> bytes:
    if out.suffix.lower() == ".png":
        from hotloop.render.picture import png_bytes
        from hotloop.viewing.draw_picture import NetworkPainter, limits_of

        limits = limits_of(drawn.weights, drawn.biases)
        return png_bytes(NetworkPainter(drawn.graph).paint(drawn.weights, drawn.biases, limits))
    from hotloop.viewing.draw_network import draw_network

    return draw_network(drawn.graph, drawn.weights, drawn.biases, drawn.title, _subtitle(measures)).encode()


def _animate(what: Path, drawn: Drawn, out: Path) -> None:
    from hotloop.runs.directory import Run
    from hotloop.viewing.draw_history import animate

    if what.suffix == ".json":
        raise SettingsError(f"{what} is one graph; only a run has weights over training", "`--out FILE.png`")
    shown = animate(Run.open(what), drawn.graph, out)
    say(f"{shown} checkpoints")


def _load(what: str) -> Drawn:
    path = Path(what)
    return _from_file(path) if path.suffix == ".json" and not path.is_dir() else _from_run(path)


def _from_file(path: Path) -> Drawn:
    """Edges and nodes without numbers of their own are drawn as zero."""
    import numpy as np

    from hotloop.nets.topology.convert import read_graph_file

    graph, (weights, biases) = read_graph_file(path)
    edge_values = np.array([weights.get(edge, 0.0) for edge in graph.edges()])
    return Drawn(graph, edge_values, np.array([biases.get(node, 0.0) for node in graph.computed]), path.stem)


def _from_run(path: Path) -> Drawn:
    from hotloop.api import load
    from hotloop.nets.topology.network import TopologyTorso

    torso: Any = load(path).network.torso
    if not isinstance(torso, TopologyTorso):
        raise RunError(
            f"the network of {path} is made of layers, not wired by a graph",
            "train one that is: `hotloop train topology-dqn`",
        )
    network = torso.network
    weights, biases = network.weight.detach().numpy(), network.bias.detach().numpy()
    return Drawn(network.graph, weights, biases, path.resolve().name)


def _write(out: Path, data: bytes) -> None:
    try:
        out.write_bytes(data)
    except OSError as error:
        raise RunError(f"cannot write {out}: {error.strerror}", "give another file: `--out FILE`") from None


def _subtitle(measures: Measures) -> str:
    return (
        f"{measures.nodes} nodes, {measures.edges} edges, {measures.levels} levels; "
        f"clustering {measures.clustering:.2f}, path length {measures.path_length:.2f}{_sigma(measures)}"
    )


def _sigma(measures: Measures) -> str:
    return "" if measures.sigma is None else f", small-worldness {measures.sigma:.2f}"


def _print(measures: Measures) -> None:
    print_line(f"nodes            {measures.nodes}, {measures.levels} levels, at most {measures.widest_level} in one")
    print_line(f"edges            {measures.edges} ({measures.parameters} parameters with the biases)")
    print_line(f"clustering       {measures.clustering:.3f} (random graphs: {measures.random_clustering:.3f})")
    print_line(f"path length      {measures.path_length:.2f} (random graphs: {measures.random_path_length:.2f})")
    sigma = (
        "not defined for this graph"
        if measures.sigma is None
        else f"{measures.sigma:.2f} (sigma; above 1: small world)"
    )
    print_line(f"small-worldness  {sigma}")
