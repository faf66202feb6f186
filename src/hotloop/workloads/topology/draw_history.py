"""A network's weights over training, from the checkpoints that a run kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hotloop.core.errors import CheckpointError, RunError
from hotloop.core.terminal import say
from hotloop.core.types import Array
from hotloop.nets.topology.graph import Topology
from hotloop.runs import checkpoint
from hotloop.runs.directory import Run
from hotloop.viewing.video import Video
from hotloop.workloads.topology.draw_picture import Limits, NetworkPainter, limits_of

FRAMES_PER_SECOND = 15.0
SECONDS = 10.0
"""Of the whole animation."""


@dataclass(frozen=True)
class Snapshot:
    env_steps: int
    weights: Array  # [E]
    biases: Array  # [V - I]


def snapshots(run: Run, graph: Topology) -> list[Snapshot]:
    """One of each good checkpoint, in the order of training."""
    made = []
    for path in sorted(run.checkpoints.iterdir()) if run.checkpoints.is_dir() else []:
        try:
            state, _ = checkpoint.load(path)
        except CheckpointError as error:
            say(f"left out: {error}")
            continue
        values = np.asarray(state["learner"]["online"])
        split = len(graph.edges())  # the module's parameters: `weight` [E], then `bias` [V - I]
        made.append(Snapshot(int(state["counters"]["env_steps"]), values[:split], values[split:]))
    return made


def animate(run: Run, graph: Topology, path: Path) -> int:
    """Write the animation; returns how many checkpoints it shows."""
    shown = snapshots(run, graph)
    if len(shown) < 2:
        raise RunError(
            f"{run.path} kept {len(shown)} checkpoint{'' if len(shown) == 1 else 's'}; an animation needs two and more",
            "train with more of them: `--checkpoint.every 2k --checkpoint.keep 100`",
        )
    painter, limits = NetworkPainter(graph), _common_limits(shown)
    last = shown[-1].env_steps
    with Video(path, FRAMES_PER_SECOND) as video:
        for one in in_between(shown, round(FRAMES_PER_SECOND * SECONDS)):
            video.add(painter.paint(one.weights, one.biases, limits, one.env_steps / last))
    return len(shown)


def in_between(shown: list[Snapshot], frames: int) -> Iterator[Snapshot]:
    """Evenly over env steps; between two snapshots the numbers move in a straight line, which is a drawing aid."""
    places = [one.env_steps for one in shown]
    for env_steps in np.linspace(places[0], places[-1], frames):
        after = min(max(1, int(np.searchsorted(places, env_steps))), len(shown) - 1)
        first, second = shown[after - 1], shown[after]
        share = (env_steps - first.env_steps) / max(1, second.env_steps - first.env_steps)
        weights = first.weights + share * (second.weights - first.weights)
        yield Snapshot(int(env_steps), weights, first.biases + share * (second.biases - first.biases))


def _common_limits(shown: list[Snapshot]) -> Limits:
    each = [limits_of(one.weights, one.biases) for one in shown]
    return Limits(max(one.weight for one in each), max(one.bias for one in each))
