"""CartPole, batched: one kernel call steps every env, equal to Gymnasium's CartPole-v1 up to its random numbers.

With one env, Python's share (arrays, call, `EnvStep`) is nearly all of the cost; the dynamics take 40 nanoseconds.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hotloop.core.errors import EnvError
from hotloop.core.types import Array, ArraySpec, DiscreteActions, EnvStep
from hotloop.envs.cartpole_kernels import reset_all, step_all


class CartPole:
    """Balance a pole on a cart: action 0 pushes left, 1 right; 1 point per step, 500 steps at most."""

    obs_spec = ArraySpec((4,))
    action_spec = DiscreteActions(2)
    has_action_mask = False
    saves_state = True

    def __init__(
        self, num_envs: int, seeds: Array, *, max_episode_steps: int = 500, sutton_barto_reward: bool = False
    ) -> None:
        self.num_envs = num_envs
        self._body = np.zeros((num_envs, 4))
        self._elapsed = np.zeros(num_envs, np.int64)
        self._generator = np.array(seeds, np.uint64)
        self._constants = (max_episode_steps, *((0.0, -1.0) if sutton_barto_reward else (1.0, 1.0)))
        self._final_obs = np.zeros((num_envs, 4), np.float32)

    def reset(self) -> tuple[Array, None]:
        obs = np.empty((self.num_envs, 4), np.float32)
        reset_all(self._body, self._elapsed, self._generator, obs)
        return obs, None

    def step(self, action: Array) -> EnvStep:
        count = self.num_envs
        obs = np.empty((count, 4), np.float32)
        reward = np.empty(count, np.float32)
        flags = np.empty((2, count), np.bool_)
        any_done = step_all(
            self._body,
            self._elapsed,
            self._generator,
            action,
            self._constants,
            obs,
            reward,
            flags,
            self._final_obs,
        )
        return EnvStep(obs, reward, flags[0], flags[1], self._final_obs.copy() if any_done else obs)

    def get_state(self) -> dict[str, Array]:
        return {
            "body": self._body.copy(),
            "elapsed": self._elapsed.copy(),
            "generator": self._generator.copy(),
        }

    def set_state(self, state: Mapping[str, Array]) -> None:
        for name, mine in (("body", self._body), ("elapsed", self._elapsed), ("generator", self._generator)):
            saved = state[name]
            if saved.shape != mine.shape or saved.dtype != mine.dtype:
                raise EnvError(
                    f"saved `{name}` of `cartpole` is {saved.dtype}{saved.shape}; expected {mine.dtype}{mine.shape}",
                    "restore into as many envs as were saved",
                )
            mine[...] = saved

    def close(self) -> None:
        """Nothing is held."""
