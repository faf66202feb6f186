"""Tells when a module of interest has just been imported, before the importer gets it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .faults import Faults

if TYPE_CHECKING:
    Arrival = Callable[[ModuleType], None]


class Arrivals:
    """Stands first in `sys.meta_path`; finds nothing itself, but puts a note on the loader that does."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.wanted: dict[str, list[Arrival]] = {}
        self.anywhere: list[Arrival] = []
        """Called for every module that nobody wants by name."""

    def want(self, arrivals: dict[str, Arrival]) -> None:
        """Have these called; at once for what is imported already. Each swallows its own error and is not called
        again."""
        for name, arrival in arrivals.items():
            guarded = self.faults.guarded(f"a hook on {name}", arrival)
            self.wanted.setdefault(name, []).append(guarded)
            if name in sys.modules:
                guarded(sys.modules[name])

    def want_anywhere(self, arrival: Arrival | None) -> None:
        if arrival is not None:
            self.anywhere.append(self.faults.guarded("a hook on every module", arrival))

    def install(self) -> None:
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        arrivals = self.wanted.get(name, self.anywhere)
        if not arrivals:
            return None
        for finder in tuple(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None and finder is not self else None
            if spec is not None:
                announce(spec, arrivals)
                return spec
        return None


def announce(spec: ModuleSpec, arrivals: Sequence[Arrival]) -> None:
    """Have them called once the module has been executed."""
    loader: Any = spec.loader
    execute = getattr(loader, "exec_module", None)
    if execute is None:
        return

    def exec_module(module: ModuleType) -> None:
        execute(module)
        for arrival in arrivals:
            arrival(module)

    try:
        loader.exec_module = exec_module
    except AttributeError:
        return
