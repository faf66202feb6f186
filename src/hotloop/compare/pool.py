"""Trains jobs in processes of their own, so many at once; one that fails does not stop the others."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from hotloop.compare.jobs import Job
from hotloop.core.interrupts import terminate_as_interrupt
from hotloop.core.keeper import Keeper
from hotloop.runs.files import explained, make_folder

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_POLL_SECONDS, _PATIENCE_SECONDS = 0.1, 40.0
_ERROR_LENGTH = 2_000
Watch = Callable[[], None]


def run_jobs(jobs: Sequence[Job], workers: int, watch: Watch) -> None:
    """Run all that wait; `watch` is called ten times a second. Jobs carry their status and error afterwards.

    Ctrl-C or SIGTERM ends the children, which save a checkpoint first, and comes out as KeyboardInterrupt. They are
    ended in the same way should this process be killed.
    """
    waiting = [job for job in jobs if job.status == "waiting"]
    running: dict[subprocess.Popen[bytes], Job] = {}
    if not waiting:
        return
    with terminate_as_interrupt(), Keeper() as keeper:
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    job = waiting.pop(0)
                    process = _start(job)
                    running[process] = job
                    keeper.watch(process.pid, signal.SIGTERM)
                time.sleep(_POLL_SECONDS)
                for process in [process for process in running if process.poll() is not None]:
                    keeper.forget(process.pid)
                    _finish(running.pop(process), process.returncode)
                watch()
        finally:
            _end(list(running))
            for process in running:
                keeper.forget(process.pid)


def _start(job: Job) -> subprocess.Popen[bytes]:
    """A group of its own: Ctrl-C reaches the child once, through us, and not as the second one that stops at once."""
    make_folder(job.log.parent)
    environment = os.environ | dict.fromkeys(ONE_THREAD, "1")
    with explained("write", job.log), open(job.log, "wb", opener=_in_place) as log:
        process = subprocess.Popen(
            job.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=environment,
            process_group=0,
        )
    job.status = "running"
    return process


def _in_place(path: str, flags: int) -> int:
    """A log that is a symbolic link would be written to wherever it leads."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _finish(job: Job, code: int) -> None:
    said = _read(job.log)
    if code == 0:
        job.status = "finished"
    else:
        job.status, job.error = "failed", _reason(said, code, job.log)
    if not said:
        with contextlib.suppress(OSError):
            job.log.unlink()


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


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ask politely, wait, then insist; a second Ctrl-C insists at once."""
    try:
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + _PATIENCE_SECONDS
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
