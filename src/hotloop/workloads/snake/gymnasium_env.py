"""Snake for anybody's agent: importing this module registers `hotloop/Snake-v0` with Gymnasium.

    gymnasium.make("hotloop.workloads.snake.gymnasium_env:hotloop/Snake-v0", observation="flood_fill")
    gymnasium.make_vec("hotloop.workloads.snake.gymnasium_env:hotloop/Snake-v0", num_envs=256)

Keyword arguments are the fields of `SnakeSettings`.
"""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from hotloop.envs.as_gymnasium import SAME_STEP, AsEnv, AsVectorEnv, EnvFace, register
from hotloop.workloads.snake import draw
from hotloop.workloads.snake.env import Snake

ENV_ID = "hotloop/Snake-v0"


def _spaces(snake: Snake) -> tuple[spaces.Box, spaces.Discrete]:
    high = 255 if snake.obs_spec.dtype == np.uint8 else 1
    box = spaces.Box(0, high, snake.obs_spec.shape, snake.obs_spec.dtype.type)
    return box, spaces.Discrete(snake.action_spec.count)


FACE = EnvFace("snake", Snake, _spaces, draw)


class SnakeEnv(AsEnv):
    """One game."""

    face, metadata = FACE, FACE.metadata()


class SnakeVectorEnv(AsVectorEnv):
    """`num_envs` games in one call each step."""

    face, metadata = FACE, FACE.metadata() | SAME_STEP


register(ENV_ID, SnakeEnv, SnakeVectorEnv)
