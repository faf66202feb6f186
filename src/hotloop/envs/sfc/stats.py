"""What an episode is judged by: who was accepted, how fast, how much was carried, and what that took."""

from __future__ import annotations

import numpy as np

from hotloop.core.types import Array
from hotloop.envs.sfc.tables_kernels import (
    KM_PER_UNIT,
    LINK_CAPACITY,
    NUM_SERVICES,
    RAM_CAPACITY,
    SERVICES,
    STORAGE_CAPACITY,
    UNITS_PER_MS,
)

KBPS_PER_MBPS = 1_000
NUM_SUMS = 4 * NUM_SERVICES + 7


def episode_stats(sums: Array) -> dict[str, Array]:
    """Name -> [N] from the sums [N, 31] of finished episodes, overall and by service.

    `acceptance`: share of the requests satisfied. `delay`: their mean end-to-end delay in ms, NaN where there are none.
    `throughput`: their bandwidth in Mbps. `*_use`: share of a resource in use, over the whole network and the whole
    episode.
    """
    by_service = sums[:, : 4 * NUM_SERVICES].reshape(-1, NUM_SERVICES, 4)
    stats = _measures(by_service.sum(axis=1), "")
    for index, service in enumerate(SERVICES):
        stats |= _measures(by_service[:, index], f"_{service}")
    return stats | _uses(sums[:, 4 * NUM_SERVICES :])


def _measures(sums: Array, suffix: str) -> dict[str, Array]:
    generated, satisfied, delay, carried = sums.T
    with np.errstate(invalid="ignore"):
        return {
            f"acceptance{suffix}": satisfied / generated,
            f"delay{suffix}": delay / (satisfied * (KM_PER_UNIT * UNITS_PER_MS)),
            f"throughput{suffix}": carried / KBPS_PER_MBPS,
        }


def _uses(sums: Array) -> dict[str, Array]:
    time, centres, cpu, *used = sums.T
    capacities = {
        "cpu_use": cpu,
        "ram_use": centres * RAM_CAPACITY,
        "storage_use": centres * STORAGE_CAPACITY,
        "bandwidth_use": centres * (centres - 1) // 2 * LINK_CAPACITY,
    }
    with np.errstate(invalid="ignore", divide="ignore"):
        return {name: part / (time * whole) for part, (name, whole) in zip(used, capacities.items(), strict=True)}
