"""Random legal play, recorded: the raw material of the contract checks.

What the contract asks of observations that are graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from hotloop.core.graphs import FIELDS, Graphs, GraphSpec, same_graphs
from hotloop.core.rng import derive_seeds, stream
from hotloop.core.types import (
    ActionSpec,
    Array,
    BoxActions,
    DiscreteActions,
    EnvStep,
    HybridActions,
    NodeAction,
    NodeActions,
    Obs,
    VecEnv,
    map_obs,
)

Factory = Callable[[int, Array], VecEnv]
"""Makes `num_envs` envs from one seed each."""


class Chooser:
    """Random legal actions; env i's do not depend on how many envs there are."""

    def __init__(self, num_envs: int) -> None:
        self._streams = [stream(0, "contract", index) for index in range(num_envs)]

    def choose(self, actions: ActionSpec, obs: Obs, mask: Array | None) -> Array | NodeAction:
        if isinstance(actions, NodeActions):
            assert isinstance(obs, Graphs)
            numbers = self.choose(actions.numbers, obs, mask)
            pairs = zip(self._streams, obs.num_nodes, strict=True)
            choices = [(draw.random(count) * actions.count).astype(np.int64) for draw, count in pairs]
            return NodeAction(numbers, np.concatenate(choices))
        masks = [None] * len(self._streams) if mask is None else list(mask)
        rows = [_random_action(draw, actions, row) for draw, row in zip(self._streams, masks, strict=True)]
        return np.array(rows, np.float32 if isinstance(actions, BoxActions | HybridActions) else np.int64)


def _random_action(draw: np.random.Generator, actions: ActionSpec, mask: Array | None) -> Any:
    if isinstance(actions, BoxActions):
        low, high = np.maximum(actions.low, -10.0), np.minimum(actions.high, 10.0)  # unbounded ones too
        return (low + draw.random(len(low)) * (high - low)).reshape(actions.shape)
    if isinstance(actions, HybridActions):
        choices = _random_action(draw, actions.choices, mask)
        return [*choices, *_random_action(draw, actions.numbers, None).reshape(-1)]
    if isinstance(actions, DiscreteActions):
        return _pick(draw, np.arange(actions.count) if mask is None else np.flatnonzero(mask))
    allowed = np.ones(actions.mask_width, bool) if mask is None else mask
    parts = np.split(allowed, np.cumsum(actions.counts)[:-1])
    return [_pick(draw, np.flatnonzero(part)) for part in parts]


def _pick(draw: np.random.Generator, choices: Array) -> int:
    return choices[int(draw.random() * len(choices))]


@dataclass
class PlayRecording:
    first_obs: Obs
    first_mask: Array | None
    steps: list[EnvStep]


def seeds_for(num_envs: int, name: str = "contract") -> Array:
    return derive_seeds(0, num_envs, name)


def play(factory: Factory, num_envs: int, env_steps: int) -> PlayRecording:
    """Play about `env_steps` in fresh envs, which are closed afterwards."""
    envs = factory(num_envs, seeds_for(num_envs))
    try:
        obs, mask = envs.reset()
        return PlayRecording(obs, mask, play_on(envs, Chooser(num_envs), obs, mask, max(1, env_steps // num_envs)))
    finally:
        envs.close()


def play_on(envs: VecEnv, chooser: Chooser, obs: Obs, mask: Array | None, calls: int) -> list[EnvStep]:
    steps = []
    for _ in range(calls):
        steps.append(envs.step(chooser.choose(envs.action_spec, obs, mask)))
        obs, mask = steps[-1].obs, steps[-1].action_mask
    return steps


def copy_of(value: Any) -> Any:
    """A deep copy of an array, a dict of arrays, graphs, or an EnvStep."""
    if isinstance(value, EnvStep):
        return EnvStep(**{field.name: copy_of(getattr(value, field.name)) for field in fields(value)})
    if value is None:
        return None
    return value.copy() if isinstance(value, Graphs) else map_obs(np.copy, value)


def difference(one: EnvStep, other: EnvStep, envs: slice = slice(None)) -> str:
    """The first field in which two steps differ over `envs`, or an empty text."""
    done = (one.terminated | one.truncated)[envs]
    for field in fields(one):
        rows = done if field.name == "episode_stats" else np.ones_like(done)
        if not _equal(getattr(one, field.name), getattr(other, field.name), envs, rows):
            return field.name
    return ""


def _equal(one: Any, other: Any, envs: slice, rows: Array) -> bool:
    """Whether two values agree over `rows` of `envs`; None stands for True everywhere (`valid`)."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_equal(one[name], other[name], envs, rows) for name in one)
    if one is None or other is None:
        return all(bool(np.all(value[envs])) for value in (one, other) if value is not None)
    return same(one[envs][rows], other[envs][rows])


def same(one: Any, other: Any) -> bool:
    """Whether two arrays or graphs hold the same; NaN, which some measures use for nothing, is equal to itself."""
    if isinstance(one, Graphs):
        return same_graphs(one, other)
    return bool(np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind == "f"))


def fault_in(graphs: object, spec: GraphSpec, num_envs: int) -> str:
    """What is wrong with the shape of N graphs, or an empty text."""
    if not isinstance(graphs, Graphs):
        return f"is a {type(graphs).__name__} where Graphs were declared"
    for name, (shape, dtype) in _expected(graphs, spec, num_envs).items():
        array = getattr(graphs, name)
        if array.shape != shape or array.dtype != dtype:
            return f"has `{name}` {array.dtype}{array.shape} where {np.dtype(dtype)}{shape} was expected"
    for name in ("node_offsets", "edge_offsets"):
        offsets = getattr(graphs, name)
        if offsets[0] != 0 or (np.diff(offsets) < 0).any():
            return f"has `{name}` that do not rise from 0"
    most = np.repeat(graphs.num_nodes, np.diff(graphs.edge_offsets))[:, None]  # [edges of all, 1]
    if ((graphs.edges < 0) | (graphs.edges >= most)).any():
        return "has an edge to a node that is not in its graph"
    return ""


def _expected(graphs: Graphs, spec: GraphSpec, num_envs: int) -> dict[str, tuple[tuple[int, ...], type]]:
    num_nodes, num_edges = int(graphs.node_offsets[-1]), int(graphs.edge_offsets[-1])
    shapes: tuple[tuple[tuple[int, ...], type], ...] = (
        ((num_nodes, spec.node_features), np.float32),
        ((num_edges, 2), np.int32),
        ((num_edges, spec.edge_features), np.float32),
        ((num_envs, spec.graph_features), np.float32),
        ((num_envs + 1,), np.int64),
        ((num_envs + 1,), np.int64),
    )
    return dict(zip(FIELDS, shapes, strict=True))


def finite(graphs: Graphs) -> list[Array]:
    """The arrays that hold measures."""
    return [graphs.nodes, graphs.edge_features, graphs.graph]
