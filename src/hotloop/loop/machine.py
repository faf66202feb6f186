"""The process a run trains in: its threads, its treatment of tiny numbers, its devices. Left as it was found.

Compiling machine code is a phase of its own, and while it happens the user is told what and how much is left. Ctrl-C
and SIGTERM: finish the iteration, save, leave; a second Ctrl-C stops at once.
"""

from __future__ import annotations

import gc
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

import torch
from numba.core import event
from numba.core.dispatcher import Dispatcher

from hotloop.core.arithmetic import arithmetic_on
from hotloop.core.errors import SettingsError
from hotloop.core.interrupts import Interrupt, raises_interrupt, stop_within
from hotloop.core.kernel_cache import kernels_are_kept
from hotloop.core.schedules import Counters
from hotloop.core.timer import PhaseTimer


@contextmanager
def machine_for(threads: int) -> Iterator[None]:
    """Arithmetic on so many threads, and the garbage collector spared."""
    with spared_collector(), arithmetic_on(threads):
        yield


@contextmanager
def spared_collector() -> Iterator[None]:
    """What lives already (PyTorch's hundred thousand objects) is put out of the garbage collector's sight: looking
    through it again and again was a twentieth of a loop through a Python env."""
    froze = gc.get_freeze_count() == 0  # who froze before us keeps what he has frozen; counts them one by one
    if froze:
        gc.freeze()
    try:
        yield
    finally:
        if froze:
            gc.unfreeze()


def require_device(device: str) -> None:
    kind = device.split(":")[0]
    if kind not in ("cpu", "cuda"):
        raise SettingsError(f"`device` is `{device}`, expected `cpu`, `cuda` or `cuda:<number>`")
    if kind == "cuda" and not torch.cuda.is_available():
        raise SettingsError(f"`device` is `{device}`, but PyTorch sees no such device here", "use `--device cpu`")


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


GRACE_SECONDS = 10.0
"""How long an evaluation under way may still take after a signal."""
ITERATION_SECONDS = 20.0
"""How long an iteration may that is saved once it is over."""
WORKER_SECONDS = 15.0
"""How long a worker process may still take; where this process itself hangs, the watchdog ends it."""


class Overdue(Exception):
    """Something long was given up because the run was asked to stop."""


class StopSignals:
    """While active, SIGINT and SIGTERM set `requested` to the signal's number."""

    def __init__(self) -> None:
        self.requested = 0
        self._asked_at = 0.0
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        stop_within(float("inf"))

    @raises_interrupt
    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested and number == signal.SIGINT:
            raise Interrupt
        self.requested = number
        self._asked_at = time.monotonic()
        stop_within(WORKER_SECONDS)

    def check(self, seconds: float | None = None) -> None:
        """Called at every step of long work: raises once so much time (`GRACE_SECONDS`) is over since the signal."""
        if self.requested and time.monotonic() - self._asked_at >= (GRACE_SECONDS if seconds is None else seconds):
            raise Overdue


class StopAfter:
    """Takes the place of `StopSignals` where a loop is to end at a count instead of a signal."""

    def __init__(self, counters: Counters, env_steps: int) -> None:
        self._counters, self._env_steps = counters, env_steps

    @property
    def requested(self) -> bool:
        return self._counters.env_steps >= self._env_steps

    def check(self, seconds: float | None = None) -> None:
        """Never raises: an evaluation under way is finished."""
