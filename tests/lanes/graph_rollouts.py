"""Rollouts over random graphs of different size."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.graphs import Graphs, GraphSpec, join_graphs
from hotloop.core.settings import build, merge
from hotloop.core.types import BoxActions, EnvStep, GraphRollout, GraphRolloutRow, NodeActions
from hotloop.lanes.graph_objective import GraphOutputs
from hotloop.learners.ppo import PPOLearner
from hotloop.presets.ppo_settings import PPOSettings
from hotloop.replay.rollout_buffer import GraphRolloutBuffer

STEPS, ENVS, PARTS = 4, 3, 2
SPEC = GraphSpec(node_features=2, edge_features=3, graph_features=4)
NUMBERS = BoxActions((-1.0, 0.0), (1.0, 10.0), (2,))
ACTIONS = {"numbers": NUMBERS, "per node": NodeActions(2, NUMBERS)}
BASE: dict[str, Any] = {
    "rollout_steps": STEPS,
    "batch_size": 4,
    "n_epochs": 2,
    "ent_coef": 0.01,
    "env": {"num_envs": ENVS},
    "network": {"graph": {"width": 8, "heads": 2, "layers": 1, "feed_forward": 8, "groups": 2}},
    "reward_parts": {"value_weights": [1.0, 0.5], "advantage_weights": [1.0, 0.25]},
}


def make_learner(kind: str = "numbers", **tree: Any) -> PPOLearner:
    return PPOLearner(build(PPOSettings, merge(BASE, tree)), SPEC, ACTIONS[kind])


def random_graphs(draw: np.random.Generator, count: int) -> Graphs:
    """A chain each, of 1 to 5 nodes."""
    made = []
    for _ in range(count):
        nodes = int(draw.integers(1, 6))
        edges = np.stack([np.arange(nodes - 1), np.arange(1, nodes)], 1).astype(np.int32)
        made.append(
            Graphs(
                nodes=draw.normal(size=(nodes, 2)).astype(np.float32),
                edges=edges,
                edge_features=draw.normal(size=(nodes - 1, 3)).astype(np.float32),
                graph=draw.normal(size=(1, 4)).astype(np.float32),
                node_offsets=np.array([0, nodes]),
                edge_offsets=np.array([0, nodes - 1]),
            )
        )
    return join_graphs(made)


def make_rollout(learner: PPOLearner, seed: int = 0, counts: np.ndarray | None = None) -> GraphRollout:
    """Filled as a run fills it, with an episode that ends and one that is cut off."""
    draw, state = np.random.default_rng(seed), np.array([seed], np.uint64)
    buffer = GraphRolloutBuffer((STEPS, ENVS), learner.actions.num_continuous, PARTS)
    for t in range(STEPS):
        graphs = random_graphs(draw, ENVS)
        outputs = GraphOutputs._make(learner.lane.infer(graphs))
        numbers, choices = learner.actions.draw(state, graphs, outputs)
        acted = GraphRolloutRow(graphs, outputs, numbers, choices, counts)
        flags = np.zeros((2, ENVS), bool)
        flags[0, 0], flags[1, 1] = t == 1, t == 2
        parts = draw.normal(size=(ENVS, PARTS)).astype(np.float32)
        step = EnvStep(graphs, parts[:, 0], flags[0], flags[1], random_graphs(draw, ENVS), reward_parts=parts)
        buffer.add(acted, step)
    learner.compute_advantages(buffer.data, random_graphs(draw, ENVS), buffer.timeouts())
    return buffer.data
