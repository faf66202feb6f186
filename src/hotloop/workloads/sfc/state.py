"""What a saved network can be. A file may hold anything, and kernels look at nothing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hotloop.core.errors import EnvError
from hotloop.core.types import Array
from hotloop.workloads.sfc.layout_kernels import DROPPED, MOST_RUNNING, RUNS, WAITS
from hotloop.workloads.sfc.tables_kernels import (
    CHAIN_LENGTH,
    FIRST_SLOT,
    LONGEST_CHAIN,
    MOST,
    MOST_CENTRES,
    MOST_ROUNDS,
    NUM_SERVICES,
    NUM_VNFS,
    PROCESSING,
    SLOTS_PER_ROUND,
)

NUM_REQUESTS = MOST_ROUNDS * SLOTS_PER_ROUND
_PLACE, _REQUEST, _COUNT = (0, MOST_CENTRES - 1), (0, NUM_REQUESTS - 1), (0, NUM_REQUESTS)
RANGES = {
    "now": (0, 2**31), "steps": (0, 2**62), "num_centres": (2, MOST_CENTRES), "rounds": (0, MOST_ROUNDS),
    "arrived": (0, MOST_ROUNDS), "turn": _PLACE, "visited": _PLACE, "order": _PLACE, "cpu": (0, 2**20),
    "free_cpu": (0, 2**20), "free_ram": (0, 2**20), "free_storage": (0, 2**20), "installed": _COUNT, "idle": _COUNT,
    "length": (0, 2**20), "shortest": (0, 2**20), "hop": _PLACE, "free_rate": (0, 2**30), "size": (0, max(MOST)),
    "rate": (0, 2**20), "source": _PLACE, "destination": _PLACE, "pending": _COUNT, "waiting": _COUNT,
    "state": (0, DROPPED), "placed": (0, LONGEST_CHAIN), "where": _PLACE, "ends": (0, 2**31 - 1), "runs_at": _PLACE,
    "runs_vnf": (0, NUM_VNFS - 1), "runs_slot": _REQUEST, "all_pending": _COUNT, "to_go": (0, 2 * NUM_REQUESTS - 1),
    "next_vnf": _COUNT, "here": _COUNT, "candidate": (-1, NUM_REQUESTS - 1),
}  # fmt: skip
"""What each field can hold, lowest and highest."""


def require_possible(state: Mapping[str, Array]) -> None:
    """Whatever a kernel takes for an index is one, and every way it follows has an end: a file may hold anything."""
    bad = [name for name, (low, high) in RANGES.items() if ((state[name] < low) | (state[name] > high)).any()]
    if not (bad or _chains_fit(state)):
        bad = ["placed"]
    if not (bad or _ways_end(state["hop"], state["num_centres"])):
        bad = ["hop"]
    if not (bad or _runs_end(state)):
        bad = ["ends"]
    if bad:
        raise EnvError(f"saved `{bad[0]}` of `sfc` is of no possible network", "restore a state that `get_state` gave")


def _chains_fit(state: Mapping[str, Array]) -> bool:
    """A request has no more VNFs than its service, one that waits or runs fewer or one at least; bundles fit."""
    service = np.tile(np.repeat(np.arange(NUM_SERVICES), np.diff([*FIRST_SLOT, SLOTS_PER_ROUND])), MOST_ROUNDS)
    length, placed, what = CHAIN_LENGTH[service], state["placed"], state["state"]
    sizes = (state["size"] <= np.tile(MOST, MOST_ROUNDS)).all() and (state["arrived"] <= state["rounds"]).all()
    fits = (placed <= length) & ~((what == WAITS) & (placed >= length)) & ~((what == RUNS) & (placed < 1))
    return bool(sizes and fits.all() and (state["turn"] < state["num_centres"]).all())


def _ways_end(hop: Array, num_centres: Array) -> bool:
    env, place, goal = np.ogrid[: len(hop), :MOST_CENTRES, :MOST_CENTRES]
    there = (place < num_centres[:, None, None]) & (goal < num_centres[:, None, None])
    at = np.broadcast_to(place, hop.shape)
    for _ in range(MOST_CENTRES):
        at = np.where(at == goal, at, hop[env, at, goal])
    return bool((~there | (at == goal)).all())


def _runs_end(state: Mapping[str, Array]) -> bool:
    """One VNF is begun a unit, and none takes longer than there is room for."""
    ends, now = state["ends"].astype(np.int64), state["now"][:, None]
    begun = np.where(ends > 0, ends - PROCESSING[state["runs_vnf"]], -1 - np.arange(MOST_RUNNING))
    twice = (np.diff(np.sort(begun, axis=1), axis=1) == 0).any()
    return not (twice or ((ends > 0) & ((ends <= now) | (begun > now))).any())
