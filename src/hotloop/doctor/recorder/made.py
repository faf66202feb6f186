"""Where the user's own code made what decides: the optimiser, a library's algorithm, its vector env, its evaluation.

Those are the lines to edit where the expensive call stands inside somebody else's loop.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

from .lines import read_syntax
from .passes import Pass
from .places import USER, Places, line_of, unseen

if TYPE_CHECKING:
    Arrival = Callable[[ModuleType], None]

DEEPEST = 60
SB3 = {
    "stable_baselines3.common.base_class": ("BaseAlgorithm", "algorithm"),
    "stable_baselines3.common.vec_env.base_vec_env": ("VecEnv", "vector env"),
    "stable_baselines3.common.callbacks": ("EvalCallback", "evaluation"),
}
"""By module: a class, and what is made of it."""


class Made(Pass):
    """Notes the innermost line of the user's own under which each was made; the last one counts."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.where: dict[str, str] = {}
        self.sources: dict[str, str] = {}
        self.algorithm: Any = None

    def arrivals(self) -> dict[str, Arrival]:
        return {module: self._arrival(*what) for module, what in SB3.items()}

    def _arrival(self, name: str, what: str) -> Arrival:
        def arrive(module: ModuleType) -> None:
            made = getattr(module, name, None)
            if made is not None:
                made.__init__ = self._noting(made.__init__, what)

        return arrive

    def _noting(self, make: Callable[..., Any], what: str) -> Callable[..., Any]:
        @functools.wraps(make)
        def initialise(one: Any, *args: Any, **keywords: Any) -> None:
            self.here(what)
            if what == "algorithm":
                self.algorithm = one
            make(one, *args, **keywords)

        return unseen(initialise)

    def here(self, what: str) -> None:
        """The user's own code is making `what` just now."""
        try:
            self._note(what, sys._getframe(1))
        except Exception as error:
            self.watch.faults.note(f"where the {what} was made", error)

    def _note(self, what: str, frame: FrameType | None) -> None:
        for _ in range(DEEPEST):
            if frame is None:
                return
            if self.places.whose(frame.f_code) == USER:
                file, line = frame.f_code.co_filename, line_of(frame.f_code, frame.f_lasti)
                self.where[what] = self.places.where(file, line)
                self.sources[self.where[what]] = read_syntax(file).source(line)
                return
            frame = frame.f_back

    def add_to(self, trace: dict[str, Any]) -> None:
        trace["made"] = self.where
        trace.setdefault("sources", {}).update(self.sources)
