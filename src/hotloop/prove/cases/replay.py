"""Replay: store, and draw uniformly. Both programs hold the same transitions.

Our draws are with replacement, `random.sample`'s without: for the comparison the plain program gets our draws.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from hotloop.core.types import Batch
from hotloop.prove.case import Built, Case, Growth
from hotloop.prove.cases.tape import Tape
from hotloop.prove.cases.transitions import (
    CAPACITY,
    FILL_ENVS,
    GAMMA,
    SEED,
    SMALL_CAPACITY,
    compare_rows,
    fill,
    make_replay,
    make_steps,
)
from hotloop.prove.equivalence import Equality, worst
from hotloop.prove.reference.replay import ReplayBuffer
from hotloop.replay.buffer import Replay


def _same_rows(replay: Replay, buffer: ReplayBuffer, num_added: int, batch_size: int, k: int) -> Equality:
    """Draw from ours, and gather the very rows from the plain buffer: row p of the ring is its (p - oldest)-th."""
    oldest = num_added % replay.capacity if num_added > replay.capacity else 0
    batch = replay.sample(batch_size, k, 0)
    found = []
    for j in range(k):
        places = (batch.index[j] - oldest) % len(buffer)
        *rows, done = buffer.collate([buffer.buffer[place] for place in places])
        found.append(compare_rows(batch, j, (*rows, np.float32(GAMMA) * (1 - done))))
    return worst(found)


def add_cases(small: bool) -> list[Case]:
    return [
        Case("replay-add", f"n{num_envs}", partial(_build_add, num_envs, small), is_default=True)
        for num_envs in (1, 256)
    ]


def _build_add(num_envs: int, small: bool) -> Built:
    capacity = SMALL_CAPACITY if small else CAPACITY
    replay, buffer = make_replay(num_envs, capacity), ReplayBuffer(capacity)
    obs, action, step = make_steps(num_envs, 1)[0]
    single = (obs[0], action[0], step.reward[0], step.final_obs[0], step.terminated[0])

    def reference() -> None:
        if num_envs == 1:
            buffer.add(*single)
        else:
            buffer.add_many(obs, action, step.reward, step.final_obs, step.terminated)

    def growth() -> Growth:
        """Into a replay a hundred times as large."""
        few, many = (
            partial(make_replay(num_envs, size).add, obs, action, step) for size in (capacity // 100, capacity)
        )
        return Growth(few, many, 1.0, f"{capacity // 100:,} rows", f"{capacity:,}")

    return Built(
        reference=reference,
        fast=partial(replay.add, obs, action, step),
        compare=lambda fast, plain: _same_rows(replay, buffer, len(buffer), 8 * num_envs, 1),
        further=partial(_check_add, num_envs),
        growth=growth,
    )


def _check_add(num_envs: int) -> Equality:
    """A ring that has gone round twice holds what a deque of the same length holds."""
    replay, buffer = make_replay(num_envs, SMALL_CAPACITY), ReplayBuffer(SMALL_CAPACITY)
    steps = make_steps(num_envs, 2 * SMALL_CAPACITY // num_envs + 3)
    for obs, action, step in steps:
        replay.add(obs, action, step)
        buffer.add_many(obs, action, step.reward, step.final_obs, step.terminated)
    return _same_rows(replay, buffer, num_envs * len(steps), 8 * SMALL_CAPACITY, 1)


def sample_cases(small: bool) -> list[Case]:
    sizes = (("b32", 32, 1), ("b64", 64, 1), ("b256", 256, 1), ("b32-k8", 32, 8))
    return [
        Case("replay-sample", name, partial(_build_sample, batch, k, small), is_default=True)
        for name, batch, k in sizes
    ]


def _build_sample(batch_size: int, k: int, small: bool) -> Built:
    capacity = SMALL_CAPACITY if small else CAPACITY
    replay, buffer = make_replay(FILL_ENVS, capacity), ReplayBuffer(capacity)
    fill(capacity, replay, buffer)

    tape = Tape(SEED)

    def reference() -> Any:
        return [buffer.sample(batch_size, tape) for _ in range(k)]

    def compare_batches(batch: Batch, plain: Any) -> Equality:
        return worst(
            compare_rows(batch, j, (*rows, np.float32(GAMMA) * (1 - done))) for j, (*rows, done) in enumerate(plain)
        )

    def growth() -> Growth:
        few = make_replay(FILL_ENVS, SMALL_CAPACITY)
        fill(SMALL_CAPACITY, few)
        small, large = (partial(rows.sample, batch_size, k, 0) for rows in (few, replay))
        return Growth(small, large, 1.0, f"{SMALL_CAPACITY:,} rows", f"{capacity:,}")

    return Built(
        reference=reference,
        fast=partial(replay.sample, batch_size, k, 0),
        compare=compare_batches,
        calls=20,
        tape=tape,
        growth=growth,
    )
