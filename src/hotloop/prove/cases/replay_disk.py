"""Replay on a disk: store a step of N envs and draw a batch of B, both programs on mapped files.

The rows fit into memory here, so that programs are compared rather than disks; both wait for the same disk where not.
"""

from __future__ import annotations

from functools import partial
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

import numpy as np

from hotloop.core.kernels import next_below
from hotloop.core.types import Array, ArraySpec, Batch
from hotloop.prove.case import Built, Case, Growth
from hotloop.prove.cases.transitions import (
    FILL_ENVS,
    GAMMA,
    OBS_SIZE,
    SEED,
    SMALL_CAPACITY,
    compare_rows,
    make_replay,
    make_steps,
)
from hotloop.prove.equivalence import Equality, worst
from hotloop.prove.reference.memmap_replay import MemmapReplayBuffer
from hotloop.replay.buffer import Replay
from hotloop.replay.n_step import Returns
from hotloop.replay.settings import ReplaySettings

CAPACITY = 1_000_000
SIZES = ((1, 32), (256, 64))


def replay_disk_cases(small: bool) -> list[Case]:
    return [
        Case("replay-disk", f"n{num_envs}-b{batch}", partial(_build, num_envs, batch, small), is_default=num_envs > 1)
        for num_envs, batch in SIZES
    ]


def make_pair(num_envs: int, capacity: int) -> tuple[Replay, MemmapReplayBuffer]:
    settings = ReplaySettings(capacity=capacity, memory="disk", folder=gettempdir())
    replay = Replay(settings, ArraySpec((OBS_SIZE,)), num_envs, Returns(1, GAMMA), SEED)
    with TemporaryDirectory() as folder:  # the maps outlive the names of their files
        return replay, MemmapReplayBuffer(folder, capacity, OBS_SIZE)


def make_filled_pair(num_envs: int, capacity: int) -> tuple[Replay, MemmapReplayBuffer]:
    """The same rows in both, all of them filled."""
    replay, buffer = make_pair(num_envs, capacity)
    filler = make_replay(FILL_ENVS, capacity)
    for obs, action, step in make_steps(FILL_ENVS, capacity // FILL_ENVS):
        filler.add(obs, action, step)
        buffer.add(obs, action, step.reward, step.final_obs, step.terminated)
    replay.load_state(filler.state())
    return replay, buffer


class RowTape:
    """Our replay's draws in the place of the plain buffer's own generator."""

    def __init__(self, buffer: MemmapReplayBuffer) -> None:
        self._buffer, self._own, self._draws = buffer, buffer.random, np.array([SEED], np.uint64)
        buffer.random = self  # type: ignore[assignment]

    def integers(self, bound: int, size: int) -> Array:
        return np.array([next_below(self._draws, 0, bound) for _ in range(size)])

    def end(self) -> None:
        self._buffer.random = self._own


def _build(num_envs: int, batch_size: int, small: bool) -> Built:
    capacity = SMALL_CAPACITY if small else CAPACITY
    replay, buffer = make_filled_pair(num_envs, capacity)
    obs, action, step = make_steps(num_envs, 1)[0]

    def fast(replay: Replay) -> Any:
        replay.add(obs, action, step)
        return replay.sample(batch_size, 1, 0)

    def reference() -> Any:
        buffer.add(obs, action, step.reward, step.final_obs, step.terminated)
        return buffer.sample(batch_size)

    def compare_batches(batch: Batch, plain: Any) -> Equality:
        *rows, done = plain
        return compare_rows(batch, 0, (*rows, np.float32(GAMMA) * (1 - done)))

    def growth() -> Growth:
        few, _ = make_filled_pair(num_envs, SMALL_CAPACITY)
        return Growth(partial(fast, few), partial(fast, replay), 1.0, f"{SMALL_CAPACITY:,} rows", f"{capacity:,}")

    return Built(
        reference=reference,
        fast=partial(fast, replay),
        compare=compare_batches,
        calls=4,
        further=partial(_check, num_envs, batch_size),
        tape=RowTape(buffer),
        growth=growth,
    )


def _check(num_envs: int, batch_size: int) -> Equality:
    """Step by step, until the ring has gone round twice: what ours draws, the plain program has in the same rows."""
    replay, buffer = make_pair(num_envs, SMALL_CAPACITY)
    found = []
    for obs, action, step in make_steps(num_envs, 2 * SMALL_CAPACITY // num_envs + 3):
        replay.add(obs, action, step)
        buffer.add(obs, action, step.reward, step.final_obs, step.terminated)
        batch = replay.sample(batch_size, 1, 0)
        *rows, done = buffer.gather(batch.index[0])
        found.append(compare_rows(batch, 0, (*rows, np.float32(GAMMA) * (1 - done))))
    return worst(found)
