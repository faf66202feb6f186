"""How an agent acts on graphs: by drawing while it learns, by its likeliest action when it is judged."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from hotloop.core.graphs import Graphs
from hotloop.core.types import Action, Array, GraphActionSpec, GraphRolloutRow, NodeAction, NodeActions
from hotloop.lanes.graph_objective import GraphOutputs
from hotloop.lanes.spec import Lane
from hotloop.learners.action_map import NO_MASK, ranges
from hotloop.learners.learning import Drawing
from hotloop.maths.action_kernels import draw_graph_actions

NO_LOGITS = np.zeros((0, 0), np.float32)


class GraphActionMap:
    """Squashed numbers for each graph, and where nodes choose, a choice for each node."""

    def __init__(self, spec: GraphActionSpec) -> None:
        self.per_node = isinstance(spec, NodeActions)
        self._numbers = spec.numbers if isinstance(spec, NodeActions) else spec
        self._middle, self._half = ranges(self._numbers, squashed=True)

    @property
    def num_continuous(self) -> int:
        return len(self._numbers.low)

    def draw(self, state: Array, graphs: Graphs, outputs: GraphOutputs) -> tuple[Array, Array | None]:
        """Numbers before squashing [N, C] and choices [nodes], advancing the generator `state` [1]."""
        numbers = np.empty_like(outputs.mean)
        logits = NO_LOGITS if outputs.node_logits is None else outputs.node_logits
        choices = np.empty(len(logits), np.int64)
        numbers_of = (outputs.mean, outputs.log_std)
        draw_graph_actions(state, *numbers_of, logits, NO_MASK, graphs.node_offsets, numbers, choices)
        return numbers, choices if self.per_node else None

    def best(self, outputs: GraphOutputs) -> tuple[Array, Array | None]:
        choices = None if outputs.node_logits is None else outputs.node_logits.argmax(1)
        return outputs.mean, choices

    def to_env(self, numbers: Array, choices: Array | None) -> Action:
        scaled = (self._middle + self._half * np.tanh(numbers)).astype(np.float32)
        return scaled if choices is None else NodeAction(scaled, choices)


class ActingLearner(Protocol):
    """A learner, as far as acting needs it."""

    lane: Lane
    actions: GraphActionMap

    def facts(self) -> dict[str, float]: ...


class GraphStochasticPolicy(Drawing):
    """Draws from the policy, and returns with the action what learning from it will need."""

    def __init__(self, learner: ActingLearner, seed: int) -> None:
        self._learner, self._lane, self._actions = learner, learner.lane, learner.actions
        super().__init__(seed)

    def act(self, obs: Graphs, action_mask: Array | None, out: None = None) -> tuple[Action, GraphRolloutRow]:
        outputs = GraphOutputs._make(self._lane.infer(obs))
        numbers, choices = self._actions.draw(self.rng, obs, outputs)
        return self._actions.to_env(numbers, choices), GraphRolloutRow(obs, outputs, numbers, choices, action_mask)

    def facts(self) -> dict[str, float]:
        return self._learner.facts()


class GraphGreedyPolicy:
    """The middle of what numbers are drawn from, and the likeliest choices: for evaluation."""

    def __init__(self, learner: ActingLearner) -> None:
        self._lane, self._actions = learner.lane, learner.actions

    def act(self, obs: Graphs, action_mask: Array | None) -> Action:
        return self._actions.to_env(*self._actions.best(GraphOutputs._make(self._lane.infer(obs))))
