"""Replay in four other libraries, each the way its own manual uses it: a function makes the call to be timed.

Equal for all: capacity, a full replay, float32 observations and rewards. What a library wants converted is converted
before the clock starts. What comes back differs: tensors from Stable-Baselines3, arrays from the others; only ours
reuses the arrays of the sample before.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.peers.replay_work import (
    ALPHA,
    BETA,
    CAPACITY,
    FILL_ROWS,
    Call,
    Rows,
    Step,
    Work,
    make_errors,
    make_rows,
    make_step,
)
from hotloop.core.types import Array


def cpprb_call(work: Work) -> Call:
    import cpprb

    fields: dict[str, Any] = {
        "obs": {"shape": work.features, "dtype": np.float32},
        "act": {"dtype": np.int64},
        "rew": {"dtype": np.float32},
        "next_obs": {"shape": work.features, "dtype": np.float32},
        "done": {"dtype": np.float32},
    }
    if work.kind == "prioritized":
        replay = cpprb.PrioritizedReplayBuffer(CAPACITY, fields, alpha=ALPHA)
    else:
        replay = cpprb.ReplayBuffer(CAPACITY, fields)
    if work.kind == "add":
        row = _cpprb_fields(make_rows(work.rows, work.features))
        return lambda: replay.add(**row)
    if work.kind == "store":
        return functools.partial(_cpprb_store, replay, make_step(work.features))
    for _ in range(CAPACITY // FILL_ROWS):
        replay.add(**_cpprb_fields(make_rows(FILL_ROWS, work.features)))
    if work.kind == "sample":
        return lambda: replay.sample(work.rows)
    errors = make_errors(work.rows)

    def draw_and_set() -> None:
        replay.update_priorities(replay.sample(work.rows, beta=BETA)["indexes"], errors)

    return draw_and_set


def _cpprb_store(replay: Any, row: Step) -> None:
    replay.add(obs=row.obs, act=row.action, rew=row.reward, next_obs=row.next_obs, done=row.terminated)


def _cpprb_fields(rows: Rows) -> dict[str, Array]:
    done = rows.terminated.astype(np.float32)
    return {"obs": rows.obs, "act": rows.action, "rew": rows.reward, "next_obs": rows.next_obs, "done": done}


def rlox_call(work: Work) -> Call:
    import rlox

    if work.kind == "prioritized":
        replay = rlox.PrioritizedReplayBuffer(CAPACITY, work.features, 1, ALPHA, BETA)
    else:
        replay = rlox.ReplayBuffer(CAPACITY, work.features, 1)
    if work.kind == "add":
        return _rlox_add(replay, make_rows(work.rows, work.features))
    if work.kind == "store":
        return functools.partial(_rlox_store, replay, make_step(work.features))
    rows = make_rows(FILL_ROWS, work.features)
    for i in range(CAPACITY):
        replay.push(*_rlox_row(rows, i % FILL_ROWS))
    seeds = itertools.count()  # it wants another seed for every draw
    if work.kind == "sample":
        return lambda: replay.sample(work.rows, next(seeds))
    errors = make_errors(work.rows).astype(np.float64)

    def draw_and_set() -> None:
        replay.update_priorities(replay.sample(work.rows, next(seeds))["indices"], errors)

    return draw_and_set


def _rlox_row(rows: Rows, i: int) -> tuple[Any, ...]:
    flags = bool(rows.terminated[i]), bool(rows.truncated[i])
    return rows.obs[i], rows.action[i : i + 1].astype(np.float32), float(rows.reward[i]), *flags, rows.next_obs[i]


def _rlox_store(replay: Any, row: Step) -> None:
    action = np.array([row.action], np.float32)
    replay.push(row.obs, action, row.reward, row.terminated, row.truncated, row.next_obs)


def _rlox_add(replay: Any, rows: Rows) -> Call:
    if len(rows.reward) == 1:
        return functools.partial(replay.push, *_rlox_row(rows, 0))
    flags = rows.terminated.astype(np.uint8), rows.truncated.astype(np.uint8)
    flat = rows.obs.reshape(-1), rows.next_obs.reshape(-1), rows.action.astype(np.float32)
    return functools.partial(replay.push_batch, *flat, rows.reward, *flags)


def stable_baselines3_call(work: Work) -> Call | None:
    """It has no prioritized replay."""
    from gymnasium.spaces import Box, Discrete
    from stable_baselines3.common.buffers import ReplayBuffer

    if work.kind == "prioritized":
        return None
    num_envs = work.rows if work.kind == "add" else 1
    obs_space = Box(-np.inf, np.inf, (work.features,), np.float32)
    replay = ReplayBuffer(CAPACITY, obs_space, Discrete(2), device="cpu", n_envs=num_envs)
    if work.kind == "store":
        return functools.partial(_stable_baselines3_store, replay, make_step(work.features))
    made = make_rows(num_envs, work.features)
    infos = [{"TimeLimit.truncated": bool(truncated)} for truncated in made.truncated]
    add = functools.partial(
        replay.add, made.obs, made.next_obs, made.action, made.reward, made.terminated | made.truncated, infos
    )
    if work.kind == "add":
        return add
    for _ in range(CAPACITY):
        add()
    return lambda: replay.sample(work.rows)


def _stable_baselines3_store(replay: Any, row: Step) -> None:
    done, infos = row.terminated or row.truncated, [{"TimeLimit.truncated": row.truncated}]
    action, reward, dones = np.array([row.action]), np.array([row.reward], np.float32), np.array([done])
    replay.add(row.obs[None], row.next_obs[None], action, reward, dones, infos)


TIANSHOU_KEYS = ("obs", "act", "rew", "terminated", "truncated", "obs_next")


def tianshou_call(work: Work) -> Call:
    from tianshou.data import Batch, PrioritizedReplayBuffer, ReplayBuffer, VectorReplayBuffer

    if work.kind == "add":
        rows = dict(zip(TIANSHOU_KEYS, make_rows(work.rows, work.features), strict=True))
        return functools.partial(VectorReplayBuffer(CAPACITY, work.rows).add, Batch(rows))
    if work.kind == "store":
        row, single = make_step(work.features), ReplayBuffer(CAPACITY)
        return lambda: single.add(Batch(**dict(zip(TIANSHOU_KEYS, row, strict=True))))
    made = make_rows(CAPACITY, work.features)
    replay = ReplayBuffer.from_data(*made[:5], made.terminated | made.truncated, made.next_obs)
    if work.kind == "sample":
        return lambda: replay.sample(work.rows)
    prioritized = PrioritizedReplayBuffer(CAPACITY, alpha=ALPHA, beta=BETA)
    prioritized.update(replay)
    errors = make_errors(work.rows)

    def draw_and_set() -> None:
        prioritized.update_weight(prioritized.sample(work.rows)[1], errors)

    return draw_and_set


CALLS: dict[str, Callable[[Work], Call | None]] = {
    "cpprb": cpprb_call,
    "rlox": rlox_call,
    "stable-baselines3": stable_baselines3_call,
    "tianshou": tianshou_call,
}
"""Library -> what makes its call; None: it cannot do this work."""
