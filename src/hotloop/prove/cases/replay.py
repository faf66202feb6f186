"""Replay: store, draw uniformly, draw by priority, n-step returns. Both programs hold the same transitions.

Our draws are with replacement, `random.sample`'s without: what is compared is what the same rows give.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from hotloop.core.types import Array, ArraySpec, Batch, EnvStep
from hotloop.prove.case import Built, Case, Growth
from hotloop.prove.cases.tape import Tape
from hotloop.prove.equivalence import Equality, Side, Snapshot, compare, compare_sequences
from hotloop.prove.reference.n_step import NStepBuffer
from hotloop.prove.reference.prioritised import PrioritisedReplay
from hotloop.prove.reference.replay import ReplayBuffer
from hotloop.replay.buffer import Replay
from hotloop.replay.n_step import Returns
from hotloop.replay.settings import ReplaySettings

OBS_SIZE = 4
GAMMA = 0.99
SEED = 5
CAPACITY = 100_000
SMALL_CAPACITY = 1_000
BETA = 0.4
FILL_ENVS = 1_000
TOLERANCE_WEIGHTS = 1e-6  # float32 importance weights; the rows themselves must be equal


def _replay(num_envs: int, capacity: int, n_step: int = 1, prioritised: bool = False) -> Replay:
    settings = ReplaySettings(capacity=capacity, prioritised=prioritised, beta_start=BETA)
    return Replay(settings, ArraySpec((OBS_SIZE,)), num_envs, Returns(n_step, GAMMA), SEED)


def _steps(num_envs: int, count: int, seed: int = 0) -> list[tuple[Array, Array, EnvStep]]:
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


def _add_plain(buffer: Any, obs: Array, action: Array, step: EnvStep) -> None:
    for i in range(len(action)):
        buffer.add(obs[i], action[i], step.reward[i], step.final_obs[i], step.terminated[i])


def _filled(capacity: int, replay: Replay, buffer: Any) -> None:
    for obs, action, step in _steps(FILL_ENVS, capacity // FILL_ENVS):
        replay.add(obs, action, step)
        _add_plain(buffer, obs, action, step)


def _rows_differ(batch: Batch, j: int, plain: tuple[Array, ...]) -> Equality:
    obs, action, reward, next_obs, done = plain
    discount = np.float32(GAMMA) * (1 - done)
    mine = (batch.obs[j], batch.action[j], batch.reward[j], batch.next_obs[j], batch.discount[j])  # type: ignore[index]
    names = ("obs", "action", "reward", "next_obs", "discount")
    return compare(zip(names, mine, (obs, action, reward, next_obs, discount), strict=True))


def _same_rows(replay: Replay, buffer: ReplayBuffer, num_added: int, batch_size: int, k: int) -> Equality:
    """Draw from ours, and gather the very rows from the plain buffer: row p of the ring is its (p - oldest)-th."""
    oldest = num_added % replay.capacity if num_added > replay.capacity else 0
    batch = replay.sample(batch_size, k, 0)
    found = []
    for j in range(k):
        places = (batch.index[j] - oldest) % len(buffer)
        found.append(_rows_differ(batch, j, buffer.collate([buffer.buffer[place] for place in places])))
    return max(found, key=lambda equality: equality.max_error)


def add_cases(small: bool) -> list[Case]:
    return [
        Case("replay-add", f"n{num_envs}", partial(_build_add, num_envs, small), is_default=True)
        for num_envs in (1, 256)
    ]


def _build_add(num_envs: int, small: bool) -> Built:
    capacity = SMALL_CAPACITY if small else CAPACITY
    replay, buffer = _replay(num_envs, capacity), ReplayBuffer(capacity)
    obs, action, step = _steps(num_envs, 1)[0]
    single = (obs[0], action[0], step.reward[0], step.final_obs[0], step.terminated[0])

    def reference() -> None:
        if num_envs == 1:
            buffer.add(*single)
        else:
            buffer.add_many(obs, action, step.reward, step.final_obs, step.terminated)

    def growth() -> Growth:
        """Into a replay a hundred times as large, past its first round."""
        both = [_replay(num_envs, size) for size in (capacity // 100, capacity)]
        for replay in both:
            for _ in range(min(2 * replay.capacity // num_envs, 20_000)):
                replay.add(obs, action, step)
        calls = [partial(replay.add, obs, action, step) for replay in both]
        return Growth(*calls, 1.0, f"{capacity // 100:,} rows", f"{capacity:,}")

    return Built(partial(_check_add, num_envs), reference, lambda: replay.add(obs, action, step), growth)


def _check_add(num_envs: int) -> Equality:
    """A ring that has gone round twice holds what a deque of the same length holds."""
    replay, buffer = _replay(num_envs, SMALL_CAPACITY), ReplayBuffer(SMALL_CAPACITY)
    steps = _steps(num_envs, 2 * SMALL_CAPACITY // num_envs + 3)
    for obs, action, step in steps:
        replay.add(obs, action, step)
        buffer.add_many(obs, action, step.reward, step.final_obs, step.terminated)
    return _same_rows(replay, buffer, num_envs * len(steps), 8 * SMALL_CAPACITY, 1)


def sample_cases(small: bool) -> list[Case]:
    sizes = ((32, 1), (64, 1), (256, 1), (32, 8))
    return [
        Case("replay-sample", f"b{batch}" + (f"-k{k}" if k > 1 else ""), partial(_build_sample, batch, k, small), is_default=True)
        for batch, k in sizes
    ]  # fmt: skip


def _build_sample(batch_size: int, k: int, small: bool) -> Built:
    capacity = SMALL_CAPACITY if small else CAPACITY
    replay, buffer = _replay(FILL_ENVS, capacity), ReplayBuffer(capacity)
    _filled(capacity, replay, buffer)

    def reference() -> Any:
        return [buffer.sample(batch_size) for _ in range(k)]

    def growth() -> Growth:
        few = _replay(FILL_ENVS, SMALL_CAPACITY)
        _filled(SMALL_CAPACITY, few, ReplayBuffer(1))
        calls = [partial(rows.sample, batch_size, k, 0) for rows in (few, replay)]
        return Growth(*calls, 1.0, f"{SMALL_CAPACITY:,} rows", f"{capacity:,}")

    def check() -> Equality:
        return max(
            (_same_rows(replay, buffer, capacity, batch_size, k) for _ in range(20)),
            key=lambda equality: equality.max_error,
        )

    return Built(check, reference, lambda: replay.sample(batch_size, k, 0), growth)


def prioritised_cases(small: bool) -> list[Case]:
    return [
        Case(
            family="replay-prioritised",
            size=f"b{batch}",
            build=partial(_build_prioritised, batch, small),
            tolerance=TOLERANCE_WEIGHTS,
            is_default=batch != 256,
        )
        for batch in (32, 64, 256)
    ]


def _prioritised(capacity: int) -> tuple[Replay, PrioritisedReplay]:
    replay, plain = _replay(FILL_ENVS, capacity, prioritised=True), PrioritisedReplay(capacity)
    _filled(capacity, replay, plain)
    return replay, plain


def _draw_and_set(replay: Replay, batch_size: int, errors: Array) -> Callable[[], Batch]:
    def call() -> Batch:
        batch = replay.sample(batch_size, 1, 0)
        replay.update_priorities(batch.index, errors)
        return batch

    return call


def _build_prioritised(batch_size: int, small: bool) -> Built:
    capacity = SMALL_CAPACITY if small else CAPACITY
    replay, plain = _prioritised(capacity)
    errors = np.random.default_rng(0).random((1, batch_size)).astype(np.float32)

    def reference() -> Any:
        batch, weights, indices = plain.sample(batch_size, BETA)
        plain.update_priorities(indices, errors[0])
        return batch, weights

    def growth() -> Growth:
        few, _ = _prioritised(SMALL_CAPACITY)
        calls = [_draw_and_set(rows, batch_size, errors) for rows in (few, replay)]
        return Growth(*calls, 1.0, f"{SMALL_CAPACITY:,} rows", f"{capacity:,}")

    fast = _draw_and_set(replay, batch_size, errors)
    return Built(partial(_check_prioritised, batch_size), reference, fast, growth)


def _check_prioritised(batch_size: int) -> Equality:
    """Rounds of draw, learn new priorities and add rows, the plain program drawing with our own random numbers."""
    replay, plain = _prioritised(SMALL_CAPACITY)
    tape, rng = Tape(SEED), np.random.default_rng(1)
    rounds = [(rng.random((1, batch_size)).astype(np.float32), step) for step in _steps(FILL_ENVS, 50, seed=2)]

    def fast(j: int) -> Snapshot:
        batch = replay.sample(batch_size, 1, 0)
        seen = {"index": batch.index[0].copy(), "weight": batch.weight[0].copy(), "obs": batch.obs[0].copy()}  # type: ignore[index]
        replay.update_priorities(batch.index, rounds[j][0])
        if j % 10 == 9:
            replay.add(*rounds[j][1])
        return seen

    def reference(j: int) -> Snapshot:
        (obs, *_), weights, indices = plain.sample(batch_size, BETA, tape)
        plain.update_priorities(indices, rounds[j][0][0])
        if j % 10 == 9:
            _add_plain(plain, *rounds[j][1])
        return {"index": indices, "weight": weights, "obs": obs}

    return compare_sequences(Side(fast, dict), Side(reference, dict))


def n_step_cases(small: bool) -> list[Case]:
    return [
        Case("n-step", f"n{n_step}-envs{num_envs}", partial(_build_n_step, n_step, num_envs), tolerance=1e-6, is_default=True)
        for n_step, num_envs in ((3, 1), (3, 256))
    ]  # fmt: skip


def _plain_n_step(buffers: list[NStepBuffer], stored: ReplayBuffer, obs: Array, action: Array, step: EnvStep) -> None:
    for i, buffer in enumerate(buffers):
        finished = buffer.add(
            obs[i], action[i], step.reward[i], step.final_obs[i], step.terminated[i], step.truncated[i]
        )
        for first_obs, first_action, total, discount, next_obs in finished:
            stored.add(first_obs, first_action, total, next_obs, discount)


def _build_n_step(n_step: int, num_envs: int) -> Built:
    replay, stored = _replay(num_envs, CAPACITY, n_step), ReplayBuffer(CAPACITY)
    buffers = [NStepBuffer(n_step, GAMMA) for _ in range(num_envs)]
    obs, action, step = _steps(num_envs, 1)[0]

    def growth() -> Growth:
        longer = _replay(num_envs, CAPACITY, 10 * n_step)
        calls = [partial(rows.add, obs, action, step) for rows in (replay, longer)]
        return Growth(*calls, 1.0, f"n {n_step}", f"{10 * n_step}")

    return Built(
        check=partial(_check_n_step, n_step, num_envs),
        reference=lambda: _plain_n_step(buffers, stored, obs, action, step),
        fast=lambda: replay.add(obs, action, step),
        growth=growth,
    )


def _check_n_step(n_step: int, num_envs: int) -> Equality:
    """Every row that left the window, in order: return, discount, and where it started and ended."""
    replay, stored = _replay(num_envs, 30_000, n_step), ReplayBuffer(30_000)
    buffers = [NStepBuffer(n_step, GAMMA) for _ in range(num_envs)]
    for obs, action, step in _steps(num_envs, 200 if num_envs == 1 else 100):
        replay.add(obs, action, step)
        _plain_n_step(buffers, stored, obs, action, step)
    if replay.size != len(stored):
        return Equality(float("inf"), f"{replay.size} rows against {len(stored)}")
    batch = replay.sample(2_000, 1, 0)
    obs, action, reward, next_obs, discount = stored.collate([stored.buffer[row] for row in batch.index[0]])
    mine = (batch.obs[0], batch.action[0], batch.reward[0], batch.next_obs[0], batch.discount[0])  # type: ignore[index]
    names = ("obs", "action", "reward", "next_obs", "discount")
    return compare(zip(names, mine, (obs, action, reward, next_obs, discount), strict=True))
