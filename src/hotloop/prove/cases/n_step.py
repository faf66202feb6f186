"""n-step returns: the window in front of the replay, and the rows that leave it."""

from __future__ import annotations

from functools import partial

from hotloop.core.types import Array, EnvStep
from hotloop.prove.case import Built, Case, Growth
from hotloop.prove.cases.transitions import CAPACITY, GAMMA, compare_rows, make_replay, make_steps
from hotloop.prove.equivalence import Equality
from hotloop.prove.reference.n_step import NStepBuffer
from hotloop.prove.reference.replay import ReplayBuffer
from hotloop.replay.buffer import Replay

N_STEP = 3
LONG = 30
"""The longer window that growth is measured on."""
TOLERANCE = 1e-6
"""Of the returns, which both sum in float64 and store as float32."""


def n_step_cases(small: bool) -> list[Case]:
    return [
        Case("n-step", f"n{N_STEP}-envs{num_envs}", partial(_build, num_envs), tolerance=TOLERANCE, is_default=True)
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


def _build(num_envs: int) -> Built:
    replay, plain = make_replay(num_envs, CAPACITY, N_STEP), _Plain(num_envs, CAPACITY)
    step = make_steps(num_envs, 1)[0]

    def growth() -> Growth:
        longer = make_replay(num_envs, CAPACITY, LONG)
        return Growth(partial(replay.add, *step), partial(longer.add, *step), 1.0, f"n {N_STEP}", str(LONG))

    return Built(
        reference=partial(plain.add, *step),
        fast=partial(replay.add, *step),
        compare=lambda fast, reference: _compare(replay, plain),
        calls=2 * N_STEP,
        further=partial(_check, num_envs),
        growth=growth,
    )


def _check(num_envs: int) -> Equality:
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
