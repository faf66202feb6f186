"""Transitions for the replay cases: made once, given to both programs, compared row by row."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.types import Array, ArraySpec, Batch, EnvStep
from hotloop.prove.equivalence import Equality, compare
from hotloop.replay.buffer import Replay
from hotloop.replay.n_step import Returns
from hotloop.replay.settings import ReplaySettings
from hotloop.replay.storage import BatchArrays

OBS_SIZE = 4
GAMMA = 0.99
SEED = 5
CAPACITY = 100_000
SMALL_CAPACITY = 1_000
BETA = 0.4
FILL_ENVS = 1_000
"""Rows that one `add` stores while a replay is filled."""


def make_replay(num_envs: int, capacity: int, n_step: int = 1, prioritised: bool = False) -> Replay:
    settings = ReplaySettings(capacity=capacity, prioritised=prioritised, beta_start=BETA)
    return Replay(settings, ArraySpec((OBS_SIZE,)), num_envs, Returns(n_step, GAMMA), SEED)


def make_steps(num_envs: int, count: int, seed: int = 0) -> list[tuple[Array, Array, EnvStep]]:
    """What `Replay.add` takes, `count` times: some episodes terminate, some are truncated."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        obs, next_obs = rng.normal(size=(2, num_envs, OBS_SIZE)).astype(np.float32)
        reward = rng.normal(size=num_envs).astype(np.float32)
        terminated, truncated = rng.random((2, num_envs)) < 0.05
        step = EnvStep(next_obs, reward, terminated, truncated, next_obs)
        made.append((obs, rng.integers(2, size=num_envs), step))
    return made


def add_plain(buffer: Any, obs: Array, action: Array, step: EnvStep) -> None:
    for i in range(len(action)):
        buffer.add(obs[i], action[i], step.reward[i], step.final_obs[i], step.terminated[i])


def fill(capacity: int, replay: Replay, buffer: Any = None) -> None:
    """The same rows into both."""
    for obs, action, step in make_steps(FILL_ENVS, capacity // FILL_ENVS):
        replay.add(obs, action, step)
        if buffer is not None:
            add_plain(buffer, obs, action, step)


def all_rows(replay: Replay) -> Batch:
    """Everything it holds, the oldest first, as a deque has it; nothing is drawn, so that its draws stay in step."""
    ring = replay._ring
    arrays = BatchArrays(ring.layout, 1, ring.size)
    oldest = ring.num_added % ring.capacity if ring.num_added > ring.capacity else 0
    arrays.batch.index[0] = (oldest + np.arange(ring.size)) % ring.size
    ring.gather(arrays)
    return arrays.batch


def compare_rows(batch: Batch, j: int, plain: tuple[Any, ...]) -> Equality:
    """Batch j against (obs, action, reward, next_obs, discount)."""
    names = ("obs", "action", "reward", "next_obs", "discount")
    return compare((name, getattr(batch, name)[j], theirs) for name, theirs in zip(names, plain, strict=True))
