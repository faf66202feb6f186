"""Durotaxis for anybody's agent: importing this module registers `hotloop/Durotaxis-v0` with Gymnasium.

    gymnasium.make("hotloop.workloads.durotaxis.gymnasium_env:hotloop/Durotaxis-v0", substrate="exponential")

An observation is a graph of node and edge features; `info["graph"]` holds the 19 features of the whole graph,
`info["rewards"]` after every step the fourteen entries of the reward record by name (`node_rewards` a list), and
`info["action_mask"]` of a curriculum which numbers count. Where nodes choose (`action="per_node"`), an action has as
many choices as a colony may have nodes, of which those of the nodes there are count.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.spaces import GraphInstance

from hotloop.core.errors import EnvError
from hotloop.core.graphs import Graphs
from hotloop.core.rng import derive_seed
from hotloop.core.types import Array, NodeAction, NodeActions
from hotloop.envs.as_gymnasium import register
from hotloop.workloads.durotaxis.env import Durotaxis
from hotloop.workloads.durotaxis.observation_kernels import NUM_EDGE_FEATURES, NUM_NODE_FEATURES

ENV_ID = "hotloop/Durotaxis-v0"


class DurotaxisEnv(gymnasium.Env[GraphInstance, Any]):
    """One colony; keyword arguments are the fields of `DurotaxisSettings`. `info` of a finished episode has its
    measures."""

    metadata = {"render_modes": []}

    def __init__(self, **options: Any) -> None:
        self._durotaxis = Durotaxis(1, np.zeros(1, np.uint64), **options)
        self._durotaxis.hold_finished()
        self.observation_space = _observation_space()
        self.action_space = _action_space(self._durotaxis)
        self._seeded = False
        self._num_nodes = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[GraphInstance, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None or not self._seeded:
            number = int(self.np_random.integers(2**63)) if seed is None else seed
            stream = np.array([[derive_seed(number, "durotaxis")]], np.uint64)
            self._durotaxis.set_state({**self._durotaxis.get_state(), "generator": stream})
            self._seeded = True
        graphs, mask = self._durotaxis.reset()
        return self._seen(graphs, mask)

    def step(self, action: Any) -> tuple[GraphInstance, float, bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            raise EnvError(f"action {action!r} is not in {self.action_space}", "`action_space.sample()` gives one")
        step = self._durotaxis.step(self._translated(action))
        obs, info = self._seen(step.obs, step.action_mask)
        info["rewards"] = {name: values[0].tolist() for name, values in self._durotaxis.record.items()}
        terminated, truncated = bool(step.terminated[0]), bool(step.truncated[0])
        if terminated or truncated:
            info |= {name: values[0].item() for name, values in step.episode_stats.items()}
        return obs, float(step.reward[0]), terminated, truncated, info

    def _translated(self, action: Any) -> Array | NodeAction:
        if not isinstance(self._durotaxis.action_spec, NodeActions):
            return action[None]
        return NodeAction(action["numbers"][None], action["choices"][: self._num_nodes])

    def _seen(self, graphs: Any, mask: Array | None) -> tuple[GraphInstance, dict[str, Any]]:
        assert isinstance(graphs, Graphs)
        self._num_nodes = len(graphs.nodes)
        info = {"graph": graphs.graph[0]} | ({} if mask is None else {"action_mask": mask[0]})
        return GraphInstance(graphs.nodes, graphs.edge_features, graphs.edges), info


def _observation_space() -> spaces.Graph:
    node = spaces.Box(0.0, np.inf, (NUM_NODE_FEATURES,), np.float32)
    edge = spaces.Box(np.array([0.0, -1.0, -1.0], np.float32), np.array([np.inf, 1.0, 1.0], np.float32))
    assert edge.shape == (NUM_EDGE_FEATURES,)
    return spaces.Graph(node, edge)


def _action_space(durotaxis: Durotaxis) -> Any:
    actions = durotaxis.action_spec
    numbers = actions.numbers if isinstance(actions, NodeActions) else actions
    box = spaces.Box(np.array(numbers.low, np.float32), np.array(numbers.high, np.float32))
    if not isinstance(actions, NodeActions):
        return box
    return spaces.Dict({"numbers": box, "choices": spaces.MultiBinary(durotaxis.settings.max_nodes)})


register(ENV_ID, DurotaxisEnv)
