"""Storing a transition of each of 256 games: one at a time off the device, against one call.

`one-by-one`: `.cpu().numpy()` and `.item()` for every game. `batched`: each tensor off the device once, then a loop.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from hotloop.core.types import Array, ArraySpec, EnvStep
from hotloop.prove.case import Built, Case, Growth
from hotloop.prove.cases.snake_play import carefully, make_ours
from hotloop.prove.cases.transitions import all_rows
from hotloop.prove.equivalence import Equality, compare
from hotloop.prove.reference.snake_dqn import ReplayBuffer, push_batch, push_one_by_one
from hotloop.replay.buffer import Replay
from hotloop.replay.n_step import Returns
from hotloop.replay.settings import ReplaySettings

FORMS = {"one-by-one": push_one_by_one, "batched": push_batch}
SIZES = {"256": (256, "flood-fill"), "256-basic": (256, "basic")}
SMALL = {"4": (4, "flood-fill")}
CAPACITY, SMALL_CAPACITY = 100_000, 1_000
GAMMA = 0.99

Stored = tuple[Array, Array, EnvStep]


def replay_push_cases(small: bool) -> list[Case]:
    return [
        Case(
            family="replay-push",
            variant=form,
            size=name,
            build=partial(_build, form, num_games, mode, SMALL_CAPACITY if small else CAPACITY),
            is_default=(form, name) == ("one-by-one", "256"),
        )
        for form in FORMS
        for name, (num_games, mode) in (SMALL if small else SIZES).items()
    ]


def _replay(num_games: int, num_features: int, capacity: int) -> Replay:
    returns = Returns(1, GAMMA, timeouts_are_terminal=True)
    return Replay(ReplaySettings(capacity=capacity), ArraySpec((num_features,)), num_games, returns, seed=5)


def _play(num_games: int, mode: str, num_steps: int) -> list[Stored]:
    """What `Replay.add` takes, from games that end now and then, by death and by time-out."""
    guide, env = make_ours("flood-fill", num_games, max_steps=25), make_ours(mode, num_games, max_steps=25)
    rng, seen, obs, stored = np.random.default_rng(0), guide.reset()[0], env.reset()[0], []
    for _ in range(num_steps):
        action = np.where(rng.random(num_games) < 0.9, carefully(seen, rng), rng.integers(3, size=num_games))
        seen, step = guide.step(action).obs, env.step(action)
        stored.append((obs, action, step))
        obs = step.obs
    return stored


def _tensors(stored: Stored) -> tuple[torch.Tensor, ...]:
    """The same as the plain program has it."""
    obs, action, step = stored
    arrays = (obs, action, step.reward, step.final_obs, step.terminated | step.truncated)
    return tuple(torch.tensor(array) for array in arrays)


def _build(form: str, num_games: int, mode: str, capacity: int) -> Built:
    stored = _play(num_games, mode, 20)
    features = stored[-1][0].shape[1]
    replay, buffer = _replay(num_games, features, capacity), ReplayBuffer(capacity)

    def growth() -> Growth:
        """Into a replay a hundred times as large."""
        few, many = (partial(_replay(num_games, features, rows).add, *stored[-1]) for rows in (1_000, CAPACITY))
        return Growth(few, many, 1.0, "1,000 rows", f"{CAPACITY:,}")

    return Built(
        reference=partial(FORMS[form], buffer, *_tensors(stored[-1])),
        fast=partial(replay.add, *stored[-1]),
        compare=lambda fast, plain: compare_rows(replay, buffer),
        further=partial(_check, form, num_games, mode),
        growth=growth,
    )


def _check(form: str, num_games: int, mode: str) -> Equality:
    """A ring and a deque that have both begun to forget hold the same rows."""
    stored, capacity = _play(num_games, mode, 40), 25 * num_games + 1
    replay, buffer = _replay(num_games, stored[0][0].shape[1], capacity), ReplayBuffer(capacity)
    for one in stored:
        replay.add(*one)
        FORMS[form](buffer, *_tensors(one))
    return compare_rows(replay, buffer)


def compare_rows(replay: Replay, buffer: ReplayBuffer) -> Equality:
    """All of them, from the oldest to the newest."""
    batch = all_rows(replay)
    states, actions, rewards, next_states, dones = map(np.array, zip(*buffer.buffer, strict=True))
    return compare(
        [
            ("obs", batch.obs[0], states),  # type: ignore[index]
            ("action", batch.action[0], actions),
            ("reward", batch.reward[0], rewards.astype(np.float32)),
            ("next_obs", batch.next_obs[0], next_states),  # type: ignore[index]
            ("discount", batch.discount[0], np.float32(GAMMA) * (1 - dones.astype(np.float32))),
        ]
    )
