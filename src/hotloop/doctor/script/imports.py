"""Tells when a module of interest has just been imported, before the importer gets it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Arrival = Callable[[ModuleType], None]


class Arrivals:
    """Stands first in `sys.meta_path`; finds nothing itself, but puts a note on the loader that does."""

    def __init__(self, wanted: dict[str, Arrival], anywhere: Arrival | None = None) -> None:
        self.wanted = wanted
        self.anywhere = anywhere
        """Called for every other module."""

    def install(self) -> None:
        for name, arrival in self.wanted.items():
            if name in sys.modules:
                arrival(sys.modules[name])
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        arrival = self.wanted.get(name, self.anywhere)
        if arrival is None:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None and finder is not self else None
            if spec is not None:
                announce(spec, arrival)
                return spec
        return None


def announce(spec: ModuleSpec, arrival: Arrival) -> None:
    """Have `arrival` called once the module has been executed."""
    execute = getattr(spec.loader, "exec_module", None)
    if execute is None:
        return

    def exec_module(module: ModuleType) -> None:
        execute(module)
        arrival(module)

    try:
        spec.loader.exec_module = exec_module  # type: ignore[union-attr, method-assign]
    except AttributeError:
        return
