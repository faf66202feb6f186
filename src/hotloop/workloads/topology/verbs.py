"""`hotloop topology draw RUN|GRAPH.json`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.terminal import print_line, say
from hotloop.workloads.topology import draw as drawing

if TYPE_CHECKING:
    from hotloop.nets.topology.graph import Measures


def draw(words: list[str]) -> int:
    """Draw a network that is wired by a graph, and measure the graph."""
    parser = VerbParser(
        "topology draw",
        "Draw a network that is wired by a graph, in topological levels, with weights and biases as colors, and\n"
        "measure the graph. Give a run that was trained with `network.torso = topology` (its best weights are shown),\n"
        "or a JSON file in NetworkX's node-link form. FILE.mp4 and FILE.gif show the weights over training, from the\n"
        "checkpoints the run kept (train with `--checkpoint.every 2k --checkpoint.keep 100`).",
        "hotloop topology draw runs/topology-dqn-20260101-120000 --out network.svg",
    )
    parser.add_argument("what", metavar="RUN|GRAPH.json", help="a run's directory, or a graph")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("network.svg"),
        metavar="FILE",
        help=".svg (default: network.svg), .png, .mp4 or .gif",
    )
    arguments = parser.parse_args(words)
    drawn = drawing.draw(arguments.what, arguments.out)
    if drawn.checkpoints:
        say(f"{drawn.checkpoints} checkpoints")
    if arguments.json:
        print_json({"picture": str(drawn.file), **drawn.measures.as_data()})
    else:
        _print(drawn.measures)
    say(f"wrote {drawn.file}")
    return 0


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
