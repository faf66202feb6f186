"""Compiling machine code is a phase of its own, and the first time it happens the user is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

from hotloop.core.kernel_cache import kernels_are_kept
from hotloop.doctor.timer import PhaseTimer


class _CompileListener(event.Listener):
    """Numba announces each compilation, nested ones included; loading from its cache is not one."""

    def __init__(self, timer: PhaseTimer, say: Callable[[str], None]) -> None:
        self._phase = timer.phase("compile")
        self._say = say
        self._told = False

    def on_start(self, event: Any) -> None:
        if not self._told:
            self._told = True
            later = ": once per machine, later runs load them" if kernels_are_kept() else ""
            self._say(f"compiling machine-code kernels{later}")
        self._phase.__enter__()

    def on_end(self, event: Any) -> None:
        self._phase.__exit__()


@contextmanager
def compile_phase(timer: PhaseTimer, say: Callable[[str], None]) -> Iterator[None]:
    """While active, numba's compilations are charged to `compile` instead of the phase they interrupt."""
    with event.install_listener("numba:compile", _CompileListener(timer, say)):
        yield
