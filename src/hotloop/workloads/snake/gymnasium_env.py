"""Snake for anybody's agent: importing this module registers `hotloop/Snake-v0` with Gymnasium.

    gymnasium.make("hotloop.workloads.snake.gymnasium_env:hotloop/Snake-v0", observation="flood_fill")
    gymnasium.make_vec("hotloop.workloads.snake.gymnasium_env:hotloop/Snake-v0", num_envs=256)

Env i of a batch seeded with s plays what a single env seeded with s + i plays.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from hotloop.core.errors import EnvError
from hotloop.core.rng import derive_seed
from hotloop.core.types import Array
from hotloop.workloads.snake import draw
from hotloop.workloads.snake.env import Snake

ENV_ID = "hotloop/Snake-v0"
RENDER_MODES = ["rgb_array", "ansi"]


class SnakeEnv(gymnasium.Env[Array, Any]):
    """One game; keyword arguments are the fields of `SnakeSettings`. `info` of a finished one holds its measures."""

    metadata = {"render_modes": RENDER_MODES, "render_fps": 15}

    def __init__(self, render_mode: str | None = None, **options: Any) -> None:
        self.render_mode = _checked_mode(render_mode)
        self._snake = Snake(1, np.zeros(1, np.uint64), **options)
        self._snake.hold_finished()
        self.observation_space, self.action_space = _spaces(self._snake)
        self._seeded = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None or not self._seeded:
            _seed(self._snake, [seed], self.np_random)
            self._seeded = True
        return self._snake.reset()[0][0], {}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            raise EnvError(f"action {action!r} is not in {self.action_space}", "0 is the first action")
        step = self._snake.step(np.array([action], np.int64))
        obs: Any = step.obs
        terminated, truncated = bool(step.terminated[0]), bool(step.truncated[0])
        info = {name: values[0].item() for name, values in step.episode_stats.items()}
        return obs[0], float(step.reward[0]), terminated, truncated, info if terminated or truncated else {}

    def render(self) -> Any:
        return _rendered(self._snake, 0, self.render_mode)


class SnakeVectorEnv(VectorEnv[Array, Any, Array]):
    """`num_envs` games in one call each step; those that end start anew in the same step."""

    metadata = {"render_modes": RENDER_MODES, "render_fps": 15, "autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, num_envs: int = 1, render_mode: str | None = None, **options: Any) -> None:
        self.num_envs = num_envs
        self.render_mode = _checked_mode(render_mode)
        self._snake = Snake(num_envs, np.zeros(num_envs, np.uint64), **options)
        self.single_observation_space, self.single_action_space = _spaces(self._snake)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._seeded = False

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        seeds = seed if isinstance(seed, list) else [None if seed is None else seed + i for i in range(self.num_envs)]
        if len(seeds) != self.num_envs:
            raise EnvError(f"{len(seeds)} seeds were given for {self.num_envs} envs", "give one seed per env")
        super().reset(seed=seeds[0])
        if not self._seeded or any(one is not None for one in seeds):
            _seed(self._snake, seeds, self.np_random)
            self._seeded = True
        return self._snake.reset()[0], {}

    def step(self, actions: Any) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        step = self._snake.step(np.ascontiguousarray(actions, np.int64))
        obs: Any = step.obs
        done = step.terminated | step.truncated
        info: dict[str, Any] = {}
        if done.any():
            stats = step.episode_stats
            info = {"final_obs": _as_objects(step.final_obs, done), "_final_obs": done}
            info |= {"final_info": stats | {f"_{name}": done for name in stats}, "_final_info": done}
        return obs, step.reward, step.terminated, step.truncated, info

    def render(self) -> tuple[Any, ...]:
        return tuple(_rendered(self._snake, index, self.render_mode) for index in range(self.num_envs))


def register() -> None:
    """Make the id known to Gymnasium; again does nothing."""
    if ENV_ID not in gymnasium.registry:
        here = __name__
        gymnasium.register(ENV_ID, entry_point=f"{here}:SnakeEnv", vector_entry_point=f"{here}:SnakeVectorEnv")


def _spaces(snake: Snake) -> tuple[spaces.Box, spaces.Discrete]:
    high = 255 if snake.obs_spec.dtype == np.uint8 else 1
    box = spaces.Box(0, high, snake.obs_spec.shape, snake.obs_spec.dtype.type)
    return box, spaces.Discrete(snake.action_spec.count)


def _seed(snake: Snake, seeds: list[int | None], generator: np.random.Generator) -> None:
    """Start each game's generator from its seed, or from a draw where none is given."""
    numbers = [int(generator.integers(2**63)) if seed is None else seed for seed in seeds]
    streams = np.array([derive_seed(number, "snake") for number in numbers], np.uint64)
    snake.reseed(streams)


def _as_objects(obs: Any, done: Array) -> Array:
    """Rows where done as Gymnasium's own vector envs hand them over: an object per env, None elsewhere."""
    rows = np.full(len(done), None, dtype=object)
    for index in np.flatnonzero(done):
        rows[index] = obs[index]
    return rows


def _checked_mode(render_mode: str | None) -> str | None:
    if render_mode is not None and render_mode not in RENDER_MODES:
        raise EnvError(f"`render_mode` is {render_mode!r}", f"choose one of {', '.join(RENDER_MODES)}")
    return render_mode


def _rendered(snake: Snake, index: int, render_mode: str | None) -> Any:
    if render_mode == "rgb_array":
        return draw.frame(snake.get_state(), index)
    return draw.text(snake.get_state(), index) if render_mode == "ansi" else None


register()
