"""What is drawn of each env: scenes, drawers, and the durotaxis scene with its past.

A scene is one env that plays an episode, drawn from its saved state, by its own `render`, or not at all. `DRAWERS` says
which module draws which native env; a new workload adds a line to it. Pictures of a durotaxis colony also show where it
has been and what it did.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hotloop.core.errors import EnvError
from hotloop.core.types import Array, EnvStep, VecEnv
from hotloop.envs.durotaxis.draw import text_of
from hotloop.envs.durotaxis.env import Durotaxis
from hotloop.envs.durotaxis.picture import Past, picture
from hotloop.envs.registry import NATIVE, make_envs
from hotloop.presets.env_settings import EnvSettings

State = Mapping[str, Array]
Measures = dict[str, float]


def _cartpole() -> Any:
    from hotloop.envs import cartpole_draw

    return cartpole_draw


def _snake() -> Any:
    from hotloop.envs.snake import draw

    return draw


def _sfc() -> Any:
    from hotloop.envs.sfc import draw

    return draw


def _durotaxis() -> Any:
    from hotloop.envs.durotaxis import draw

    return draw


def _snake_score(first: State, now: State) -> Measures:
    return {"score": len(_snake().cells(now, 0)[1]) - len(_snake().cells(first, 0)[1])}


def _sfc_acceptance(first: State, now: State) -> Measures:
    return {"acceptance": _sfc().acceptance(now, 0)}


def _nothing(first: State, now: State) -> Measures:
    return {}


@dataclass(frozen=True)
class Drawer:
    """Draws env 0 of a saved state."""

    module: Callable[[], Any]
    """Imports what draws: a module with `text(state, index, colour)` and `frame(state, index)`, and, where its env
    cannot hold a finished episode (`hold_finished`), `final_state(state, final_obs)`."""
    fps: float
    """Env steps per second at which the game looks natural."""
    measures: Callable[[State, State], Measures] = _nothing
    """The workload's own numbers while an episode runs, from its first state and the present one."""

    def text(self, state: State, colour: bool) -> str:
        return self.module().text(state, 0, colour)

    def frame(self, state: State) -> Array:
        return self.module().frame(state, 0)

    def final_state(self, state: State, final_obs: Any) -> State:
        return self.module().final_state(state, final_obs)


DRAWERS: dict[str, Drawer] = {
    "cartpole": Drawer(_cartpole, fps=50),
    "snake": Drawer(_snake, fps=15, measures=_snake_score),
    "sfc": Drawer(_sfc, fps=50, measures=_sfc_acceptance),
    "durotaxis": Drawer(_durotaxis, fps=15),  # in an episode with its past: `DurotaxisScene`
}


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


class StateScene:
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

    def text(self, colour: bool) -> str:
        raise EnvError(f"`{self._env_id}` has no picture for the terminal", "`--video FILE.mp4` shows it")

    def frame(self) -> Array:
        raise EnvError(f"nothing draws `{self._env_id}`", f"these are drawn: {', '.join(DRAWERS)}, Gymnasium's")


def has_text(env_id: str) -> bool:
    return env_id in DRAWERS


def make_scene(settings: EnvSettings, seed: int, *, trust: bool, pictures: bool) -> Scene:
    """One env seeded with `seed` (64 bits). Without `pictures` nothing is drawn, so nothing needs to be installed."""
    if pictures and settings.id not in NATIVE:
        from hotloop.viewing.gymnasium_scene import make_rendered

        return make_rendered(settings, seed, trust)
    envs: Any = make_envs(settings, 1, np.array([seed], np.uint64), trust=trust)
    if pictures and settings.id == "durotaxis":
        return DurotaxisScene(envs)
    if pictures and settings.id in DRAWERS:
        return StateScene(envs, DRAWERS[settings.id])
    return TextOnlyScene(envs, settings.id)


class DurotaxisScene:
    """Remembers one row of numbers for each step of the episode; the colony itself is drawn as it is now."""

    fps = DRAWERS["durotaxis"].fps

    def __init__(self, envs: Durotaxis) -> None:
        envs.hold_finished()
        self.envs: VecEnv = envs
        self._colonies = envs
        settings = envs.settings
        self._highest_ratio = settings.max_delete_ratio if settings.action == "ratio" else 1.0
        self._past = Past(self._highest_ratio)

    def note(self, step: EnvStep | None) -> None:
        if step is None:
            self._past = Past(self._highest_ratio)
        self._now = self._colonies.snapshot(0)
        self._past.add(self._now)

    def measures(self) -> Measures:
        return {"centroid": self._now["centroid"][0], "colony_size": len(self._now["positions"])}

    def text(self, colour: bool) -> str:
        return text_of(self._now, self._past, colour)

    def frame(self) -> Array:
        return picture(self._now, self._past)
