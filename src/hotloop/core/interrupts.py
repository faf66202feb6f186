"""Ctrl-C and polite requests to end: told from what an env raises by itself, and how long they may wait."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

Handler = TypeVar("Handler", bound=Callable[..., Any])
_stop_by = float("inf")


def stop_within(seconds: float) -> None:
    """The run was asked to stop: whoever waits for an env gives up after so long. Infinity takes it back."""
    global _stop_by
    _stop_by = time.monotonic() + seconds


def is_overdue() -> bool:
    return time.monotonic() > _stop_by


class Interrupt(KeyboardInterrupt):
    """A signal that came from outside, as our own handlers raise it; its text, if any, is what the user is told."""


def raises_interrupt(handler: Handler) -> Handler:
    """Marks a handler of SIGINT: while it is in place, a KeyboardInterrupt that is no Interrupt is no Ctrl-C."""
    handler.raises_interrupt = True  # type: ignore[attr-defined]
    return handler


def is_from_outside(error: BaseException) -> bool:
    """Whether an exception that came out of an env's code is a Ctrl-C, and not the env's own."""
    if not isinstance(error, KeyboardInterrupt) or isinstance(error, Interrupt):
        return isinstance(error, Interrupt)
    handler = signal.getsignal(signal.SIGINT)  # Python's own or the user's may have raised it
    return callable(handler) and not getattr(handler, "raises_interrupt", False)


@contextlib.contextmanager
def own_interrupts() -> Iterator[None]:
    """Ctrl-C raises Interrupt, where it would raise KeyboardInterrupt."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """SIGTERM raises Interrupt; other threads than the main one, where no signal arrives, are left alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


@raises_interrupt
def _interrupt(*_: object) -> None:
    raise Interrupt
