"""What is done with a replay, the rows it is done with, and our own way of doing it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from hotloop.core.types import Array, ArraySpec, EnvStep
from hotloop.presets.replay_settings import ReplaySettings
from hotloop.replay.buffer import ReplayMemory as Replay
from hotloop.replay.n_step import Returns

Call = Callable[[], Any]
CAPACITY = 100_000
FILL_ROWS = 1_000
ALPHA, BETA = 0.6, 0.4


@dataclass(frozen=True)
class Work:
    """One thing to do with a replay of CAPACITY rows.

    `add`: rows that are already in the form the library wants. `store`: one row as a Gymnasium env and a policy give
    it, two arrays and four Python numbers, with whatever conversion the library then needs. `prioritized`: draw a
    batch, then set its priorities.
    """

    kind: Literal["add", "store", "sample", "prioritized"]
    rows: int
    features: int

    @property
    def name(self) -> str:
        return f"replay-{self.kind}/{self.rows}x{self.features}"


class Rows(NamedTuple):
    obs: Array  # [rows, features]
    action: Array
    reward: Array
    terminated: Array
    truncated: Array
    next_obs: Array


def make_rows(rows: int, features: int, seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    obs, next_obs = rng.normal(size=(2, rows, features)).astype(np.float32)
    terminated, truncated = rng.random((2, rows)) < 0.02
    return Rows(obs, rng.integers(2, size=rows), np.ones(rows, np.float32), terminated, truncated, next_obs)


def make_errors(rows: int) -> Array:
    """New priorities of a batch."""
    return np.random.default_rng(1).random(rows).astype(np.float32) + np.float32(0.01)


class Step(NamedTuple):
    """One row, as a Gymnasium env and a policy give it."""

    obs: Array  # [features]
    action: int
    reward: float
    terminated: bool
    truncated: bool
    next_obs: Array


def make_step(features: int) -> Step:
    rows = make_rows(1, features)
    return Step(rows.obs[0], 1, 1.0, False, False, rows.next_obs[0])


def hotloop_call(work: Work) -> Call:
    if work.kind == "store":
        return functools.partial(_hotloop_store, _hotloop_replay(work.features, 1, False), make_step(work.features))
    if work.kind == "add":
        return functools.partial(_hotloop_replay(work.features, work.rows, False).add, *_hotloop_step(work.rows, work))
    replay = _hotloop_replay(work.features, FILL_ROWS, work.kind == "prioritized")
    for _ in range(CAPACITY // FILL_ROWS):
        replay.add(*_hotloop_step(FILL_ROWS, work))
    if work.kind == "sample":
        return lambda: replay.sample(work.rows, 1, 0)
    errors = make_errors(work.rows)[None]

    def draw_and_set() -> None:
        replay.update_priorities(replay.sample(work.rows, 1, 0).index, errors)

    return draw_and_set


def _hotloop_store(replay: Replay, row: Step) -> None:
    reward, flags = np.full(1, row.reward, np.float32), np.array([[row.terminated], [row.truncated]])
    next_obs = row.next_obs[None]
    replay.add(row.obs[None], np.array([row.action]), EnvStep(next_obs, reward, flags[0], flags[1], next_obs))


def _hotloop_replay(features: int, num_envs: int, prioritized: bool) -> Replay:
    settings = ReplaySettings(buffer_size=CAPACITY, prioritized=prioritized, alpha=ALPHA, beta_start=BETA)
    return Replay(settings, ArraySpec((features,)), num_envs, Returns(1, 0.99), seed=0)


def _hotloop_step(rows: int, work: Work) -> tuple[Array, Array, EnvStep]:
    made = make_rows(rows, work.features)
    step = EnvStep(made.next_obs, made.reward, made.terminated, made.truncated, made.next_obs)
    return made.obs, made.action, step
