"""`draw`: a network that is wired by a graph as a picture or an animation, and the measures of its graph.

Light until it draws: `hotloop topology draw` answers a mistake before PyTorch is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.core.errors import RunError, SettingsError

if TYPE_CHECKING:
    from hotloop.core.types import Array
    from hotloop.nets.topology.graph import Measures, Topology

PICTURES, VIDEOS = (".svg", ".png"), (".mp4", ".gif")


@dataclass(frozen=True)
class NetworkDrawing:
    """A file that was written, and what was drawn."""

    file: Path
    measures: Measures
    checkpoints: int = 0
    """How many an animation shows."""


@dataclass(frozen=True)
class _Network:
    graph: Topology
    weights: Array  # [E]
    biases: Array  # [V - I]
    title: str


def draw(what: str | Path, out: str | Path = "network.svg") -> NetworkDrawing:
    """Draw a network in topological levels, with weights and biases as colors, and measure its graph.

        draw("runs/topology-dqn-20260101-120000", "network.png").measures.sigma

    `what` is a run that was trained with `network.torso = topology` (its best weights are drawn), or a JSON file in
    NetworkX's node-link form. `out` ends in .svg or .png; or, for a run, in .mp4 or .gif: its weights over training,
    from the checkpoints that it kept.
    """
    source, file = Path(what), Path(out)
    kind = file.suffix.lower()
    if kind not in (*PICTURES, *VIDEOS):
        raise SettingsError(
            f"`--out` is {file}, no kind of picture that we write", f"one of FILE{', FILE'.join((*PICTURES, *VIDEOS))}"
        )
    from hotloop.nets.topology.graph import measure

    network = _from_file(source) if source.suffix == ".json" and not source.is_dir() else _from_run(source)
    measures = measure(network.graph)
    if kind in VIDEOS:
        return NetworkDrawing(file, measures, _animate(source, network, file))
    _write(file, _as_png(network) if kind == ".png" else _as_svg(network, measures))
    return NetworkDrawing(file, measures)


def _from_file(path: Path) -> _Network:
    """Edges and nodes without numbers of their own are drawn as zero."""
    import numpy as np

    from hotloop.nets.topology.convert import read_graph_file

    graph, (weights, biases) = read_graph_file(path)
    edge_values = np.array([weights.get(edge, 0.0) for edge in graph.edges()])
    return _Network(graph, edge_values, np.array([biases.get(node, 0.0) for node in graph.computed]), path.stem)


def _from_run(path: Path) -> _Network:
    from hotloop.loop.agent_files import load_agent
    from hotloop.nets.topology.network import TopologyTorso
    from hotloop.presets.registry import settings_of
    from hotloop.runs.directory import Run

    run = Run.open(path)
    torso: Any = getattr(load_agent(run, settings_of(run)).network, "torso", None)
    if not isinstance(torso, TopologyTorso):
        raise RunError(
            f"the network of {path} is made of layers, not wired by a graph",
            "train one that is: `hotloop train topology-dqn`",
        )
    wired = torso.network
    weights, biases = wired.weight.detach().numpy(), wired.bias.detach().numpy()
    return _Network(wired.graph, weights, biases, path.resolve().name)


def _as_png(network: _Network) -> bytes:
    from hotloop.render.picture import png_bytes
    from hotloop.workloads.topology.draw_picture import NetworkPainter, limits_of

    limits = limits_of(network.weights, network.biases)
    return png_bytes(NetworkPainter(network.graph).paint(network.weights, network.biases, limits))


def _as_svg(network: _Network, measures: Measures) -> bytes:
    from hotloop.viewing.draw_network import draw_network

    sigma = "" if measures.sigma is None else f", small-worldness {measures.sigma:.2f}"
    about = (
        f"{measures.nodes} nodes, {measures.edges} edges, {measures.levels} levels; "
        f"clustering {measures.clustering:.2f}, path length {measures.path_length:.2f}{sigma}"
    )
    return draw_network(network.graph, network.weights, network.biases, network.title, about).encode()


def _animate(source: Path, network: _Network, out: Path) -> int:
    from hotloop.runs.directory import Run
    from hotloop.workloads.topology.draw_history import animate

    if source.suffix == ".json":
        raise SettingsError(f"{source} is one graph; only a run has weights over training", "`--out FILE.png`")
    return animate(Run.open(source), network.graph, out)


def _write(out: Path, data: bytes) -> None:
    try:
        out.write_bytes(data)
    except OSError as error:
        raise RunError(f"cannot write {out}: {error.strerror}", "give another file: `--out FILE`") from None
