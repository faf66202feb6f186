"""Ctrl-C and SIGTERM: finish the iteration, save, leave. A second Ctrl-C stops at once."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any

from hotloop.core.interrupts import Interrupt, raises_interrupt, stop_within

GRACE_SECONDS = 10.0
"""How long an evaluation under way may still take after a signal."""
WORKER_SECONDS = 15.0
"""How long a worker process may still take; where this process itself hangs, the watchdog ends it."""


class Overdue(Exception):
    """An evaluation was given up because the run was asked to stop."""


class StopSignals:
    """While active, SIGINT and SIGTERM set `requested` to the signal's number."""

    def __init__(self) -> None:
        self.requested = 0
        self._deadline = float("inf")
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
        self._deadline = time.monotonic() + GRACE_SECONDS
        stop_within(WORKER_SECONDS)

    def check(self) -> None:
        """Called at every step of long work: raises once its grace is over."""
        if self.requested and time.monotonic() > self._deadline:
            raise Overdue
