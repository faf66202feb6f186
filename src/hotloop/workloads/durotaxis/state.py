"""A saved state: what there is of every colony and nothing else, so that equal colonies have equal states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hotloop.core.errors import EnvError
from hotloop.core.types import Array
from hotloop.workloads.durotaxis.layout_kernels import RECORD
from hotloop.workloads.durotaxis.state_kernels import pack_all, unpack_all

NAMES = RECORD.names or ()
SUMS = "reward_sums"
HINT = "restore into as many envs with the same `max_nodes` as were saved"


def pack(colonies: tuple[Array, ...], rules: Array) -> dict[str, Array]:
    """The records' fields, each [N]; `positions` [V, 2], `ages` [V] and `edges` [E, 2] of all colonies in turn; and the
    `field` they are in, width and height, for whoever draws them."""
    records = colonies[0]
    num_nodes, num_edges = records["num_nodes"].sum(), records["num_edges"].sum()
    nodes = {"positions": np.empty((num_nodes, 2)), "ages": np.empty(num_nodes, np.int64)}
    edges = np.empty((num_edges, 2), np.int64)
    pack_all(colonies, *nodes.values(), edges)
    field = np.array([rules[0]["width"], rules[0]["height"]])
    return {name: records[name].copy() for name in NAMES} | nodes | {"edges": edges, "field": field}


def unpack(state: Mapping[str, Array], colonies: tuple[Array, ...], scratch: tuple[Array, ...], rules: Array) -> None:
    """Nothing is changed unless all of it fits."""
    records = colonies[0]
    for name in NAMES:
        _require_like(name, state[name], records[name].dtype, records[name].shape)
    _check_nodes(state, int(rules[0]["max_nodes"]))
    _check_field(state["field"], rules[0])
    for name in NAMES:
        records[name] = state[name]
    rows = (np.ascontiguousarray(state[name]) for name in ("positions", "ages", "edges"))
    unpack_all(colonies, scratch, rules, *rows)


def reward_sums(state: Mapping[str, Array], shape: tuple[int, ...]) -> Array:
    """What each entry of the reward record came to in the episodes under way. States saved before there were such sums
    have none: not known, NaN, and so left out of every mean."""
    if SUMS not in state:
        return np.full(shape, np.nan)
    _require_like(SUMS, state[SUMS], np.dtype(np.float64), shape)
    return state[SUMS]


def _check_nodes(state: Mapping[str, Array], max_nodes: int) -> None:
    """Whatever a kernel takes for an index is one: a file may hold anything."""
    num_nodes, num_edges, edges = state["num_nodes"], state["num_edges"], state["edges"]
    room = np.where(state["over"] == 0, max_nodes, 2 * max_nodes)  # a colony that goes on has children
    if (num_nodes < 0).any() or (num_nodes > room).any() or (num_edges < 0).any():
        raise EnvError(f"a colony of `durotaxis` with {num_nodes.max()} nodes; there is room for {room.max()}", HINT)
    if (state["milestones"] < 0).any():
        raise EnvError("a saved colony of `durotaxis` has passed fewer than no milestones", HINT)
    all_nodes, all_edges = int(num_nodes.sum()), int(num_edges.sum())
    _require_like("positions", state["positions"], np.dtype(np.float64), (all_nodes, 2))
    _require_like("ages", state["ages"], np.dtype(np.int64), (all_nodes,))
    _require_like("edges", edges, np.dtype(np.int64), (all_edges, 2))
    if ((edges < 0) | (edges >= np.repeat(num_nodes, num_edges)[:, None])).any():
        raise EnvError("a saved edge of `durotaxis` names a node that is not there", HINT)


def _check_field(field: Array, rules: Any) -> None:
    if field.tolist() != [rules["width"], rules["height"]]:
        shown = " x ".join(f"{size:g}" for size in field)
        raise EnvError(f"colonies of `durotaxis` were saved in a field of {shown}", "restore into such a one")


def _require_like(name: str, value: Array, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    if value.shape != shape or value.dtype != dtype:
        raise EnvError(f"saved `{name}` of `durotaxis` is {value.dtype}{value.shape}; expected {dtype}{shape}", HINT)
