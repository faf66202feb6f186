"""What is drawn of each env.

A scene is one env that plays an episode, drawn from its saved state, by its own `render`, or not at all. Which module
draws which batched env, its workload says (`drawings` of `hotloop.Workload`); `DrawingModule` says what it must have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from hotloop.core.errors import EnvError
from hotloop.core.types import Array, EnvStep, VecEnv
from hotloop.core.workloads import drawings, import_place
from hotloop.envs.registry import is_native, make_envs
from hotloop.presets.env_settings import EnvSettings

State = Mapping[str, Array]
Measures = dict[str, float]


class DrawingModule(Protocol):
    """A module that draws env `index` of a saved state. It may have more:

    `measures(first, now)`: the workload's own numbers of env 0 while an episode runs, from its first state and the
    present one. `final_state(state, final_obs)`: how an episode ended, where its env cannot hold a finished one
    (`hold_finished`). `scene(envs)`: a `Scene` of its own, where more than the present state is drawn.
    `write_page(agent, play, file)`: plays an episode, `play(policy)`, and writes it as a page. `MEANINGS`: the names of
    an episode's measures, and what they mean, for `hotloop report`.
    """

    FPS: float
    """Env steps per second that look natural."""

    def text(self, state: State, index: int, color: bool) -> str:
        """For a terminal."""
        ...

    def frame(self, state: State, index: int) -> Array:
        """[height, width, 3] uint8."""
        ...


def is_drawn(env_id: str) -> bool:
    return env_id in drawings()


def drawing_of(env_id: str) -> Any:
    """The `DrawingModule` of an env that has one."""
    return import_place(drawings()[env_id])


def page_writer(env_id: str) -> Any:
    """The `write_page` of an env's drawing; raises EnvError where there is none."""
    writers = {name: getattr(drawing_of(name), "write_page", None) for name in drawings()}
    if writers.get(env_id) is None:
        having = ", ".join(name for name, writer in writers.items() if writer is not None)
        raise EnvError(f"`{env_id}` has no page", f"these have one: {having or 'none'}; `--video` shows the others")
    return writers[env_id]


def meanings_of(env_id: str) -> Mapping[str, str]:
    """Of an episode's measures; nothing where the drawing has none, or cannot be loaded."""
    try:
        return getattr(drawing_of(env_id), "MEANINGS", {}) if is_drawn(env_id) else {}
    except Exception:  # anybody's code, and the page is complete without
        return {}


class Scene(Protocol):
    """An env that plays one episode, and what can be seen of it now."""

    envs: VecEnv
    fps: float

    def note(self, step: EnvStep | None) -> None:
        """Told after the reset (None) and after every step."""
        ...

    def measures(self) -> Measures: ...

    def text(self, color: bool) -> str: ...

    def frame(self) -> Array:
        """[height, width, 3] uint8."""
        ...


class StateScene:
    """A batched env, drawn from its state; the last picture shows how the episode ended, not the next one's start,
    where env or drawing can tell."""

    def __init__(self, envs: Any, drawing: Any) -> None:
        self.envs = envs
        self.fps: float = drawing.FPS
        self._drawing = drawing
        self._measures: Any = getattr(drawing, "measures", lambda first, now: {})
        self._final_state: Any = getattr(drawing, "final_state", None)
        if hasattr(envs, "hold_finished"):
            envs.hold_finished()
            self._final_state = None
        self._first: State | None = None
        self._ended: State | None = None

    def note(self, step: EnvStep | None) -> None:
        if step is None:
            self._first, self._ended = self.envs.get_state(), None
        elif self._final_state is not None and (step.terminated[0] or step.truncated[0]):
            self._ended = self._final_state(self.envs.get_state(), step.final_obs)

    def measures(self) -> Measures:
        return {} if self._first is None else self._measures(self._first, self._now())

    def text(self, color: bool) -> str:
        return self._drawing.text(self._now(), 0, color)

    def frame(self) -> Array:
        return self._drawing.frame(self._now(), 0)

    def _now(self) -> State:
        return self.envs.get_state() if self._ended is None else self._ended


class TextOnlyScene:
    """Any env, nothing drawn."""

    fps = 30.0

    def __init__(self, envs: VecEnv, env_id: str) -> None:
        self.envs = envs
        self._env_id = env_id

    def note(self, step: EnvStep | None) -> None:
        pass

    def measures(self) -> Measures:
        return {}

    def text(self, color: bool) -> str:
        raise EnvError(f"`{self._env_id}` has no picture for the terminal", "`--video FILE.mp4` shows it")

    def frame(self) -> Array:
        raise EnvError(f"nothing draws `{self._env_id}`", f"these are drawn: {', '.join(drawings())}, Gymnasium's")


def make_scene(settings: EnvSettings, seed: int, *, trust: bool, pictures: bool) -> Scene:
    """One env seeded with `seed` (64 bits). Without `pictures` nothing is drawn, so nothing needs to be installed."""
    if pictures and not is_native(settings.id):
        from hotloop.viewing.gymnasium_scene import make_rendered

        return make_rendered(settings, seed, trust)
    envs = make_envs(settings, 1, np.array([seed], np.uint64), trust=trust)
    if not pictures or not is_drawn(settings.id):
        return TextOnlyScene(envs, settings.id)
    drawing = drawing_of(settings.id)
    return drawing.scene(envs) if hasattr(drawing, "scene") else StateScene(envs, drawing)
