"""One colony as it is, for drawing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hotloop.core.types import Array
from hotloop.envs.durotaxis.layout_kernels import SUBSTRATES


def snapshot(state: Mapping[str, Array], index: int) -> dict[str, Any]:
    """From a saved state: `positions` [V, 2], `ages` [V] and `edges` [E, 2] as arrays, the `field` (width, height), the
    substrate's kind, m and b, `centroid` (x, y), `step` of the episode, and the last `action` as carried out (ratio,
    gamma, alpha, noise, theta).

    An empty colony's centroid is the last one it had.
    """
    nodes = _part(state["num_nodes"], index)
    return {
        "positions": state["positions"][nodes].copy(),
        "ages": state["ages"][nodes].copy(),
        "edges": state["edges"][_part(state["num_edges"], index)].copy(),
        "field": state["field"].tolist(),
        "substrate": SUBSTRATES[int(state["substrate"][index])],
        "m": float(state["m"][index]),
        "b": float(state["b"][index]),
        "centroid": state["centroid"][index].tolist(),
        "step": int(state["steps"][index]),
        "action": state["action"][index].tolist(),
    }


def _part(counts: Array, index: int) -> slice:
    start = int(counts[:index].sum())
    return slice(start, start + int(counts[index]))
