"""One moment of a network as plain data, for pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hotloop.core.types import Array
from hotloop.envs.sfc.layout_kernels import RUNS
from hotloop.envs.sfc.tables_kernels import (
    FIRST_SLOT,
    LINK_CAPACITY,
    NUM_SERVICES,
    SERVICES,
    SLOTS_PER_ROUND,
    UNITS_PER_MS,
    VNFS,
)

State = Mapping[str, Array]


def snapshot(state: State, index: int) -> dict[str, Any]:
    """Time, load of centres and links, the chains being placed, and how the requests of each service fare."""
    count = int(state["num_centres"][index])
    pairs = [(one, other) for one in range(count) for other in range(one + 1, count)]
    return {
        "ms": int(state["now"][index]) / UNITS_PER_MS,
        "visited": int(state["visited"][index]),
        "centres": [
            [int(state["cpu"][index, place] - state["free_cpu"][index, place]), int(state["cpu"][index, place])]
            for place in range(count)
        ],
        "links": [
            [one, other, round(1 - int(state["free_rate"][index, one, other]) / LINK_CAPACITY, 3)]
            for one, other in pairs
        ],
        "services": np.stack([state[name][index] for name in ("satisfied", "all_pending", "dropped")], 1).tolist(),
        "chains": chains(state, index),
    }


def chains(state: State, index: int) -> list[dict[str, Any]]:
    """The requests that a VNF runs for now: whose, which VNF, and the centres from its source to there."""
    found = []
    for row in np.flatnonzero(state["ends"][index]):
        slot = int(state["runs_slot"][index, row])
        if state["state"][index, slot] == RUNS:
            bundle = bundle_of_slot(slot)
            placed = state["where"][index, slot, : state["placed"][index, slot]].tolist()
            found.append(
                {
                    "service": SERVICES[bundle % NUM_SERVICES].replace("_", " "),
                    "vnf": VNFS[int(state["runs_vnf"][index, row])].upper(),
                    "way": [int(state["source"][index, bundle]), *placed],
                    "goal": int(state["destination"][index, bundle]),
                }
            )
    return found


def bundle_of_slot(slot: int) -> int:
    service = int((slot % SLOTS_PER_ROUND >= FIRST_SLOT).sum()) - 1
    return slot // SLOTS_PER_ROUND * NUM_SERVICES + service
