"""A rule that does not learn, to compare with.

Which nodes lie left-most.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.errors import EnvError
from hotloop.core.graphs import Graphs
from hotloop.core.types import Array, NodeAction, NodeActions, Obs
from hotloop.workloads.durotaxis.layout_kernels import ALPHA, GAMMA, HIGH, LOW, NOISE, NUM_NUMBERS, RATIO, THETA
from hotloop.workloads.durotaxis.selection_kernels import select_leftmost


def leftmost(x: Array, k: int) -> Array:
    """The indices of the `k` smallest of `x` [V], ascending; of equal ones the older, that is the smaller index.

    The same nodes as `sorted(range(len(x)), key=lambda i: (x[i], i))[:k]`, in time O(V).
    """
    if not 0 <= k <= len(x):
        raise EnvError(f"`k` is {k} of {len(x)} nodes", f"expected 0 to {len(x)}")
    order = np.empty(len(x), np.int64)
    select_leftmost(np.ascontiguousarray(x, np.float64), len(x), k, order)
    chosen = order[:k]
    chosen.sort()
    return chosen


KEPT = 3
SEEN_X = 0  # column of a node's features


class Forward:
    """Children as far ahead as can be; of the colony only the three right-most are kept, or as few as the bound on the
    delete ratio allows."""

    def __init__(self, envs: Any) -> None:
        self._actions = envs.action_spec
        self._numbers = np.zeros(NUM_NUMBERS, np.float32)
        self._numbers[GAMMA], self._numbers[ALPHA] = HIGH[GAMMA], LOW[ALPHA]
        self._numbers[NOISE], self._numbers[THETA] = HIGH[NOISE], 0.0

    def act(self, obs: Obs, action_mask: Array | None) -> Array | NodeAction:
        assert isinstance(obs, Graphs)
        num_nodes = obs.num_nodes
        numbers = np.tile(self._numbers, (len(obs), 1))
        if isinstance(self._actions, NodeActions):
            return NodeAction(numbers[:, RATIO + 1 :], self._choices(obs))
        excess = np.maximum(num_nodes - KEPT, 0)
        share = (excess + 0.5) / np.maximum(num_nodes, 1)  # half a node more, so that rounding deletes no fewer
        numbers[:, RATIO] = np.minimum(share, self._actions.high[RATIO])
        return numbers

    def _choices(self, obs: Graphs) -> Array:
        choices = np.zeros(len(obs.nodes), np.int64)
        for first, end in zip(obs.node_offsets[:-1], obs.node_offsets[1:], strict=True):
            choices[first + leftmost(obs.nodes[first:end, SEEN_X], max(int(end - first) - KEPT, 0))] = 1
        return choices


BASELINES = {"forward": Forward}
