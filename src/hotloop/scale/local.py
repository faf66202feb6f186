"""This machine as a place: each run a process of its own, several at once; one that fails does not stop the others."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hotloop.core.interrupts import raise_if_asked, terminate_as_interrupt
from hotloop.core.keeper import Keeper
from hotloop.core.places import Began, Done, News, Task
from hotloop.runs.files import explained, make_folder

POLL_SECONDS, PATIENCE_SECONDS = 0.1, 40.0
_ERROR_LENGTH = 2_000


@dataclass(frozen=True)
class LocalPlace:
    workers: int
    patience: float = PATIENCE_SECONDS
    """Seconds for a checkpoint before the end."""
    elsewhere: bool = False

    @property
    def differing(self) -> dict[str, list[str]]:
        """This machine is like itself."""
        return {}

    def run(self, tasks: Sequence[Task]) -> News:
        """Ctrl-C or SIGTERM ends the children, which save a checkpoint first, and comes out as KeyboardInterrupt. They
        are ended in the same way should this process be killed."""
        waiting = list(tasks)
        running: dict[subprocess.Popen[bytes], Task] = {}
        if not waiting:
            return
        with terminate_as_interrupt(), Keeper() as keeper:
            try:
                while waiting or running:
                    while waiting and len(running) < self.workers:
                        task = waiting.pop(0)
                        process = _start(task)
                        running[process] = task
                        keeper.watch(process.pid, signal.SIGTERM)
                        yield Began(task.index)
                    time.sleep(POLL_SECONDS)
                    raise_if_asked()
                    for process in [process for process in running if process.poll() is not None]:
                        keeper.forget(process.pid)
                        yield _done(running.pop(process), process.returncode)
                    yield None
            finally:
                _end(list(running), self.patience)
                for process in running:
                    keeper.forget(process.pid)


def _start(task: Task) -> subprocess.Popen[bytes]:
    """A group of its own: Ctrl-C reaches the child once, through us, and not as the second one that stops at once."""
    make_folder(task.log.parent)
    with explained("write", task.log), open(task.log, "wb", opener=_in_place) as log:
        return subprocess.Popen(
            task.command,
            stdin=subprocess.DEVNULL,
            stdout=log if task.keeps_output else subprocess.DEVNULL,
            stderr=log,
            env=os.environ | dict(task.environment),
            cwd=task.folder,
            process_group=0,
        )


def _in_place(path: str, flags: int) -> int:
    """A log that is a symbolic link would be written to wherever it leads."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _done(task: Task, code: int) -> Done:
    said = _read(task.log)
    if not said:
        with contextlib.suppress(OSError):
            task.log.unlink()
    if code == 0:
        return Done(task.index, task.proof() if task.proof else "")
    return Done(task.index, _reason(said, code, task.log))


def _reason(said: str, code: int, log: Path) -> str:
    """A user's mistake is told in full; of a traceback the last line says what it was, the log has the rest."""
    if not said:
        ending = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return f"ended by {ending} without a word"
    if "Traceback (most recent call last)" in said:
        return f"{said.splitlines()[-1]} (all of it in {log})"
    said = said[said.find("error: ") + len("error: ") :] if "error: " in said else said
    return said if len(said) <= _ERROR_LENGTH else "..." + said[-_ERROR_LENGTH:]


def _read(log: Path) -> str:
    try:
        return log.read_text(errors="replace").strip()
    except OSError:
        return ""


def _end(processes: Sequence[subprocess.Popen[bytes]], patience: float) -> None:
    """SIGTERM, time for a checkpoint, then SIGKILL; at once on a second Ctrl-C."""
    try:
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + patience
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
