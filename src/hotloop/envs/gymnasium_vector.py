"""A Gymnasium VectorEnv as ours, whichever of the three ways it resets.

NEXT_STEP ignores the action after an episode's end and answers with a reset observation: those rows come out with
`EnvStep.valid` False, and the row where the episode ended keeps its last observation as `obs`. SAME_STEP restarts
at once and puts the last observation into `info["final_obs"]`. DISABLED leaves the restart to us.
Masks are read from `info["action_mask"]` alone, because a method could not tell the mask of a final observation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from hotloop.core.errors import EnvError
from hotloop.core.graph_kernels import count_not_finite
from hotloop.core.types import Array, EnvStep, HybridActions, Obs, map_obs
from hotloop.envs.foreign import (
    LATE_MASK,
    LATE_MASK_HINT,
    MASK_KEY,
    BadValueError,
    Witness,
    checked_mask,
    close_all,
    unpack_reset,
)
from hotloop.envs.gymnasium_envs import gymnasium_seeds
from hotloop.envs.spaces import actions_for, first_not_finite, raw_obs_for


class GymnasiumVector:
    saves_state = False

    def __init__(self, env_id: str, envs: VectorEnv, seeds: Array, dict_obs: str = "flatten") -> None:
        self.num_envs = envs.num_envs
        self._envs = envs
        self._witness = Witness(env_id)
        self._own_process = self._witness.process.own
        self._mode = autoreset_mode(env_id, envs)
        self.observation_space = envs.single_observation_space
        self.raw_obs = raw_obs_for(env_id, envs.single_observation_space, dict_obs)
        self._encoder = self.raw_obs.encoder
        self.obs_spec = self._encoder.spec
        self.action_spec, self._first_action = actions_for(env_id, envs.single_action_space)
        if isinstance(self.action_spec, HybridActions):
            raise EnvError(
                f"`{env_id}` is vectorized and has action space {envs.single_action_space}",
                "choices and numbers at once are taken by single envs only: leave `batched` out",
            )
        self.seeds_each_env = isinstance(envs.unwrapped, SyncVectorEnv | AsyncVectorEnv)
        """Others draw for all envs from one generator, so that an env's episodes depend on `num_envs`."""
        self._ignored = np.zeros(self.num_envs, np.bool_)  # NEXT_STEP: whose next action only resets
        numbers = gymnasium_seeds(seeds)
        raw, info = self._call_reset(seed=numbers if self.seeds_each_env else numbers[0])
        self.has_action_mask = MASK_KEY in info
        self._first: tuple[Obs, Array | None] | None = self._start(raw, info)

    def reset(self) -> tuple[Obs, Array | None]:
        self._ignored = np.zeros(self.num_envs, np.bool_)
        first, self._first = self._first, None
        return first or self._start(*self._call_reset())

    def step(self, action: Array) -> EnvStep:
        try:
            answer = self._envs.step(action + self._first_action)
        except BaseException as error:  # also `sys.exit`: no way out of an env may look like a finished run
            raise self._witness.raised(None, "step", error, action) from error
        if not self._own_process[0]:
            self._witness.process.require_own(self._witness.env_id)
        try:
            raw, *columns, info = answer
            reward, terminated, truncated = self._columns(*columns)
        except (TypeError, ValueError, BadValueError) as error:
            raise self._witness.error(None, f"returned no valid (obs, reward, flags, info): {error}") from error
        obs = self._encode(raw)
        result = EnvStep(obs, reward, terminated, truncated, obs)
        if MASK_KEY in info and not self.has_action_mask:
            raise self._witness.error(None, LATE_MASK, hint=LATE_MASK_HINT)
        self._witness.steps += 1
        if self._mode is AutoresetMode.NEXT_STEP:
            self._finish_next_step(result, info)
        elif self._mode is AutoresetMode.SAME_STEP:
            self._finish_same_step(result, info)
        else:
            self._finish_disabled(result, info)
        return result

    def get_state(self) -> dict[str, Array]:
        raise EnvError(f"`{self._witness.env_id}` cannot save its state", "make the envs anew, with new seeds")

    def set_state(self, state: Mapping[str, Array]) -> None:
        raise EnvError(f"`{self._witness.env_id}` cannot restore a state", "make the envs anew, with new seeds")

    def close(self) -> None:
        close_all(self._witness.env_id, [self._envs])

    def _finish_next_step(self, result: EnvStep, info: dict[str, Any]) -> None:
        if self._ignored.any():
            result.valid = ~self._ignored
            for column in (result.reward, result.terminated, result.truncated):
                column[self._ignored] = 0
        self._ignored = result.terminated | result.truncated
        if self.has_action_mask:
            result.action_mask = result.final_action_mask = self._mask(info, result.terminated)

    def _finish_same_step(self, result: EnvStep, info: dict[str, Any]) -> None:
        done = result.terminated | result.truncated
        if self.has_action_mask:
            result.action_mask = result.final_action_mask = self._mask(info, np.zeros_like(done))
        if not done.any():
            return
        result.final_obs = map_obs(np.copy, result.obs)
        for index in np.flatnonzero(done):
            try:
                self._encoder.write(result.final_obs, index, _row(info.get("final_obs"), int(index)))
            except BadValueError as error:
                raise self._witness.error(int(index), f"returned `final_obs` {error}") from error
        self._require_finite(result.final_obs)
        if result.action_mask is not None:
            final = self._mask(info.get("final_info", {}), result.terminated, done)
            result.final_action_mask = _rows_where(done, final, result.action_mask)

    def _finish_disabled(self, result: EnvStep, info: dict[str, Any]) -> None:
        done = result.terminated | result.truncated
        if self.has_action_mask:
            result.action_mask = result.final_action_mask = self._mask(info, result.terminated)
        if not done.any():
            return
        raw, info = self._call_reset(options={"reset_mask": done.copy()})
        fresh = self._encode(raw)
        result.obs = map_obs(lambda new, old: _rows_where(done, new, old), fresh, result.final_obs)
        if result.action_mask is not None:
            fresh_mask = self._mask(info, np.zeros_like(done), wanted=done)
            result.action_mask = _rows_where(done, fresh_mask, result.action_mask)

    def _columns(self, reward: Any, terminated: Any, truncated: Any) -> tuple[Array, Array, Array]:
        reward = np.array(reward, np.float32)
        terminated, truncated = np.array(terminated), np.array(truncated)
        for name, column in (("reward", reward), ("terminated", terminated), ("truncated", truncated)):
            if column.shape != (self.num_envs,):
                raise BadValueError(f"`{name}` of shape {column.shape} where {(self.num_envs,)} was expected")
            if name != "reward" and column.dtype != np.bool_:
                raise BadValueError(f"`{name}` of dtype {column.dtype} where bool was expected")
        if count_not_finite(reward):
            raise BadValueError(f"`reward` of env {np.argmin(np.isfinite(reward))} is not finite")
        return reward, terminated, truncated

    def _call_reset(self, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        try:
            answer = self._envs.reset(**arguments)
        except BaseException as error:
            raise self._witness.raised(None, "reset", error) from error
        if not self._own_process[0]:
            self._witness.process.require_own(self._witness.env_id)
        try:
            return unpack_reset(answer)
        except BadValueError as error:
            raise self._witness.error(None, str(error)) from error

    def _start(self, raw: Any, info: dict[str, Any]) -> tuple[Obs, Array | None]:
        none = np.zeros(self.num_envs, np.bool_)
        return self._encode(raw), self._mask(info, none) if self.has_action_mask else None

    def _encode(self, raw: Any) -> Obs:
        obs = self._encoder.empty(self.num_envs)
        try:
            self._encoder.write_all(obs, raw)
        except BadValueError as error:
            raise self._witness.error(None, f"returned `obs` {error}") from error
        self._require_finite(obs)
        return obs

    def _mask(self, info: dict[str, Any], needless: Array, wanted: Array | None = None) -> Array:
        """Masks [N, A]; rows in `needless` have no action to follow, rows outside `wanted` are not read."""
        given = info.get("_" + MASK_KEY, np.full(self.num_envs, MASK_KEY in info))
        mask = np.ones((self.num_envs, self.action_spec.mask_width), np.bool_)
        for index in range(self.num_envs) if wanted is None else np.flatnonzero(wanted):
            raw = info[MASK_KEY][index] if given[index] else None
            try:
                mask[index] = checked_mask(raw, self.action_spec.mask_width, needless[index])
            except BadValueError as error:
                raise self._witness.error(int(index), str(error)) from error
        return mask

    def _require_finite(self, obs: Obs) -> None:
        index = first_not_finite(obs)
        if index >= 0:
            raise self._witness.error(index, "returned `obs` with NaN or infinity in it")


def autoreset_mode(env_id: str, envs: VectorEnv) -> AutoresetMode:
    given = (envs.metadata or {}).get("autoreset_mode")
    try:
        return AutoresetMode(given)
    except ValueError:
        raise EnvError(
            f"`{env_id}` has metadata['autoreset_mode'] {given!r}; expected a gymnasium.vector.AutoresetMode",
            "without it nobody can tell where its episodes begin: add it to the class's `metadata`",
        ) from None


def _row(final_obs: Any, index: int) -> Any:
    """Env `index` of `info["final_obs"]`: an array of objects, a batch, or dicts and tuples of batches."""
    if final_obs is None:
        raise BadValueError("nowhere: a SAME_STEP env must put it into `info`")
    if isinstance(final_obs, dict):
        return {name: _row(part, index) for name, part in final_obs.items()}
    if isinstance(final_obs, tuple):
        return tuple(_row(part, index) for part in final_obs)
    return final_obs[index]


def _rows_where(rows: Array, new: Array, old: Array) -> Array:
    """A copy of `old` with `rows` taken from `new`."""
    result = old.copy()
    result[rows] = new[rows]
    return result
