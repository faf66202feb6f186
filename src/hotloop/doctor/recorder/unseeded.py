"""Random numbers that no seed decides: who drew them first, by source line, and the seed to set."""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from .passes import Pass
from .places import USER, SourcePlaces, line_of

PYTHON_DRAWS = (
    "random",
    "randrange",
    "randint",
    "sample",
    "choice",
    "choices",
    "shuffle",
    "uniform",
    "gauss",
    "getrandbits",
)
NUMPY_DRAWS = (
    "rand",
    "randn",
    "randint",
    "random",
    "random_sample",
    "choice",
    "permutation",
    "shuffle",
    "uniform",
    "normal",
    "standard_normal",
)
DEEPEST = 80


class Unseeded(Pass):
    """Hooks draws and seeds of Python's, numpy's and PyTorch's own generators, and generators made without a seed."""

    def __init__(self, places: SourcePlaces) -> None:
        self.places = places
        self.seeded: set[str] = set()
        self.found: dict[tuple[str, str], dict[str, str]] = {}

    def prepare(self) -> None:
        self._hook(random, "random", PYTHON_DRAWS, ("seed", "setstate"), "random.seed(SEED)")

    def arrivals(self) -> dict[str, Callable[[ModuleType], None]]:
        return {
            "numpy.random": self._numpy,
            "torch": self._torch,
            "gymnasium.utils.seeding": self._seeding,
            "gym.utils.seeding": self._seeding,
        }

    def _numpy(self, module: ModuleType) -> None:
        self._hook(module, "numpy.random", NUMPY_DRAWS, ("seed", "set_state"), "numpy.random.seed(SEED)")
        make = module.default_rng

        @functools.wraps(make)
        def default_rng(seed: Any = None) -> Any:
            if seed is None and "reset" not in (names := self._callers()) and "sample" not in names:
                self._note("numpy.random.default_rng()", "numpy.random.default_rng(SEED)")
            return make(seed)

        module.default_rng = default_rng  # type: ignore[attr-defined]

    def _torch(self, torch: ModuleType) -> None:
        """Its own functions stay what they are, since TorchScript may compile them: seeds and networks are noted."""
        seed = self._seeds(torch.manual_seed, "torch")
        torch.manual_seed = torch.random.manual_seed = seed  # type: ignore[attr-defined]
        make = torch.nn.Module.__init__

        @functools.wraps(make)
        def initialise(module: Any, *args: Any, **keywords: Any) -> None:
            if "torch" not in self.seeded:
                self._note("torch", "torch.manual_seed(SEED)")
            make(module, *args, **keywords)

        torch.nn.Module.__init__ = initialise

    def _seeding(self, module: ModuleType) -> None:
        make = module.np_random

        @functools.wraps(make)
        def np_random(seed: Any = None) -> Any:
            if seed is None:
                if "sample" in self._callers():
                    self._note("the action space", "env.action_space.seed(SEED)")
                else:
                    self._note("the env", "env.reset(seed=SEED)")
            return make(seed)

        module.np_random = np_random  # type: ignore[attr-defined]

    def _hook(self, module: ModuleType, name: str, draws: Iterable[str], seeds: Iterable[str], remedy: str) -> None:
        def drawing(function: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(function)
            def draw(*args: Any, **keywords: Any) -> Any:
                if name not in self.seeded:
                    self._note(name, remedy)
                return function(*args, **keywords)

            return draw

        for one in draws:
            if hasattr(module, one):
                setattr(module, one, drawing(getattr(module, one)))
        for one in seeds:
            setattr(module, one, self._seeds(getattr(module, one), name))

    def _seeds(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        @functools.wraps(function)
        def seed(*args: Any, **keywords: Any) -> Any:
            if any(value is not None for value in (*args, *keywords.values())):
                self.seeded.add(name)
            return function(*args, **keywords)

        return seed

    def _callers(self) -> set[str]:
        frame: Any = sys._getframe(2)
        names: set[str] = set()
        for _ in range(DEEPEST):
            if frame is None or self.places.whose(frame.f_code) == USER:
                break
            names.add(frame.f_code.co_name)
            frame = frame.f_back
        return names

    def _note(self, what: str, remedy: str) -> None:
        """Where a line of the user's own led to it; a library's own doing, such as jitter or names of files, is no
        part of the program."""
        frame: Any = sys._getframe(1)
        for _ in range(DEEPEST):
            if frame is None:
                return
            if self.places.whose(frame.f_code) == USER:
                where = self.places.where(frame.f_code.co_filename, line_of(frame.f_code, frame.f_lasti))
                self.found.setdefault((what, where), {"what": what, "where": where, "remedy": remedy})
                return
            frame = frame.f_back

    def add_to(self, trace: dict[str, Any]) -> None:
        trace["unseeded"] = list(self.found.values())
