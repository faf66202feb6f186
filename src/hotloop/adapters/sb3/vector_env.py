"""Stable-Baselines3's `DummyVecEnv` without copies that nobody can tell from the original."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper

from hotloop.adapters.sb3.in_place import InPlace

UNCHANGING = frozenset({bool, int, float, complex, str, bytes, type(None), np.bool_, np.float32, np.float64, np.int64})
"""Values of these types cannot be changed, so that `deepcopy` hands out the value itself."""


def copied(info: dict[str, Any]) -> dict[str, Any]:
    """`deepcopy` of what an env says about a step, which mostly is empty or a few numbers."""
    if all(value.__class__ in UNCHANGING for value in info.values()):
        return dict(info)
    return deepcopy(info)


class QuickDummyVecEnv(DummyVecEnv, InPlace):
    def step_wait(self) -> Any:
        """As `DummyVecEnv.step_wait`; arrays are copied by themselves, infos only as far as they can change."""
        rewards, dones, infos = self.buf_rews, self.buf_dones, self.buf_infos
        for i, env in enumerate(self.envs):
            obs, rewards[i], terminated, truncated, info = env.step(self.actions[i])
            infos[i] = info
            dones[i] = terminated or truncated
            info["TimeLimit.truncated"] = truncated and not terminated
            if dones[i]:
                info["terminal_observation"] = obs
                obs, self.reset_infos[i] = env.reset()
            self._save_obs(i, obs)
        return self._obs_from_buf(), rewards.copy(), dones.copy(), [copied(info) for info in infos]

    def _obs_from_buf(self) -> Any:
        if self.keys == [None]:
            return self.buf_obs[None].copy()
        return super()._obs_from_buf()


def innermost(env: VecEnv | None) -> VecEnv | None:
    """What steps the envs, below all wrappers."""
    while isinstance(env, VecEnvWrapper):
        env = env.venv
    return env
