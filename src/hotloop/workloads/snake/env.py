"""Snake, batched: one kernel call steps every game, flood fills included."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from hotloop.core.errors import EnvError
from hotloop.core.settings import build, options_signature
from hotloop.core.types import Array, ArraySpec, DiscreteActions, EnvStep
from hotloop.workloads.snake.layout_kernels import NO_CELL, Games, empty_games, rules_of, saved_arrays
from hotloop.workloads.snake.settings import SnakeSettings
from hotloop.workloads.snake.step_kernels import reset_all, step_all

STATS = ("win", "death_wall", "death_body", "timeout")


class Snake:
    """Eat, grow, and do not run into walls or yourself. Options are the fields of `SnakeSettings`."""

    settings_type: ClassVar[type] = SnakeSettings
    has_action_mask = False
    saves_state = True

    def __init__(self, num_envs: int, seeds: Array, *, max_episode_steps: int = 0, **options: Any) -> None:
        self.settings = _settings(options, max_episode_steps)
        self.num_envs = num_envs
        grid = self.settings.observation == "grid"
        self.obs_spec = ArraySpec(self.settings.obs_shape, np.dtype(np.uint8 if grid else np.float32))
        self.action_spec = DiscreteActions(4 if self.settings.absolute else 3)
        self._games = empty_games(self.settings, num_envs, seeds)
        self._passed = tuple(self._games), tuple(rules_of(self.settings))  # as the kernels take them
        self._flat = (num_envs, self.obs_spec.size)
        self._no_stats = _stats(np.zeros(num_envs, np.int64), np.zeros((6, num_envs), np.bool_))

    def reset(self) -> tuple[Array, None]:
        obs = np.empty(self._flat, self.obs_spec.dtype)
        reset_all(*self._passed, obs)
        return self._shaped(obs), None

    def step(self, action: Array) -> EnvStep:
        count, dtype = self.num_envs, self.obs_spec.dtype
        obs, final_obs = np.empty(self._flat, dtype), np.empty(self._flat, dtype)
        reward, score = np.empty(count, np.float32), np.empty(count, np.int64)
        flags = np.empty((6, count), np.bool_)
        any_done = step_all(*self._passed, action, obs, final_obs, reward, flags, score)
        seen = self._shaped(obs)
        if not any_done:
            return EnvStep(seen, reward, flags[0], flags[1], seen, episode_stats=self._no_stats)
        stats = _stats(score, flags)
        return EnvStep(seen, reward, flags[0], flags[1], self._shaped(final_obs), episode_stats=stats)

    def hold_finished(self) -> None:
        """From now on leave a finished game as it ended, for whoever shows it and starts the next with `reset`."""
        self._passed = self._passed[0], tuple(rules_of(self.settings)._replace(restarts=False))

    def _shaped(self, obs: Array) -> Array:
        return obs if len(self.obs_spec.shape) == 1 else obs.reshape(self.num_envs, *self.obs_spec.shape)

    def get_state(self) -> dict[str, Array]:
        return {name: array.copy() for name, array in saved_arrays(self._games).items()}

    def set_state(self, state: Mapping[str, Array]) -> None:
        for name, mine in saved_arrays(self._games).items():
            saved = state[name]
            if saved.shape != mine.shape or saved.dtype != mine.dtype:
                raise EnvError(
                    f"saved `{name}` of `snake` is {saved.dtype}{saved.shape}; expected {mine.dtype}{mine.shape}",
                    "restore into as many envs with boards of the same size as were saved",
                )
        _require_possible(self._games._replace(**{name: state[name] for name in saved_arrays(self._games)}))
        for name, mine in saved_arrays(self._games).items():
            mine[...] = state[name]

    def reseed(self, seeds: Array) -> None:
        """Start each game's generator from its seed [N]; games go on as they are until `reset`."""
        self._games.generator[:] = seeds

    def close(self) -> None:
        """Nothing is held."""


def _require_possible(games: Games) -> None:
    """Whatever a kernel takes for a cell, a slot or a direction is one: a file may hold anything."""
    (head, length, direction, food, *counted), cells = games.game.T, games.body.shape[1]
    size = math.isqrt(cells)
    wrong = (head < 0) | (head >= cells) | (length < 1) | (length > cells) | (direction < 0) | (direction > 3)
    wrong |= ~(_on_board(food, size) | (food == NO_CELL)) | np.any(
        [(count < 0) | (count > 2**62) for count in counted], 0
    )
    wrong |= ~_on_board(games.body.astype(np.int64), size).all(axis=1)
    wrong |= ((games.occupied & ~games.board) != 0).any(axis=1)
    bits = np.unpackbits(np.ascontiguousarray(games.occupied).view(np.uint8), axis=1).sum(axis=1)
    if (wrong | (bits != length)).any():
        raise EnvError("a saved game of `snake` is on no board", "restore a state that `get_state` gave")


def _on_board(cell: Array, size: int) -> Array:
    return (cell >= 0) & (cell >> 6 < size) & (cell & 63 < size)


def _stats(score: Array, flags: Array) -> dict[str, Array]:
    return {"score": score} | dict(zip(STATS, flags[2:], strict=True))


def _settings(options: dict[str, Any], max_episode_steps: int) -> SnakeSettings:
    """The options, with the limit that every env takes (`env.max_episode_steps`) beside the game's own."""
    settings = build(SnakeSettings, options, source="the options of `snake`")
    limits = [limit for limit in (settings.max_steps, max_episode_steps) if limit]
    return dataclasses.replace(settings, max_steps=min(limits)) if limits else settings


Snake.__signature__ = options_signature(SnakeSettings, max_episode_steps=0)  # type: ignore[attr-defined]
