"""Small steps for replay tests: an observation is one number per env unless stated otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.types import ArraySpec, EnvStep
from hotloop.presets.replay_settings import ReplaySettings
from hotloop.replay.buffer import ReplayMemory
from hotloop.replay.n_step import Returns

SCALAR = ArraySpec((1,))


def column(values: Any) -> np.ndarray:
    return np.array(values, dtype=np.float32).reshape(-1, 1)


def env_step(reward: Any, next_obs: Any, terminated: Any = (), truncated: Any = (), **more: Any) -> EnvStep:
    """`terminated` and `truncated` name the envs that ended."""
    num_envs = len(reward)
    ended, timed_out = np.zeros(num_envs, dtype=bool), np.zeros(num_envs, dtype=bool)
    ended[list(terminated)] = True
    timed_out[list(truncated)] = True
    final_obs = column(next_obs)
    return EnvStep(final_obs, np.array(reward, dtype=np.float32), ended, timed_out, final_obs, **more)


def scalar_replay(
    num_envs: int = 1, n_step: int = 1, gamma: float = 0.5, seed: int = 0, **settings: Any
) -> ReplayMemory:
    return ReplayMemory(ReplaySettings(**settings), SCALAR, num_envs, Returns(n_step, gamma), seed)


def walk(replay: ReplayMemory, count: int, start: int = 0) -> None:
    """Add `count` one-env steps numbered from `start`: obs i, action i, reward i, next obs i + 1."""
    for i in range(start, start + count):
        replay.add(column([i]), np.array([i]), env_step([i], [i + 1]))


def stored_rows(replay: ReplayMemory) -> list[tuple[float, int, float, float, float]]:
    """(obs, action, reward, discount, next_obs) of every stored row in ring order."""
    arrays = replay._new_arrays(1, replay.size)
    arrays.batch.index[0] = np.arange(replay.size)
    replay._ring.gather(arrays)
    batch = arrays.batch
    columns = (batch.obs[0, :, 0], batch.action[0], batch.reward[0], batch.discount[0], batch.next_obs[0, :, 0])
    return list(zip(*(values.tolist() for values in columns), strict=True))
