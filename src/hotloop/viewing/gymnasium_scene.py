"""A Gymnasium env that renders itself."""

from __future__ import annotations

import os
import re
import warnings
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from hotloop.core.errors import EnvError, HotloopError, MissingExtraError
from hotloop.core.types import Array, EnvStep
from hotloop.envs.foreign import env_code
from hotloop.envs.gymnasium_envs import GymnasiumEnvs
from hotloop.envs.gymnasium_make import import_module, is_registered, make_single
from hotloop.envs.registry import is_file
from hotloop.envs.user_files import load_maker
from hotloop.presets.env_names import refuse_untrusted
from hotloop.presets.env_settings import EnvSettings
from hotloop.viewing.scenes import Measures

USUAL_FPS = 30.0
RENDER_HINT = "its constructor must take `render_mode`, its `render` must know `rgb_array`"


class Rendered:
    """One single Gymnasium env, seen through `render`."""

    def __init__(self, env_id: str, camera: Camera, seed: int, dict_obs: str) -> None:
        self._camera = camera
        self._env_id = env_id
        self.envs: Any = GymnasiumEnvs(env_id, [camera], np.array([seed], np.uint64), dict_obs)
        self.fps = float(camera.metadata.get("render_fps") or USUAL_FPS)

    def note(self, step: EnvStep | None) -> None:
        pass

    def measures(self) -> Measures:
        return {}

    def text(self, color: bool) -> str:
        raise EnvError(f"`{self._env_id}` has no picture for the terminal", "`--video FILE.mp4` shows it")

    def frame(self) -> Array:
        seen = self._camera.seen
        if isinstance(seen, Exception):
            raise _translated(self._env_id, seen) from seen
        if not isinstance(seen, np.ndarray) or seen.ndim != 3 or seen.shape[2] != 3 or seen.dtype != np.uint8:
            what = f"{seen.dtype}{seen.shape}" if isinstance(seen, np.ndarray) else type(seen).__name__
            raise EnvError(
                f"`render` of `{self._env_id}` gave {what}; expected a picture, uint8[height, width, 3]",
                "the env must know the render mode `rgb_array`",
            )
        return seen


class Camera(gymnasium.Wrapper):
    """Renders after every step, before whoever steps it resets: the picture of how an episode ended is kept.

    What `render` raises is kept too, or it would be taken for a mistake in `step`.
    """

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        self.seen: Any = None

    def reset(self, **arguments: Any) -> Any:
        answer = self.env.reset(**arguments)
        if self.seen is None:
            self._look()
        return answer

    def step(self, action: Any) -> Any:
        answer = self.env.step(action)
        self._look()
        return answer

    def _look(self) -> None:
        try:
            self.seen = self.env.render()
        except Exception as error:
            self.seen = error


def make_rendered(settings: EnvSettings, seed: int, trust: bool) -> Rendered:
    """One episode's env, in render mode `rgb_array`; a run of a vectorized id is shown on its single env."""
    if not trust:
        refuse_untrusted(settings.id)
    _hush_pygame()
    with env_code(settings.id, "cannot be drawn", RENDER_HINT), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r".*WARN: ")
        try:
            env = _make(settings)
        except (gymnasium.error.DependencyNotInstalled, ImportError) as error:
            raise _translated(settings.id, error) from error
    return Rendered(settings.id, Camera(env), seed, settings.dict_obs)


def _make(settings: EnvSettings) -> gymnasium.Env:
    if is_file(settings.id):
        kind: Any = load_maker(settings.id)
        if isinstance(kind, type) and issubclass(kind, VectorEnv):
            raise EnvError(f"`{settings.id}` steps many envs at once, which cannot be shown", "leave out the picture")
    elif module := settings.id.rpartition(":")[0]:
        import_module(settings.id, module)
    elif not is_registered(settings.id):
        raise EnvError(f"there is no env `{settings.id}`", "install the package that brings it")
    return make_single(settings, render_mode="rgb_array")


def _hush_pygame() -> None:
    """It greets on stdout, and complains where there is no display, of which drawing into memory has no need."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")


def _translated(env_id: str, error: Exception) -> HotloopError:
    if isinstance(error, gymnasium.error.DependencyNotInstalled | ImportError):
        extra = re.search(r"gymnasium\[([\w-]+)\]", str(error))
        hint = f"pip install 'gymnasium[{extra[1]}]'" if extra else "install the package it names"
        return MissingExtraError(f"drawing `{env_id}` needs what is not installed: {error}", hint)
    return EnvError(
        f"`{env_id}` cannot be drawn: {type(error).__name__}: {error}",
        RENDER_HINT,
    )
