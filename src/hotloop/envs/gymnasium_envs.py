"""Single Gymnasium envs stepped side by side, each answer checked as it is copied.

Gymnasium's own SyncVectorEnv costs about 10 microseconds per call; this adapter adds about 4 to the env's own step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np

from hotloop.core.errors import EnvError
from hotloop.core.types import Array, EnvStep, HybridActions, Obs, map_obs
from hotloop.envs.foreign import (
    BOOLEANS,
    LARGEST_REWARD,
    LATE_MASK,
    LATE_MASK_HINT,
    MASK_KEY,
    BadValueError,
    MaskReader,
    Witness,
    close_all,
    complain_about_obs,
    complain_about_step,
    unpack_reset,
)
from hotloop.envs.spaces import actions_for, first_not_finite, raw_obs_for, split_hybrid

Restart = tuple[int, Any, dict[str, Any]]  # env index, its first observation as [1, ...], its info


class GymnasiumEnvs:
    saves_state = False

    def __init__(
        self, env_id: str, envs: list[gymnasium.Env], seeds: Array, dict_obs: str = "flatten", hint: str = ""
    ) -> None:
        self.num_envs = len(envs)
        self._envs = envs
        self._witness = Witness(env_id, hint=hint)
        self.observation_space = envs[0].observation_space
        self.infos: list[dict[str, Any]] = []
        """What the envs said beside `obs` of the last step or reset."""
        self.final_infos: dict[int, dict[str, Any]] = {}
        """By env, what was said beside the end of its episode, where the last step ended one."""
        self._own_process = self._witness.process.own
        self.raw_obs = raw_obs_for(env_id, envs[0].observation_space, dict_obs)
        self._encoder = self.raw_obs.encoder
        self.obs_spec = self._encoder.spec
        self.action_spec, self._first_action = actions_for(env_id, envs[0].action_space)
        self._counts_differently = bool(np.any(self._first_action))
        self._hybrid = envs[0].action_space if isinstance(self.action_spec, HybridActions) else None
        self._steps = [env.step for env in envs]
        self._write = self._encoder.write
        # Whether masks come with `info` shows at the first reset only, so that is made now and handed out later.
        first = self._restart_all(gymnasium_seeds(seeds))
        self._masks = MaskReader(envs, self.action_spec.mask_width, [info for _, _, info in first])
        self.has_action_mask = self._masks.present
        for index, _, info in first:
            if MASK_KEY in info and not self.has_action_mask:  # some give one and others do not
                raise self._witness.error(index, LATE_MASK, hint=LATE_MASK_HINT)
        self._first: tuple[Obs, Array | None] | None = self._start_all(first)

    def reset(self) -> tuple[Obs, Array | None]:
        first, self._first = self._first, None
        return first or self._start_all(self._restart_all([None] * self.num_envs))

    def reseed(self, seeds: Array) -> None:
        """The next `reset` begins as that of envs made with these seeds."""
        self._first = self._start_all(self._restart_all(gymnasium_seeds(seeds)))

    def step(self, action: Array) -> EnvStep:
        count = self.num_envs
        obs = self._encoder.empty(count)
        reward = np.empty(count, np.float32)
        flags = np.empty((2, count), np.bool_)
        mask = np.empty((count, self.action_spec.mask_width), np.bool_) if self.has_action_mask else None
        restarts: list[Restart] = []
        if self._counts_differently:
            action = action + self._first_action
        actions: Any = action if self._hybrid is None else [split_hybrid(self._hybrid, row) for row in action]
        infos = self.infos
        self.final_infos = {}
        for index in range(count):
            terminated, done, info = self._step_one(index, actions[index], obs, reward, flags)
            infos[index] = info
            if mask is not None:
                mask[index] = self._read_mask(index, info, terminated)
            elif MASK_KEY in info:
                raise self._witness.error(index, LATE_MASK, hint=LATE_MASK_HINT)
            if done:
                restarts.append(self._restart(index, None))
                self.final_infos[index], infos[index] = info, restarts[-1][2]
        if not self._own_process[0]:
            self._witness.process.require_own(self._witness.env_id)
        self._witness.steps += 1
        self._require_finite(obs)
        if not restarts:
            return EnvStep(obs, reward, flags[0], flags[1], obs, mask, mask)
        next_obs, next_mask = self._with_restarts(obs, mask, restarts)
        return EnvStep(next_obs, reward, flags[0], flags[1], obs, next_mask, mask)

    def _step_one(
        self, index: int, action: Any, obs: Any, reward: Array, flags: Array
    ) -> tuple[bool, bool, dict[str, Any]]:
        """Step env `index` and copy its answer to row `index`: whether it terminated, whether it ended, its info."""
        answer: Any
        try:
            answer = self._steps[index](action)
        except BaseException as error:  # also `sys.exit`: no way out of an env may look like a finished run
            raise self._witness.raised(index, "step", error, action) from error
        try:
            raw, gain, terminated, truncated, info = answer
            self._write(obs, index, raw)
            if terminated.__class__ not in BOOLEANS or truncated.__class__ not in BOOLEANS:
                raise BadValueError
            if not -LARGEST_REWARD <= gain <= LARGEST_REWARD or not isinstance(info, dict):
                raise BadValueError
            reward[index] = gain
            flags[0, index] = terminated
            flags[1, index] = truncated
        except BaseException as error:
            complain = lambda: complain_about_step(answer, self._encoder)  # noqa: E731
            raise self._witness.refused(index, "step", error, complain) from error
        return terminated, terminated or truncated, info

    def get_state(self) -> dict[str, Array]:
        raise EnvError(f"`{self._witness.env_id}` cannot save its state", "make the envs anew, with new seeds")

    def set_state(self, state: Mapping[str, Array]) -> None:
        raise EnvError(f"`{self._witness.env_id}` cannot restore a state", "make the envs anew, with new seeds")

    def close(self) -> None:
        envs, self._envs = self._envs, []
        close_all(self._witness.env_id, envs)

    def _restart_all(self, seeds: Sequence[int | None]) -> list[Restart]:
        restarts = [self._restart(index, seed) for index, seed in enumerate(seeds)]
        self.infos, self.final_infos = [info for _, _, info in restarts], {}
        return restarts

    def _restart(self, index: int, seed: int | None) -> Restart:
        try:
            answer = self._envs[index].reset(seed=seed)
        except BaseException as error:
            raise self._witness.raised(index, "reset", error) from error
        try:
            raw, info = unpack_reset(answer)
        except BadValueError as error:
            raise self._witness.error(index, str(error)) from error
        first = self._encoder.empty(1)  # copied at once: the env may reuse its array
        try:
            self._write(first, 0, raw)
        except BaseException as error:
            complain = lambda: complain_about_obs(raw, self._encoder)  # noqa: E731
            raise self._witness.refused(index, "reset", error, complain) from error
        return index, first, info

    def _start_all(self, restarts: list[Restart]) -> tuple[Obs, Array | None]:
        obs = self._encoder.empty(self.num_envs)
        mask = np.empty((self.num_envs, self.action_spec.mask_width), np.bool_) if self.has_action_mask else None
        self._fill(obs, mask, restarts)
        if not self._own_process[0]:
            self._witness.process.require_own(self._witness.env_id)
        return obs, mask

    def _with_restarts(self, obs: Obs, mask: Array | None, restarts: list[Restart]) -> tuple[Obs, Array | None]:
        """What the policy sees next: copies, with the rows of new episodes put in."""
        obs = map_obs(np.copy, obs)
        mask = None if mask is None else mask.copy()
        self._fill(obs, mask, restarts)
        return obs, mask

    def _fill(self, obs: Obs, mask: Array | None, restarts: list[Restart]) -> None:
        for index, first, info in restarts:
            map_obs(lambda part, row, index=index: np.copyto(part[index], row[0]), obs, first)
            if mask is not None:
                mask[index] = self._read_mask(index, info, terminated=False)
        self._require_finite(obs)

    def _read_mask(self, index: int, info: dict[str, Any], terminated: bool) -> Array:
        try:
            return self._masks.read(index, info, terminated)
        except BadValueError as error:
            raise self._witness.error(index, str(error)) from error
        except BaseException as error:
            raise self._witness.raised(index, "action_masks", error) from error

    def _require_finite(self, obs: Obs) -> None:
        index = first_not_finite(obs)
        if index >= 0:
            raise self._witness.error(index, "returned `obs` with NaN or infinity in it")


def gymnasium_seeds(seeds: Array) -> list[int]:
    """Our 64-bit seeds as Gymnasium takes them; some envs still keep them in an int32."""
    return [int(seed) % 2**31 for seed in seeds]
