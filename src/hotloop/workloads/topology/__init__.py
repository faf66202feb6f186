"""Networks wired like any directed acyclic graph: presets that train them on CartPole, and their drawings.

The network itself is `hotloop.nets.topology`.

Files:
    draw.py          `draw`: a network that is wired by a graph as a picture or an animation, and the measures of its
                     graph
    draw_history.py  A network's weights over training, from the checkpoints that a run kept
    draw_picture.py  The same network as pixels: one picture, or the frames of an animation over training
    verbs.py         `hotloop topology draw RUN|GRAPH.json`
"""

from pathlib import Path

from hotloop.core.workloads import Workload

workload = Workload(
    name="topology",
    about="Networks wired like any graph of single nodes, on CartPole.",
    presets=Path(__file__).parent / "presets",
    verbs={"draw": "hotloop.workloads.topology.verbs:draw"},
)
