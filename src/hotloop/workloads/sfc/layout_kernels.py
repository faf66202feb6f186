"""What the kernels are handed: each network with its requests as one record, the rules as numbers.

A record is one pointer to pass on, which halved the time to compile against a tuple of arrays; its sizes are those of
the largest network allowed, since others would have to be compiled for. Shape letters: D data centres, V VNFs,
S services, B bundles, Q requests. A bundle is numbered `round * S + service`; a request by its slot, which grows with
its age.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hotloop.core.types import Array
from hotloop.workloads.sfc.settings import SfcSettings
from hotloop.workloads.sfc.tables_kernels import (
    LONGEST_CHAIN,
    MOST_CENTRES,
    MOST_ROUNDS,
    NUM_SERVICES,
    NUM_VNFS,
    SLOTS_PER_ROUND,
)

WAITS, RUNS, SATISFIED, DROPPED = 1, 2, 3, 4  # World.state of a request
MOST_RUNNING = 12  # one placement a unit, each done within 11
NUM_USES = 4
CPU_USE, RAM_USE, STORAGE_USE, BANDWIDTH_USE = range(NUM_USES)

_D, _V, _S, _B, _Q = MOST_CENTRES, NUM_VNFS, NUM_SERVICES, MOST_ROUNDS * NUM_SERVICES, MOST_ROUNDS * SLOTS_PER_ROUND
WORLD = np.dtype(
    [
        ("generator", np.uint64, (1,)),
        ("now", np.int64),  # units
        ("steps", np.int64),
        ("num_centres", np.int64),
        ("rounds", np.int64),
        ("arrived", np.int64),  # rounds so far
        ("turn", np.int64),  # of the cycle
        ("visited", np.int64),  # centre
        ("order", np.int32, (_D,)),  # the cycle
        ("cpu", np.int32, (_D,)),  # capacity
        ("free_cpu", np.int32, (_D,)),
        ("free_ram", np.int32, (_D,)),
        ("free_storage", np.int32, (_D,)),
        ("installed", np.int32, (_D, _V)),
        ("idle", np.int32, (_D, _V)),
        ("length", np.int32, (_D, _D)),  # km of the link
        ("shortest", np.int32, (_D, _D)),  # km of the shortest path
        ("hop", np.int32, (_D, _D)),  # its first centre
        ("free_rate", np.int32, (_D, _D)),  # kbps of the link
        ("size", np.int32, (_B,)),
        ("rate", np.int32, (_B,)),  # kbps
        ("source", np.int32, (_B,)),
        ("destination", np.int32, (_B,)),
        ("pending", np.int32, (_B,)),
        ("waiting", np.int32, (_B, LONGEST_CHAIN)),  # requests at each stage that can have their next VNF
        ("state", np.int8, (_Q,)),
        ("placed", np.int8, (_Q,)),  # VNFs so far
        ("where", np.int8, (_Q, LONGEST_CHAIN)),  # the centre of each
        ("ends", np.int32, (MOST_RUNNING,)),  # of what runs: when it ends (0: nothing), its centre, VNF and request
        ("runs_at", np.int32, (MOST_RUNNING,)),
        ("runs_vnf", np.int32, (MOST_RUNNING,)),
        ("runs_slot", np.int32, (MOST_RUNNING,)),
        ("all_pending", np.int32, (_S,)),
        ("to_go", np.int32, (_S, _V)),  # VNFs that pending requests still need
        ("next_vnf", np.int32, (_S, _V)),  # the first of those
        ("here", np.int32, (_D, _S, _V)),  # VNFs of pending requests on each centre
        ("candidate", np.int32, (_V,)),  # who would get each VNF at the visited centre
        ("generated", np.int64, (_S,)),
        ("satisfied", np.int64, (_S,)),
        ("dropped", np.int64, (_S,)),
        ("delay", np.int64, (_S,)),  # of the satisfied, in thirds of a unit
        ("carried", np.int64, (_S,)),  # kbps of the satisfied
        ("use", np.int64, (NUM_USES,)),  # CPU, RAM, storage and bandwidth in use
        ("used", np.int64, (NUM_USES,)),  # summed over all units
    ],
    align=True,
)

# a row of the observation: the three parts side by side
NUM_CENTRE_FEATURES = 2 * NUM_VNFS + 2
NUM_PLACED_FEATURES = 1 + 2 * NUM_VNFS
NUM_REQUEST_FEATURES = 4 + NUM_VNFS
PLACED_AT = NUM_CENTRE_FEATURES
REQUESTS_AT = PLACED_AT + NUM_SERVICES * NUM_PLACED_FEATURES
OBS_SIZE = REQUESTS_AT + NUM_SERVICES * NUM_REQUEST_FEATURES
SCALED = (np.log1p(np.arange(2 * _Q)) / 5.0).astype(np.float32)  # counts as they are seen


class SfcRules(NamedTuple):
    min_centres: int
    max_centres: int
    min_rounds: int
    max_rounds: int
    max_steps: int
    restarts: bool  # whether a finished episode starts anew in the same step
    satisfied_reward: float
    dropped_reward: float
    invalid_reward: float
    uninstall_needed_reward: float


World = Any
"""A record of `WORLD`, in kernels."""


def empty_worlds(num_envs: int, seeds: Array) -> Array:
    worlds = np.zeros(num_envs, WORLD)
    worlds["generator"][:, 0] = seeds
    return worlds


def rules_of(settings: SfcSettings, max_episode_steps: int, restarts: bool = True) -> SfcRules:
    return SfcRules(
        min_centres=settings.min_data_centres,
        max_centres=settings.max_data_centres,
        min_rounds=settings.min_request_count,
        max_rounds=settings.max_request_count,
        max_steps=max_episode_steps or 2**62,
        restarts=restarts,
        satisfied_reward=settings.satisfied_reward,
        dropped_reward=settings.dropped_reward,
        invalid_reward=settings.invalid_reward,
        uninstall_needed_reward=settings.uninstall_needed_reward,
    )
