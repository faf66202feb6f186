"""One child process: started in the script's interpreter, bounded from outside, ended with all it has started.

The child bounds itself. The limit here is for a child that cannot: its loop never returns to Python, or it ignores
every request. Whatever ends it, what it had written down by then is what comes back.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

import hotloop.doctor.recorder
from hotloop.core.keeper import Keeper
from hotloop.core.temporary import TemporaryFolder
from hotloop.doctor.recorder.guard import GRACE
from hotloop.doctor.recorder.order import Order

CHILD = Path(hotloop.doctor.recorder.__file__).with_name("child.py")
STDERR = 2
SAVING = 15.0
"""Seconds beyond all bounds of its own that a child has to write its trace on a busy machine."""
OWN_WAY = 5.0
"""Seconds that an interrupted script has to end in its own way."""
EVERY = 0.1
SILENT = 30.0
"""Seconds after which a run that has no loop yet is told to be waited for."""
SUBREAPER = 36
"""Linux's PR_SET_CHILD_SUBREAPER: orphans below come to this process instead of to the first one."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a run ended, and what it left."""

    data: dict[str, Any] | None
    """None where it left nothing."""
    code: int
    whole: bool = True
    """Whether the recorder wrote its trace to the end; otherwise the data are of some moment before."""
    killed: bool = False
    """Whether it had to be, since it did not end within its limit."""
    interrupted: bool = False
    """Whether the doctor itself was asked to end: no further run then."""
    loop_seconds: float = 0.0
    """From the first env step to the end of the process."""


@dataclass(frozen=True, kw_only=True)
class Where:
    """What a child is given besides its order."""

    python: str = sys.executable
    folder: Path | None = None
    """To run in; None is where we are."""
    quiet: bool = False
    """Whether its output goes nowhere: the first run has shown it."""
    stdin: int | None = None
    """None is our own."""
    tell: Callable[[str], None] | None = None
    """Told what the child is about, where it says so."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that it has besides ours."""


class AskedToEnd(BaseException):
    """SIGTERM or a closed terminal reached the doctor itself."""


def run_child(order: Order, where: Where | None = None) -> Ended:
    with TemporaryFolder("doctor") as folder:
        result, note = folder / "trace.json", folder / "order.json"
        order = replace(order, result=str(result))
        note.write_text(order.as_json())
        with _requests_raised(), _orphans_come_here() as started_before:
            run = _Run(order, where or Where())
            run.wait(note)
            data, whole = _read(result)
            if run.stopped or data is None or data.get("subject", {}).get("ending") in ("limit", "interrupted", ""):
                _end_all_but(started_before)
        ending: dict[str, Any] = {"code": run.code, "killed": run.killed, "interrupted": run.interrupted}
        return Ended(data=data, whole=whole, loop_seconds=run.loop_seconds, **ending)


class _Run:
    """The waiting: for the end, for a limit, for a request to end."""

    def __init__(self, order: Order, where: Where) -> None:
        self.order, self.where = order, where
        self.code = -1
        self.killed = self.interrupted = self.stopped = False
        self.loop_seconds = 0.0
        self._begun, self._progress = Path(order.result + ".begun"), Path(order.result + ".progress")
        self._told = 0
        self._is_waiting = False
        """Whether it was said that the loop has not begun yet."""

    def wait(self, note: Path) -> None:
        """The script prints to the doctor's stderr, so that stdout is the report's."""
        out = subprocess.DEVNULL if self.where.quiet or not _is_open(STDERR) else STDERR
        errors = subprocess.DEVNULL if self.where.quiet else None
        command = [self.where.python, str(CHILD), str(note)]
        environment = {**os.environ, **self.where.environment}
        with Keeper() as keeper:
            child = subprocess.Popen(
                command, stdin=self.where.stdin, stdout=out, stderr=errors, cwd=self.where.folder, env=environment
            )
            keeper.watch(child.pid, signal.SIGKILL)
            try:
                self._wait(child)
            finally:
                if child.poll() is None:
                    child.kill()
                self.code = child.wait()
                keeper.forget(child.pid)

    def _wait(self, child: subprocess.Popen[bytes]) -> None:
        try:
            self._until_limit(child)
        except (KeyboardInterrupt, AskedToEnd) as request:  # an interrupt reaches the script as well
            self.interrupted = True
            with contextlib.suppress(KeyboardInterrupt, AskedToEnd):
                if isinstance(request, KeyboardInterrupt) and _ends_within(child, OWN_WAY):
                    return
                self._stop(child)

    def _until_limit(self, child: subprocess.Popen[bytes]) -> None:
        started = time.monotonic()
        begun = 0.0
        while not _ends_within(child, EVERY):
            now = time.monotonic()
            self._pass_on()
            begun = begun or (now if self._begun.exists() else 0.0)
            if not begun and now > started + SILENT and not self._is_waiting and self.where.tell is not None:
                self._is_waiting = True
                self.where.tell(
                    f"no env step yet after {SILENT:.0f} s: waiting for one, {self.order.patience:.0f} s in all"
                )
            self.loop_seconds = now - begun if begun else 0.0
            if now > (begun + self._loop_limit if begun else started + self.order.patience + GRACE + SAVING):
                self.killed = True
                self._stop(child, patience=0.0)
                return

    def _pass_on(self) -> None:
        if self.where.tell is None or not self._progress.exists():
            return
        lines = self._progress.read_text(errors="replace").splitlines()
        for line in lines[self._told :]:
            self.where.tell(line)
        self._told = len(lines)

    @property
    def _loop_limit(self) -> float:
        order = self.order
        window = order.lead_seconds + order.seconds + order.late_seconds
        return window + order.overtime + GRACE + SAVING

    def _stop(self, child: subprocess.Popen[bytes], patience: float = GRACE + SAVING) -> None:
        """Ask it, wait, and make sure."""
        self.stopped = True
        Path(self.order.result + ".stop").touch()
        if not _ends_within(child, patience):
            self.killed = True
            child.kill()


def _ends_within(child: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        child.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _read(result: Path) -> tuple[dict[str, Any] | None, bool]:
    for path, whole in ((result, True), (Path(f"{result}.so-far"), False)):
        with contextlib.suppress(OSError, ValueError):
            data = json.loads(path.read_text())
            if isinstance(data, dict):
                return data, whole
    return None, False


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _requests_raised() -> Iterator[None]:
    """A request to end becomes an exception here, so that the report of what was seen is still made."""

    def asked(number: int, frame: object) -> None:
        raise AskedToEnd

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, asked) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _orphans_come_here() -> Iterator[set[int]]:
    """While the child runs, what it leaves behind becomes ours to end; yields the processes that are ours already."""
    started_before = {process.pid for process in psutil.Process().children(recursive=True)}
    _set_subreaper(1)
    try:
        yield started_before
    finally:
        _set_subreaper(0)


def _set_subreaper(value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(SUBREAPER, value, 0, 0, 0)


def _end_all_but(kept: set[int]) -> None:
    """What a script that was stopped amid its work had started: it can no longer end it itself."""
    left = [process for process in psutil.Process().children(recursive=True) if process.pid not in kept]
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left, timeout=5.0)
