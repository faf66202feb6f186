"""Which place `--on` means: this machine, a Ray cluster of our own, or one that is there already."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from hotloop.core.errors import MissingExtraError, SettingsError
from hotloop.core.places import Place
from hotloop.core.program import install_command
from hotloop.core.values import nearest
from hotloop.scale.local import LocalPlace

LOCAL, RAY = "local", "ray"
_ADDRESS = re.compile(r"[A-Za-z0-9_.-]+:[0-9]{1,5}|\[[0-9A-Fa-f:]+\]:[0-9]{1,5}")
Say = Callable[[str], None]


def require_place(on: str) -> None:
    """SettingsError unless it is `local`, `ray` or an address; MissingExtraError where Ray is not installed."""
    if on == LOCAL:
        return
    if on != RAY and not _ADDRESS.fullmatch(on):
        near = nearest(on, [LOCAL, RAY])
        raise SettingsError(
            f"`--on` is `{on}`, expected `local`, `ray` or HOST:PORT", f"did you mean `{near}`?" if near else ""
        )
    if importlib.util.find_spec("ray") is None:
        raise MissingExtraError(
            f"`--on {on}` needs Ray, which is not installed", f"{install_command('ray')}, on every machine alike"
        )


class Places:
    """Opens the place once somebody has work for it, and ends it with what it has started."""

    def __init__(self, on: str, workers: int, *, trust: bool, mixed: bool, say: Say) -> None:
        require_place(on)
        self._on, self._workers, self._options = on, workers, {"trust": trust, "mixed": mixed, "say": say}
        self._stack = ExitStack()
        self._opened: Place | None = None

    def open(self, fitting: int, needed: bool = True) -> Place:
        """`fitting`: runs at once that this machine has room for, where nobody said how many there shall be."""
        if self._on == LOCAL or not needed:
            return LocalPlace(fitting)
        if self._opened is None:
            from hotloop.scale.cluster import cluster
            from hotloop.scale.ray_place import RayPlace

            own = self._on == RAY
            found = self._stack.enter_context(cluster(self._on, fitting))
            options: Any = self._options
            self._opened = RayPlace(found, fitting if own else self._workers, **options)
        return self._opened

    def __enter__(self) -> Places:
        return self

    def __exit__(self, *problem: Any) -> None:
        self._stack.__exit__(*problem)
