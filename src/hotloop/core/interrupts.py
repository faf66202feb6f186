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
_number = int(signal.SIGINT)
_pending = False


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
def own_interrupts(whole: bool = False) -> Iterator[None]:
    """Ctrl-C raises Interrupt, where it would raise KeyboardInterrupt; and so does SIGTERM, where it would end the
    process without a word and the process is ours as a `whole`."""
    defaults: dict[signal.Signals, Any] = {signal.SIGINT: signal.default_int_handler}
    if whole:
        defaults[signal.SIGTERM] = signal.SIG_DFL
    in_main_thread = threading.current_thread() is threading.main_thread()
    ours = {number: handler for number, handler in defaults.items() if signal.getsignal(number) is handler}
    if not in_main_thread or not ours:
        yield
        return
    _forget()
    for number in ours:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """SIGTERM raises Interrupt; other threads than the main one, where no signal arrives, are left alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, _interrupt)
    if previous is not _interrupt:
        _forget()
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def stop_code() -> int:
    """The exit code of a program that was asked to stop: 130 by Ctrl-C, 143 by SIGTERM."""
    return 128 + _number


def raise_if_asked() -> None:
    """For loops that wait: an Interrupt that was raised in a finalizer or a callback of C code went no further."""
    if _pending and threading.current_thread() is threading.main_thread():
        raise Interrupt


def _forget() -> None:
    global _number, _pending
    _number, _pending = int(signal.SIGINT), False


@raises_interrupt
def _interrupt(number: int, _: object) -> None:
    global _number, _pending
    _number, _pending = number, True
    raise Interrupt
