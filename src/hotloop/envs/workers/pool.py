"""Gymnasium envs in worker processes: the same answers as in process, and a run that outlives an env's crash.

Each worker has a group of neighboring envs behind `GymnasiumEnvs` and writes what they answer into shared memory.
Where one is lost, its envs report the observation they showed last as the final one of a truncated episode.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np

from hotloop.core.errors import EnvError
from hotloop.core.types import Array, EnvStep, Obs, map_obs
from hotloop.envs.workers import messages
from hotloop.envs.workers.messages import Slab, slabs_in
from hotloop.envs.workers.supervisor import Group, Incident, Supervisor
from hotloop.presets.env_settings import EnvSettings


class WorkerPool:
    saves_state = False

    def __init__(self, settings: EnvSettings, num_envs: int, seeds: Array) -> None:
        self.num_envs = num_envs
        self._env_id = settings.id
        self._supervisor = Supervisor(settings, num_envs, seeds)
        self._end = weakref.finalize(self, self._supervisor.close)  # also where nobody calls `close`
        try:
            plan = self._supervisor.open()
            self.obs_spec, self.action_spec = plan.obs_spec, plan.action_spec
            self.has_action_mask, self.raw_obs = plan.has_action_mask, plan.raw_obs
            self._slabs = slabs_in(self._supervisor.memory, plan)
            self._turn = 0  # the slab written last
            self._first: tuple[Obs, Array | None] | None = self._reset()
        except BaseException:
            self.close()
            raise

    @property
    def incidents(self) -> list[Incident]:
        """Workers that were lost so far."""
        return self._supervisor.incidents

    @property
    def worker_pids(self) -> list[int]:
        return [group.process.pid for group in self._supervisor.groups if group.process is not None]

    def reset(self) -> tuple[Obs, Array | None]:
        first, self._first = self._first, None
        return first or self._reset()

    def step(self, action: Array) -> EnvStep:
        self._supervisor.require_open()
        turn = 1 - self._turn
        slab = self._slabs[turn]
        if np.shape(action) != slab.action.shape:
            raise EnvError(f"the actions have shape {np.shape(action)}; expected {slab.action.shape}")
        slab.action[...] = action
        lost = self._supervisor.ask(messages.STEP[turn])
        shown = [(group.rows, *self._shown(group)) for group, _ in lost]
        self._supervisor.replace(lost, messages.RESET[turn])
        self._supervisor.steps += 1
        result = self._collect(slab, bool(lost))
        for rows, obs, mask in shown:
            _break_off(result, rows, obs, mask)
        self._turn = turn
        return result

    def get_state(self) -> dict[str, Array]:
        raise EnvError(f"`{self._env_id}` cannot save its state", "make the envs anew, with new seeds")

    def set_state(self, state: Mapping[str, Array]) -> None:
        raise EnvError(f"`{self._env_id}` cannot restore a state", "make the envs anew, with new seeds")

    def close(self) -> None:
        self._end()
        self._slabs = []
        self._first = None

    def _reset(self) -> tuple[Obs, Array | None]:
        turn = 1 - self._turn
        order = messages.RESET[turn]
        self._supervisor.replace(self._supervisor.ask(order), order)
        self._turn = turn
        slab = self._slabs[turn]
        return map_obs(np.copy, slab.final_obs), _copy(slab.final_mask)

    def _collect(self, slab: Slab, broken: bool) -> EnvStep:
        """Copies of what the workers wrote; `obs` is `final_obs` where no episode ended, as in process."""
        final, mask = map_obs(np.copy, slab.final_obs), _copy(slab.final_mask)
        result = EnvStep(final, slab.reward.copy(), slab.terminated.copy(), slab.truncated.copy(), final, mask, mask)
        groups = [group for group in self._supervisor.groups if group.has_endings]
        if groups or broken:
            result.obs, result.action_mask = map_obs(np.copy, final), _copy(mask)
        for group in groups:
            _copy_rows(group.rows, result.obs, slab.next_obs)
            _copy_rows(group.rows, result.action_mask, slab.next_mask)
        return result

    def _shown(self, group: Group) -> tuple[Any, Array | None]:
        """What the policy saw last of the group's envs: in the slab that the lost worker was not writing."""
        slab = self._slabs[self._turn].rows(group.rows)
        return (slab.next_obs, slab.next_mask) if group.has_endings else (slab.final_obs, slab.final_mask)


def _break_off(step: EnvStep, rows: slice, obs: Any, mask: Array | None) -> None:
    """End the episodes of `rows` where they were last seen; `step.obs` starts the next ones already."""
    map_obs(lambda part, shown: np.copyto(part[rows], shown), step.final_obs, obs)
    if step.final_action_mask is not None:
        step.final_action_mask[rows] = mask
    step.reward[rows] = 0.0
    step.terminated[rows] = False
    step.truncated[rows] = True


def _copy(mask: Array | None) -> Array | None:
    return None if mask is None else mask.copy()


def _copy_rows(rows: slice, target: Any, source: Any) -> None:
    if target is not None:
        map_obs(lambda to, given: np.copyto(to[rows], given[rows]), target, source)
