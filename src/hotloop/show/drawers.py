"""Who draws which env. A new workload adds one line to `DRAWERS`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hotloop.core.types import Array

State = Mapping[str, Array]
Measures = dict[str, float]


def _snake_score(first: State, now: State) -> Measures:
    from hotloop.envs.snake.draw import cells

    return {"score": len(cells(now, 0)[1]) - len(cells(first, 0)[1])}


def _sfc_acceptance(first: State, now: State) -> Measures:
    from hotloop.envs.sfc.draw import acceptance

    return {"acceptance": acceptance(now, 0)}


def _nothing(first: State, now: State) -> Measures:
    return {}


@dataclass(frozen=True)
class Drawer:
    """Draws env 0 of a saved state.

    `module` has `text(state, index, colour)` and `frame(state, index)`, and, where its env cannot hold a finished
    episode (`hold_finished`), `final_state(state, final_obs)`.
    """

    module: str
    fps: float
    """Env steps per second at which the game looks natural."""
    measures: Callable[[State, State], Measures] = _nothing
    """The workload's own numbers while an episode runs, from its first state and the present one."""

    def text(self, state: State, colour: bool) -> str:
        return self._module().text(state, 0, colour)

    def frame(self, state: State) -> Array:
        return self._module().frame(state, 0)

    def final_state(self, state: State, final_obs: Any) -> State:
        return self._module().final_state(state, final_obs)

    def _module(self) -> Any:
        return importlib.import_module(self.module)


DRAWERS: dict[str, Drawer] = {
    "cartpole": Drawer("hotloop.envs.cartpole_draw", fps=50),
    "snake": Drawer("hotloop.envs.snake.draw", fps=15, measures=_snake_score),
    "sfc": Drawer("hotloop.envs.sfc.draw", fps=50, measures=_sfc_acceptance),
    "durotaxis": Drawer("hotloop.envs.durotaxis.draw", fps=15),  # with its past: `durotaxis_scene.py`
}
