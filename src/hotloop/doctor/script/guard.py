"""Ends a script that will not end itself when the doctor has seen enough, and loses nothing where it leaves early."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from hotloop.doctor.script.watch import LimitReached, Watch

GRACE = 6.0
"""Seconds that a stopped script has to clean up."""
OVERTIME = 10.0
"""Seconds beyond its bound that a loop may go without an env call, at which it would be stopped tidily."""

Save = Callable[[str, int | None, str], None]


class Guard:
    def __init__(self, watch: Watch, patience: float, save: Save) -> None:
        self.watch, self.patience, self.save = watch, patience, save
        self._leave = os._exit

    def start(self) -> None:
        os._exit = self._leave_after_saving
        threading.Thread(target=self._stand, daemon=True).start()

    def _leave_after_saving(self, status: int) -> Any:
        if self.watch.at_home:
            self.save("exited", status, "the script called os._exit")
        self._leave(status)

    def _stand(self) -> None:
        while not self.watch.over:
            time.sleep(0.25)
            self.look()
        stopped = time.monotonic()
        while time.monotonic() < stopped + GRACE or not self.watch.stopping:
            time.sleep(0.25)
        self._end()

    def look(self) -> None:
        watch = self.watch
        bound = watch.deadline + OVERTIME if watch.begun else watch.opened + self.patience
        if watch.clock() > bound and not watch.over:
            watch.stopping = True
            self.save("limit", None, "")
            raise_in(threading.main_thread())

    def _end(self) -> None:
        processes = sys.modules.get("multiprocessing")
        for worker in processes.active_children() if processes is not None else ():
            worker.kill()
        self._leave(0)


def raise_in(thread: threading.Thread) -> None:
    """Have another thread end as if its own code had raised, at its next bytecode."""
    identity, error = ctypes.c_ulong(thread.ident or 0), ctypes.py_object(LimitReached)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, error)
