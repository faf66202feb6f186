"""A colony on its way: its pictures also show where it has been and what it did."""

from __future__ import annotations

from hotloop.core.types import Array, EnvStep, VecEnv
from hotloop.envs.durotaxis.draw import text_of
from hotloop.envs.durotaxis.env import Durotaxis
from hotloop.envs.durotaxis.past import Past
from hotloop.envs.durotaxis.picture import picture
from hotloop.show.drawers import DRAWERS, Measures


class Migration:
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
