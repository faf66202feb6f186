"""Compiling machine code is a phase of its own, and while it happens the user is told what and how much is left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event
from numba.core.dispatcher import Dispatcher

from hotloop.core.kernel_cache import kernels_are_kept
from hotloop.doctor.timer import PhaseTimer

_SECONDS_BETWEEN_WORDS = 5.0


class _CompileListener(event.Listener):
    """Numba announces each compilation, nested ones included; loading from its cache is not one."""

    def __init__(self, timer: PhaseTimer, say: Callable[[str], None]) -> None:
        self._phase = timer.phase("compile")
        self._say = say
        self._compiled = 0
        self._said_at: float | None = None

    def on_start(self, event: Any) -> None:
        if self._said_at is None:
            self._said_at = time.monotonic()
            kept = "; they are kept until hotloop or numba changes" if kernels_are_kept() else ""
            self._say(
                f"compiling machine-code kernels that no run here has needed before, {uncompiled()} at most{kept}"
            )
        elif time.monotonic() - self._said_at >= _SECONDS_BETWEEN_WORDS:
            self._said_at = time.monotonic()
            kernel = event.data["dispatcher"].py_func.__name__
            self._say(f"compiled {self._compiled} kernels, {uncompiled()} left at most; now `{kernel}`")
        self._phase.__enter__()

    def on_end(self, event: Any) -> None:
        self._compiled += 1
        self._phase.__exit__()


def uncompiled() -> int:
    """Kernels in the files that are loaded and have no machine code yet; a run may not need all of them."""
    files = [module for name, module in list(sys.modules.items()) if _is_kernel_file(name) and module is not None]
    found = [(file, thing) for file in files for thing in vars(file).values() if isinstance(thing, Dispatcher)]
    return sum(not kernel.signatures for file, kernel in found if kernel.py_func.__module__ == file.__name__)


def _is_kernel_file(name: str) -> bool:
    return name.startswith("hotloop.") and name.endswith("kernels")


@contextmanager
def compile_phase(timer: PhaseTimer, say: Callable[[str], None]) -> Iterator[None]:
    """While active, numba's compilations are charged to `compile` instead of the phase they interrupt."""
    with event.install_listener("numba:compile", _CompileListener(timer, say)):
        yield
