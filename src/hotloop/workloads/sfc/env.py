"""Service-chain provisioning, batched: one kernel call steps every network.

What an episode is judged by: who was accepted, how fast, how much was carried, and what that took.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from hotloop.core.errors import EnvError
from hotloop.core.settings import build, options_signature
from hotloop.core.types import Array, ArraySpec, DiscreteActions, EnvStep, Obs, ObsSpec
from hotloop.workloads.sfc.baselines import BASELINES
from hotloop.workloads.sfc.layout_kernels import (
    NUM_CENTRE_FEATURES,
    NUM_PLACED_FEATURES,
    NUM_REQUEST_FEATURES,
    OBS_SIZE,
    PLACED_AT,
    REQUESTS_AT,
    WORLD,
    empty_worlds,
    rules_of,
)
from hotloop.workloads.sfc.settings import SfcSettings
from hotloop.workloads.sfc.state import require_possible
from hotloop.workloads.sfc.step_kernels import step_all
from hotloop.workloads.sfc.tables_kernels import (
    KM_PER_UNIT,
    LINK_CAPACITY,
    NUM_ACTIONS,
    NUM_SERVICES,
    NUM_VNFS,
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


PARTS = {
    "data_centre": ArraySpec((NUM_CENTRE_FEATURES,)),
    "placed": ArraySpec((NUM_SERVICES, NUM_PLACED_FEATURES)),
    "requests": ArraySpec((NUM_SERVICES, NUM_REQUEST_FEATURES)),
}
"""The three parts of an observation; side by side in this order where they are flattened."""
STATE_NAMES = WORLD.names or ()


class Sfc:
    """Place the VNFs of service requests on data centres in time. Options are the fields of `SfcSettings`."""

    settings_type: ClassVar[type] = SfcSettings
    baselines: ClassVar[dict[str, Any]] = BASELINES
    has_action_mask = True
    saves_state = True

    def __init__(
        self,
        num_envs: int,
        seeds: Array,
        *,
        dict_obs: Literal["flatten", "keep"] = "keep",
        max_episode_steps: int = 0,
        **options: Any,
    ) -> None:
        self.settings: SfcSettings = build(SfcSettings, options, source="the options of `sfc`")
        self.num_envs = num_envs
        self.obs_spec: ObsSpec = dict(PARTS) if dict_obs == "keep" else ArraySpec((OBS_SIZE,))
        self.action_spec = DiscreteActions(NUM_ACTIONS)
        self.worlds = empty_worlds(num_envs, seeds)
        self._keep_parts, self._max_episode_steps = dict_obs == "keep", max_episode_steps
        self._rules = tuple(rules_of(self.settings, max_episode_steps))
        self._best = np.empty(NUM_VNFS)
        any_stats = episode_stats(np.ones((num_envs, NUM_SUMS), np.int64))
        self._no_stats = {name: np.zeros_like(values) for name, values in any_stats.items()}

    def reset(self) -> tuple[Obs, Array]:
        _, step = self._step(np.empty(0, np.int64))
        return step.obs, step.action_mask  # type: ignore[return-value]

    def step(self, action: Array) -> EnvStep:
        sums, step = self._step(action)
        if sums is not None:
            step.episode_stats = episode_stats(sums)
        return step

    def _step(self, action: Array) -> tuple[Array | None, EnvStep]:
        """One kernel call; the sums where any episode ended."""
        count = self.num_envs
        obs, final_obs = np.empty((2, count, OBS_SIZE), np.float32)
        mask, final_mask = np.empty((2, count, NUM_ACTIONS), np.bool_)
        reward, flags = np.empty(count, np.float32), np.empty((2, count), np.bool_)
        sums = np.zeros((count, NUM_SUMS), np.int64)
        outputs = (obs, final_obs, reward, flags, mask, final_mask, sums)
        any_done = step_all(self.worlds, self._rules, action, *outputs, self._best)
        seen = self._parts(obs)
        if not any_done:
            return None, EnvStep(seen, reward, flags[0], flags[1], seen, mask, mask, self._no_stats)
        return sums, EnvStep(seen, reward, flags[0], flags[1], self._parts(final_obs), mask, final_mask)

    def hold_finished(self) -> None:
        """From now on leave a finished episode as it ended, for whoever shows it and starts the next with `reset`."""
        self._rules = tuple(rules_of(self.settings, self._max_episode_steps, restarts=False))

    def _parts(self, obs: Array) -> Obs:
        if not self._keep_parts:
            return obs
        return {
            "data_centre": obs[:, :PLACED_AT],
            "placed": obs[:, PLACED_AT:REQUESTS_AT].reshape(-1, NUM_SERVICES, NUM_PLACED_FEATURES),
            "requests": obs[:, REQUESTS_AT:].reshape(-1, NUM_SERVICES, NUM_REQUEST_FEATURES),
        }

    def get_state(self) -> dict[str, Array]:
        return {name: self.worlds[name].copy() for name in STATE_NAMES}

    def set_state(self, state: Mapping[str, Array]) -> None:
        for name in STATE_NAMES:
            saved, mine = state[name], self.worlds[name]
            if saved.shape != mine.shape or saved.dtype != mine.dtype:
                raise EnvError(
                    f"saved `{name}` of `sfc` is {saved.dtype}{saved.shape}; expected {mine.dtype}{mine.shape}",
                    "restore into as many envs as were saved",
                )
        require_possible(state)
        for name in STATE_NAMES:
            self.worlds[name] = state[name]

    def reseed(self, seeds: Array) -> None:
        """Start each network's generator from its seed [N]; networks go on as they are until `reset`."""
        self.worlds["generator"] = seeds[:, None]

    def close(self) -> None:
        """Nothing is held."""


Sfc.__signature__ = options_signature(SfcSettings, dict_obs="keep", max_episode_steps=0)  # type: ignore[attr-defined]
