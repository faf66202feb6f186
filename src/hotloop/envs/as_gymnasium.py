"""A batched env as Gymnasium's, for anybody's agent: alone, or several stepped together.

A workload derives one class from each of the two here, says what they show, and registers both. Env i of a batch seeded
with s plays what a single env seeded with s + i plays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from hotloop.core.errors import EnvError
from hotloop.core.rng import derive_seed
from hotloop.core.types import Array, map_obs

RENDER_MODES = ["rgb_array", "ansi"]
SAME_STEP = {"autoreset_mode": AutoresetMode.SAME_STEP}


class EnvFace(NamedTuple):
    """What is shown to Gymnasium."""

    name: str
    """Of the env, and of the stream that its seeds are drawn from."""
    kind: Callable[..., Any]
    """Class of the batched env, with `hold_finished` and `reseed`."""
    spaces: Callable[[Any], tuple[Any, spaces.Discrete]]
    """Of one env's observations and actions, from the batched env."""
    drawing: Any
    """Module that draws it."""

    def metadata(self) -> dict[str, Any]:
        return {"render_modes": RENDER_MODES, "render_fps": self.drawing.FPS}

    def seed(self, envs: Any, seeds: list[int | None], generator: np.random.Generator) -> None:
        """Start each env's generator from its seed, or from a draw where none is given."""
        numbers = [int(generator.integers(2**63)) if seed is None else seed for seed in seeds]
        envs.reseed(np.array([derive_seed(number, self.name) for number in numbers], np.uint64))

    def render(self, envs: Any, index: int, render_mode: str | None) -> Any:
        if render_mode == "rgb_array":
            return self.drawing.frame(envs.get_state(), index)
        return self.drawing.text(envs.get_state(), index) if render_mode == "ansi" else None


class AsEnv(gymnasium.Env[Any, Any]):
    """One env; keyword arguments are its options. `info` of a finished episode holds its measures."""

    face: ClassVar[EnvFace]

    def __init__(self, render_mode: str | None = None, **options: Any) -> None:
        self.render_mode = _checked_mode(render_mode)
        self._envs = self.face.kind(1, np.zeros(1, np.uint64), **options)
        self._envs.hold_finished()
        self.observation_space, self.action_space = self.face.spaces(self._envs)
        self._seeded = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None or not self._seeded:
            self.face.seed(self._envs, [seed], self.np_random)
            self._seeded = True
        obs, mask = self._envs.reset()
        return _row(obs, 0), {} if mask is None else {"action_mask": mask[0]}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            raise EnvError(f"action {action!r} is not in {self.action_space}", "0 is the first action")
        step = self._envs.step(np.array([action], np.int64))
        terminated, truncated = bool(step.terminated[0]), bool(step.truncated[0])
        info: dict[str, Any] = {} if step.action_mask is None else {"action_mask": step.action_mask[0]}
        if terminated or truncated:
            info |= {name: values[0].item() for name, values in step.episode_stats.items()}
        return _row(step.obs, 0), float(step.reward[0]), terminated, truncated, info

    def render(self) -> Any:
        return self.face.render(self._envs, 0, self.render_mode)


class AsVectorEnv(VectorEnv[Any, Any, Array]):
    """`num_envs` envs in one call each step; episodes that end start anew in the same step."""

    face: ClassVar[EnvFace]

    def __init__(self, num_envs: int = 1, render_mode: str | None = None, **options: Any) -> None:
        self.num_envs = num_envs
        self.render_mode = _checked_mode(render_mode)
        self._envs = self.face.kind(num_envs, np.zeros(num_envs, np.uint64), **options)
        self.single_observation_space, self.single_action_space = self.face.spaces(self._envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._seeded = False

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        seeds = seed if isinstance(seed, list) else [None if seed is None else seed + i for i in range(self.num_envs)]
        if len(seeds) != self.num_envs:
            raise EnvError(f"{len(seeds)} seeds were given for {self.num_envs} envs", "give one seed per env")
        super().reset(seed=seeds[0])
        if not self._seeded or any(one is not None for one in seeds):
            self.face.seed(self._envs, seeds, self.np_random)
            self._seeded = True
        obs, mask = self._envs.reset()
        return obs, self._masked(mask)

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        step = self._envs.step(np.ascontiguousarray(actions, np.int64))
        done = step.terminated | step.truncated
        info = self._masked(step.action_mask)
        if done.any():
            final = dict(step.episode_stats)
            if step.final_action_mask is not None:
                final["action_mask"] = step.final_action_mask
            info |= {"final_obs": _as_objects(step.final_obs, done), "_final_obs": done}
            info |= {"final_info": final | {f"_{name}": done for name in final}, "_final_info": done}
        return step.obs, step.reward, step.terminated, step.truncated, info

    def render(self) -> tuple[Any, ...]:
        return tuple(self.face.render(self._envs, index, self.render_mode) for index in range(self.num_envs))

    def _masked(self, mask: Array | None) -> dict[str, Any]:
        return {} if mask is None else {"action_mask": mask, "_action_mask": np.ones(self.num_envs, bool)}


def register(env_id: str, single: type, batched: type | None = None) -> None:
    """Make an id known to Gymnasium; again does nothing."""
    if env_id not in gymnasium.registry:
        vector = None if batched is None else f"{batched.__module__}:{batched.__name__}"
        gymnasium.register(env_id, entry_point=f"{single.__module__}:{single.__name__}", vector_entry_point=vector)


def _row(obs: Any, index: int) -> Any:
    return map_obs(lambda part: part[index], obs)


def _as_objects(obs: Any, done: Array) -> Array:
    """Rows where done as Gymnasium's own vector envs hand them over: an object per env, None elsewhere."""
    rows = np.full(len(done), None, dtype=object)
    for index in np.flatnonzero(done).tolist():
        rows[index] = _row(obs, index)
    return rows


def _checked_mode(render_mode: str | None) -> str | None:
    if render_mode is not None and render_mode not in RENDER_MODES:
        raise EnvError(f"`render_mode` is {render_mode!r}", f"choose one of {', '.join(RENDER_MODES)}")
    return render_mode
