"""Replay: store, and draw uniformly. Both programs hold the same transitions.

Our draws are with replacement, `random.sample`'s without: for the comparison the plain program gets our draws.

Replay on a disk: store a step of N envs and draw a batch of B, both programs on mapped files.

The rows fit into memory here, so that programs are compared rather than disks; both wait for the same disk where not.

Transitions for the replay cases: made once, given to both programs, compared row by row.
"""

from __future__ import annotations

from functools import partial
from tempfile import gettempdir
from typing import Any

import numpy as np

import hotloop
from benchmarks.sfc_step import Tape
from benchmarks.witnesses.replays import MemmapReplayBuffer, ReplayBuffer
from hotloop.core.kernels import next_below
from hotloop.core.temporary import TemporaryFolder
from hotloop.core.types import Array, ArraySpec, Batch, EnvStep
from hotloop.presets.replay_settings import ReplaySettings
from hotloop.proof.case import Case, Programs, TwoSizes
from hotloop.proof.equivalence import Equality, compare, worst
from hotloop.replay.buffer import ReplayMemory as Replay
from hotloop.replay.n_step import Returns
from hotloop.replay.storage import BatchArrays

OBS_SIZE = 4
GAMMA = 0.99
SEED = 5
CAPACITY = 100_000
SMALL_CAPACITY = 1_000
BETA = 0.4
FILL_ENVS = 1_000
"""Rows that one `add` stores while a replay is filled."""


def make_replay(num_envs: int, capacity: int, n_step: int = 1, prioritized: bool = False) -> Replay:
    settings = ReplaySettings(buffer_size=capacity, prioritized=prioritized, beta_start=BETA)
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
    arrays = BatchArrays(replay.plan(1, ring.size))
    oldest = ring.num_added % ring.capacity if ring.num_added > ring.capacity else 0
    arrays.batch.index[0] = (oldest + np.arange(ring.size)) % ring.size
    ring.gather(arrays)
    return arrays.batch


def compare_rows(batch: Batch, j: int, plain: tuple[Any, ...]) -> Equality:
    """Batch j against (obs, action, reward, next_obs, discount)."""
    names = ("obs", "action", "reward", "next_obs", "discount")
    return compare((name, getattr(batch, name)[j], theirs) for name, theirs in zip(names, plain, strict=True))


def _same_rows(replay: Replay, buffer: ReplayBuffer, num_added: int, batch_size: int, k: int) -> Equality:
    """Draw from ours, and gather the very rows from the plain buffer: row p of the ring is its (p - oldest)-th."""
    oldest = num_added % replay.buffer_size if num_added > replay.buffer_size else 0
    batch = replay.sample(batch_size, k, 0)
    found = []
    for j in range(k):
        places = (batch.index[j] - oldest) % len(buffer)
        *rows, done = buffer.collate([buffer.buffer[place] for place in places])
        found.append(compare_rows(batch, j, (*rows, np.float32(GAMMA) * (1 - done))))
    return worst(found)


@hotloop.cases("storing one transition of each of N envs")
def add_cases(small: bool = False) -> list[Case]:
    return [
        Case("replay-add", f"n{num_envs}", partial(_build_add, num_envs, small), quick=True) for num_envs in (1, 256)
    ]


def _build_add(num_envs: int, small: bool) -> Programs:
    capacity = SMALL_CAPACITY if small else CAPACITY
    replay, buffer = make_replay(num_envs, capacity), ReplayBuffer(capacity)
    obs, action, step = make_steps(num_envs, 1)[0]
    single = (obs[0], action[0], step.reward[0], step.final_obs[0], step.terminated[0])

    def reference() -> None:
        if num_envs == 1:
            buffer.add(*single)
        else:
            buffer.add_many(obs, action, step.reward, step.final_obs, step.terminated)

    def growth() -> TwoSizes:
        """Into a replay a hundred times as large."""
        few, many = (
            partial(make_replay(num_envs, size).add, obs, action, step) for size in (capacity // 100, capacity)
        )
        return TwoSizes(few, many, 1.0, f"{capacity // 100:,} rows", f"{capacity:,}")

    return Programs(
        plain=reference,
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


@hotloop.cases("drawing k batches of B transitions")
def sample_cases(small: bool = False) -> list[Case]:
    sizes = (("b32", 32, 1), ("b64", 64, 1), ("b256", 256, 1), ("b32-k8", 32, 8))
    return [
        Case("replay-sample", name, partial(_build_sample, batch, k, small), quick=True) for name, batch, k in sizes
    ]


def _build_sample(batch_size: int, k: int, small: bool) -> Programs:
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

    def growth() -> TwoSizes:
        few = make_replay(FILL_ENVS, SMALL_CAPACITY)
        fill(SMALL_CAPACITY, few)
        small, large = (partial(rows.sample, batch_size, k, 0) for rows in (few, replay))
        return TwoSizes(small, large, 1.0, f"{SMALL_CAPACITY:,} rows", f"{capacity:,}")

    return Programs(
        plain=reference,
        fast=partial(replay.sample, batch_size, k, 0),
        compare=compare_batches,
        calls=20,
        tape=tape,
        growth=growth,
    )


DISK_CAPACITY = 1_000_000
SIZES = ((1, 32), (256, 64))


@hotloop.cases("storing a step of N envs and drawing a batch, on mapped files")
def replay_disk_cases(small: bool = False) -> list[Case]:
    return [
        Case("replay-disk", f"n{num_envs}-b{batch}", partial(_build, num_envs, batch, small), quick=num_envs > 1)
        for num_envs, batch in SIZES
    ]


def make_pair(num_envs: int, capacity: int) -> tuple[Replay, MemmapReplayBuffer]:
    settings = ReplaySettings(buffer_size=capacity, memory="disk", folder=gettempdir())
    replay = Replay(settings, ArraySpec((OBS_SIZE,)), num_envs, Returns(1, GAMMA), SEED)
    with TemporaryFolder("prove") as folder:  # the maps outlive the names of their files
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


def _build(num_envs: int, batch_size: int, small: bool) -> Programs:
    capacity = SMALL_CAPACITY if small else DISK_CAPACITY
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

    def growth() -> TwoSizes:
        few, _ = make_filled_pair(num_envs, SMALL_CAPACITY)
        return TwoSizes(partial(fast, few), partial(fast, replay), 1.0, f"{SMALL_CAPACITY:,} rows", f"{capacity:,}")

    return Programs(
        plain=reference,
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
