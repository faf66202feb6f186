"""Sees to it that the script ends when the doctor has seen enough, and that nothing is lost where it leaves early."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from .alarm import start_thread
from .originals import exists, monotonic
from .places import is_recording
from .watch import LimitReached

if TYPE_CHECKING:
    from .recording import Recording

GRACE = 6.0
"""Seconds that a stopped script has to clean up."""
EVERY = 0.2
"""Seconds between two looks."""
_exit = os._exit


class Guard:
    """Looks whether it is time, where the sampler's signal rings and else in a thread; and hooks on the doors through
    which a script can leave without a word."""

    def __init__(self, recording: Recording) -> None:
        self.recording, self.watch = recording, recording.watch
        self._lock = threading.Lock()
        self._ended = self._raised = self._standing = False
        self._next = 0.0
        """When to look again."""

    def start(self) -> None:
        os._exit = self._leave_after_saving
        for name in ("execv", "execve"):
            if hasattr(os, name):
                setattr(os, name, self._replaced_after_saving(getattr(os, name)))
        if self.recording.alarm.ring_too(self._rung):
            self.recording.alarm.instead(self.stand)
        else:
            self.stand()

    def stand(self) -> None:
        """From here on in a thread."""
        if not self._standing:
            self._standing = True
            start_thread(self._stand)

    def _rung(self, frame: FrameType | None) -> None:
        """Amid the script's own code, not while the recorder is at work. Native code that does not come back for long
        is left to the parent."""
        now = monotonic()
        if now < self._next or self.watch.over or frame is None or is_recording(frame.f_code.co_filename):
            return
        self._next = now + EVERY
        try:
            self._look()
        except Exception as error:
            self.watch.faults.note("guard", error)

    def _leave_after_saving(self, status: int) -> Any:
        if self.watch.in_recorder:
            self.recording.save("exited", status, "the script called os._exit")
        _exit(status)

    def _replaced_after_saving(self, execute: Callable[..., Any]) -> Callable[..., Any]:
        """A timer would outlive the program and end the next. Where there is no such program, the script goes on."""
        recording = self.recording

        def replaced(*args: Any, **keywords: Any) -> Any:
            if self.watch.in_recorder and not self.watch.over:
                recording.save_so_far("exited", "the script replaced itself by another program")
                recording.alarm.give_back()
            return execute(*args, **keywords)

        return replaced

    def script_has_ended(self) -> None:
        """From here on nothing is raised in the main thread.

        Only what was raised is taken back: without it, CPython 3.11 keeps its signal set for ever, and a thread with a
        profile hook never gets past it.
        """
        sys.setprofile(None)
        with self._lock:
            self._ended = True
            self.recording.alarm.calm()
            if self._raised:
                _raise_asynchronously(None)

    def _stand(self) -> None:
        while not self.recording.saved.is_set():
            time.sleep(EVERY)
            self._look()
        stopped = monotonic()
        while monotonic() < stopped + GRACE or not self.recording.stopping:
            time.sleep(EVERY)
        self._end()

    def _look(self) -> None:
        watch, order = self.watch, self.recording.order
        if exists(order.result + ".stop"):  # the parent was asked to end
            self.stop("interrupted")
        elif watch.clock() > (watch.deadline + order.overtime if watch.begun else watch.opened + order.patience):
            self.stop("limit")

    def stop(self, ending: str) -> None:
        """Save and end the script, unless it has ended itself meanwhile."""
        if self.recording.save(ending, None, "", stopping=True):
            self.raise_in_script()

    def raise_in_script(self) -> None:
        """Have the main thread end as if its own code had raised, at its next bytecode."""
        with self._lock:
            if self._ended or self.recording.alarm.raise_in_main_thread(LimitReached):
                return
            self._raised = True
            _raise_asynchronously(LimitReached)

    def _end(self) -> None:
        processes = sys.modules.get("multiprocessing")
        with contextlib.suppress(Exception):
            for worker in processes.active_children() if processes is not None else ():
                worker.kill()
        _exit(0)


def _raise_asynchronously(error: type[BaseException] | None) -> None:
    """CPython only: elsewhere the grace ends a script whose alarm signal is not ours."""
    with contextlib.suppress(AttributeError):
        raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
        thread = ctypes.c_ulong(threading.main_thread().ident or 0)
        raise_in(thread, None if error is None else ctypes.py_object(error))


def leave_stopped_script() -> None:
    """What Python does at its end, but for the tearing down of modules and native libraries: a script that was stopped
    amid its work may have native threads that crash in it."""
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):
            stream.flush()
    _exit(0)
