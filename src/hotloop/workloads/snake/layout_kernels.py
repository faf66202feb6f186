"""What the kernels are handed: the games as arrays, the rules as numbers.

Its constants are compiled into them, hence the file's name: it is part of what the cache of machine code is keyed by.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hotloop.core.types import Array
from hotloop.workloads.snake.board import board_of, num_words, stride_of
from hotloop.workloads.snake.settings import SnakeSettings

# columns of Games.game
HEAD, LENGTH, DIRECTION, FOOD, STEPS, HUNGRY = range(6)
NO_CELL = -1

# Rules.observation
BASIC, BASIC10, FLOOD_FILL, SELECTIVE, ENHANCED, FORESIGHT, GRID = range(7)
OBSERVATIONS = {
    "basic": BASIC,
    "basic10": BASIC10,
    "flood_fill": FLOOD_FILL,
    "selective": SELECTIVE,
    "enhanced": ENHANCED,
    "foresight": FORESIGHT,
    "grid": GRID,
}


class Games(NamedTuple):
    """N games. A cell is written as `y * 64 + x` here, so that both come out by shift and mask."""

    body: Array  # [N, cells] int16, a ring: the head's slot is in `game`, the rest of the body lies in those before it
    occupied: Array  # [N, words] uint64, the body as bits
    game: Array  # [N, 6] int64: slot of the head, length, direction, food, steps, steps since food
    generator: Array  # [N] uint64
    board: Array  # [words] uint64, every cell set
    reached: Array  # [4, words] uint64, scratch: the regions straight, right and left of a head, and one more
    room: Array  # [3] int64, scratch: the cells of each


class SnakeRules(NamedTuple):
    size: int
    stride: int
    start_length: int
    max_steps: int
    max_hungry: int
    free_tail: bool
    absolute: bool
    observation: int
    restarts: bool  # whether a finished game starts anew in the same step
    food_reward: float
    death_reward: float
    nearer_reward: float
    farther_reward: float
    timeout_reward: float


def empty_games(settings: SnakeSettings, num_envs: int, seeds: Array) -> Games:
    words = num_words(settings.board_size)
    return Games(
        body=np.zeros((num_envs, settings.num_cells), np.int16),
        occupied=np.zeros((num_envs, words), np.uint64),
        game=np.zeros((num_envs, 6), np.int64),
        generator=np.array(seeds, np.uint64),
        board=board_of(settings.board_size),
        reached=np.zeros((4, words), np.uint64),
        room=np.zeros(3, np.int64),
    )


def rules_of(settings: SnakeSettings) -> SnakeRules:
    size, cell = settings.board_size, settings.distance_reward
    return SnakeRules(
        size=size,
        stride=stride_of(size),
        start_length=settings.start_length,
        max_steps=settings.max_steps or 2**62,
        max_hungry=settings.max_steps_without_food or 2**62,
        free_tail=settings.free_tail,
        absolute=settings.absolute,
        observation=OBSERVATIONS[settings.observation],
        restarts=True,
        food_reward=settings.food_reward,
        death_reward=settings.death_reward,
        nearer_reward=settings.step_reward + cell * 1 / size,
        farther_reward=settings.step_reward + cell * -1 / size,
        timeout_reward=settings.timeout_reward,
    )


def saved_arrays(games: Games) -> dict[str, Any]:
    """Name -> array of everything that a saved state holds."""
    return {"body": games.body, "occupied": games.occupied, "game": games.game, "generator": games.generator}
