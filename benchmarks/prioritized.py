"""Prioritized replay: draw a batch, set its new priorities, over and over.

n-step returns: the window in front of the replay, and the rows that leave it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import hotloop
from benchmarks.replay import (
    BETA,
    CAPACITY,
    FILL_ENVS,
    GAMMA,
    SEED,
    SMALL_CAPACITY,
    add_plain,
    compare_rows,
    fill,
    make_replay,
    make_steps,
)
from benchmarks.sfc_step import Tape
from benchmarks.witnesses.dqn_parts import NStepBuffer
from benchmarks.witnesses.replays import PrioritizedReplay, ReplayBuffer
from hotloop.core.types import Array, Batch, EnvStep
from hotloop.proof.case import Case, Programs, TwoSizes
from hotloop.proof.equivalence import SEQUENCE, Equality, Snapshot, compare_sequences, compare_snapshots
from hotloop.replay.buffer import ReplayMemory as Replay

TOLERANCE = 1e-6
"""Of the importance weights, which are float32."""
ADD_EVERY = 10
"""Rounds of the check between two that store new rows."""


@hotloop.cases("drawing a batch by priority and setting its new priorities")
def prioritized_cases(small: bool = False) -> list[Case]:
    return [
        Case(
            family="replay-prioritized",
            size=f"b{batch}",
            build=partial(_build, batch, small),
            tolerance=TOLERANCE,
            quick=batch != 256,
        )
        for batch in (32, 64, 256)
    ]


def _pair(capacity: int) -> tuple[Replay, PrioritizedReplay]:
    replay, plain = make_replay(FILL_ENVS, capacity, prioritized=True), PrioritizedReplay(capacity)
    fill(capacity, replay, plain)
    return replay, plain


def _draw_and_set(replay: Replay, batch_size: int, errors: Array) -> Callable[[], Batch]:
    def call() -> Batch:
        batch = replay.sample(batch_size, 1, 0)
        replay.update_priorities(batch.index, errors)
        return batch

    return call


def _build(batch_size: int, small: bool) -> Programs:
    capacity = SMALL_CAPACITY if small else CAPACITY
    replay, plain = _pair(capacity)
    errors = np.random.default_rng(0).random((1, batch_size)).astype(np.float32)

    tape = Tape(SEED)

    def reference() -> Any:
        batch, weights, indices = plain.sample(batch_size, BETA, tape)
        plain.update_priorities(indices, errors[0])
        return batch, weights, indices

    def compare_draws(batch: Batch, drawn: Any) -> Equality:
        (obs, *_), weights, indices = drawn
        fast = {name: getattr(batch, name)[0] for name in ("index", "weight", "obs")}
        return compare_snapshots(fast, {"index": indices, "weight": weights, "obs": obs}, "of a timed call")

    def growth() -> TwoSizes:
        few = make_replay(FILL_ENVS, SMALL_CAPACITY, prioritized=True)
        fill(SMALL_CAPACITY, few)
        small, large = (_draw_and_set(rows, batch_size, errors) for rows in (few, replay))
        return TwoSizes(small, large, 1.0, f"{SMALL_CAPACITY:,} rows", f"{capacity:,}")

    return Programs(
        plain=reference,
        fast=_draw_and_set(replay, batch_size, errors),
        compare=compare_draws,
        calls=4,
        further=partial(_check, batch_size),
        tape=tape,
        growth=growth,
    )


def _check(batch_size: int) -> Equality:
    """The plain program draws with our own random numbers: the same rows must come, with the same weights."""
    replay, plain = _pair(SMALL_CAPACITY)
    tape, rng = Tape(SEED), np.random.default_rng(1)
    errors = rng.random((SEQUENCE + 1, 1, batch_size)).astype(np.float32)
    new_rows = make_steps(FILL_ENVS, SEQUENCE // ADD_EVERY + 1, seed=2)

    def fast(j: int) -> Snapshot:
        batch = replay.sample(batch_size, 1, 0)
        seen = {name: getattr(batch, name)[0].copy() for name in ("index", "weight", "obs")}
        replay.update_priorities(batch.index, errors[j])
        if j % ADD_EVERY == 0:
            replay.add(*new_rows[j // ADD_EVERY])
        return seen

    def reference(j: int) -> Snapshot:
        (obs, *_), weights, indices = plain.sample(batch_size, BETA, tape)
        plain.update_priorities(indices, errors[j][0])
        if j % ADD_EVERY == 0:
            add_plain(plain, *new_rows[j // ADD_EVERY])
        return {"index": indices, "weight": weights, "obs": obs}

    return compare_sequences(fast, reference)


N_STEP = 3
LONG = 30
"""The longer window that growth is measured on."""
N_STEP_TOLERANCE = 1e-6
"""Of the returns, which both sum in float64 and store as float32."""


@hotloop.cases("summing n rewards, then storing")
def n_step_cases(small: bool = False) -> list[Case]:
    return [
        Case(
            "n-step",
            f"n{N_STEP}-envs{num_envs}",
            partial(_build_n_step, num_envs),
            tolerance=N_STEP_TOLERANCE,
            quick=True,
        )
        for num_envs in (1, 256)
    ]


class _Plain:
    """One deque per env in front of one buffer."""

    def __init__(self, num_envs: int, capacity: int) -> None:
        self._windows = [NStepBuffer(N_STEP, GAMMA) for _ in range(num_envs)]
        self.stored = ReplayBuffer(capacity)

    def add(self, obs: Array, action: Array, step: EnvStep) -> None:
        answers = zip(obs, action, step.reward, step.final_obs, step.terminated, step.truncated, strict=True)
        for window, answer in zip(self._windows, answers, strict=True):
            for first_obs, first_action, total, discount, next_obs in window.add(*answer):
                self.stored.add(first_obs, first_action, total, next_obs, discount)


def _build_n_step(num_envs: int) -> Programs:
    replay, plain = make_replay(num_envs, CAPACITY, N_STEP), _Plain(num_envs, CAPACITY)
    step = make_steps(num_envs, 1)[0]

    def growth() -> TwoSizes:
        longer = make_replay(num_envs, CAPACITY, LONG)
        return TwoSizes(partial(replay.add, *step), partial(longer.add, *step), 1.0, f"n {N_STEP}", str(LONG))

    return Programs(
        plain=partial(plain.add, *step),
        fast=partial(replay.add, *step),
        compare=lambda fast, reference: _compare(replay, plain),
        calls=2 * N_STEP,
        further=partial(_check_n_step, num_envs),
        growth=growth,
    )


def _check_n_step(num_envs: int) -> Equality:
    replay, plain = make_replay(num_envs, 100 * num_envs, N_STEP), _Plain(num_envs, 100 * num_envs)
    for step in make_steps(num_envs, 100):
        replay.add(*step)
        plain.add(*step)
    return _compare(replay, plain)


def _compare(replay: Replay, plain: _Plain) -> Equality:
    """The rows that left the window: return, discount, and where each started and ended."""
    if replay.size != len(plain.stored):
        return Equality(float("inf"), f"{replay.size} rows against {len(plain.stored)}")
    if replay.size == 0:
        return Equality(0.0, "")
    batch = replay.sample(2_000, 1, 0)
    return compare_rows(batch, 0, plain.stored.collate([plain.stored.buffer[row] for row in batch.index[0]]))
