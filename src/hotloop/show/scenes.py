"""One env at a time with something to look at: from its state, by its own `render`, or numbers alone."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from hotloop.core.errors import EnvError
from hotloop.core.types import Array, EnvStep, VecEnv
from hotloop.envs.registry import NATIVE, make_envs
from hotloop.envs.settings import EnvSettings
from hotloop.show.drawers import DRAWERS, Drawer, Measures, State


class Scene(Protocol):
    """An env that plays one episode, and what can be seen of it now."""

    envs: VecEnv
    fps: float

    def note(self, step: EnvStep | None) -> None:
        """Told after the reset (None) and after every step."""
        ...

    def measures(self) -> Measures: ...

    def text(self, colour: bool) -> str: ...

    def frame(self) -> Array:
        """[height, width, 3] uint8."""
        ...


class Drawn:
    """A native env, drawn from its state; the last picture shows how the episode ended, not the next one's start."""

    def __init__(self, envs: Any, drawer: Drawer) -> None:
        self.envs = envs
        self.fps = drawer.fps
        self._drawer = drawer
        self._holds = hasattr(envs, "hold_finished")
        if self._holds:
            envs.hold_finished()
        self._first: State | None = None
        self._ended: State | None = None

    def note(self, step: EnvStep | None) -> None:
        if step is None:
            self._first, self._ended = self.envs.get_state(), None
        elif not self._holds and (step.terminated[0] or step.truncated[0]):
            self._ended = self._drawer.final_state(self.envs.get_state(), step.final_obs)

    def measures(self) -> Measures:
        return {} if self._first is None else self._drawer.measures(self._first, self._now())

    def text(self, colour: bool) -> str:
        return self._drawer.text(self._now(), colour)

    def frame(self) -> Array:
        return self._drawer.frame(self._now())

    def _now(self) -> State:
        return self.envs.get_state() if self._ended is None else self._ended


class NumbersOnly:
    """Any env, nothing drawn."""

    fps = 30.0

    def __init__(self, envs: VecEnv, env_id: str) -> None:
        self.envs = envs
        self._env_id = env_id

    def note(self, step: EnvStep | None) -> None:
        pass

    def measures(self) -> Measures:
        return {}

    def text(self, colour: bool) -> str:
        raise EnvError(f"`{self._env_id}` has no picture for the terminal", "`--video FILE.mp4` shows it")

    def frame(self) -> Array:
        raise EnvError(f"nothing draws `{self._env_id}`", f"these are drawn: {', '.join(DRAWERS)}, Gymnasium's")


def has_text(env_id: str) -> bool:
    return env_id in DRAWERS


def make_scene(settings: EnvSettings, seed: int, *, trust: bool, pictures: bool) -> Scene:
    """One env seeded with `seed` (64 bits). Without `pictures` nothing is drawn, so nothing needs to be installed."""
    if pictures and settings.id not in NATIVE:
        from hotloop.show.gymnasium_scene import make_rendered

        return make_rendered(settings, seed, trust)
    envs: Any = make_envs(settings, 1, np.array([seed], np.uint64), trust=trust)
    if pictures and settings.id == "durotaxis":
        from hotloop.show.durotaxis_scene import Migration

        return Migration(envs)
    if pictures and settings.id in DRAWERS:
        return Drawn(envs, DRAWERS[settings.id])
    return NumbersOnly(envs, settings.id)
