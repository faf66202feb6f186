"""Ends the children of a process that was killed: `kill -9` leaves it no moment to do so itself.

A keeper is a small process at the other end of a pipe. Its owner names every child that it starts and every one that
has ended; when the pipe closes, the owner is gone, however it went, and the keeper ends those that are left. The
children know nothing of it: no thread, no signal, no open file is added to a program that is being measured. The file
is also the keeper's program, and therefore needs nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable

PATIENCE_SECONDS = 40.0
"""For a child that was asked to end: a trainer promises to have saved and left within 30 seconds."""


class Keeper:
    """`with Keeper() as keeper:` around the life of children; each is watched from its start to its end."""

    def __enter__(self) -> Keeper:
        from hotloop.core.children import own_program  # not above: without hotloop where the file is the program

        words = own_program(__file__)
        nowhere = subprocess.DEVNULL
        # a session of its own: Ctrl-C, a closed terminal and `kill` of the group pass it by
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, bufsize=0, start_new_session=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process.wait()

    def watch(self, pid: int, number: signal.Signals) -> None:
        """Send this signal to the child should its owner be gone, and SIGKILL where that does not help."""
        self._write(f"{pid} {int(number)}\n")

    def forget(self, pid: int) -> None:
        """Right after it was waited for: its number may soon be somebody else's."""
        self._write(f"{pid} 0\n")

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # somebody ended the keeper: no reason to end the work
            self._process.stdin.write(line.encode())


def keep(lines: Iterable[str]) -> None:
    """The keeper's life: until the lines end."""
    watched: dict[int, int] = {}
    for line in lines:
        pid, number = map(int, line.split())
        if number:
            watched[pid] = number
        else:
            watched.pop(pid, None)
    for pid, number in watched.items():
        _send(pid, number)
    give_up = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up and any(_send(pid, 0) for pid in watched):
        time.sleep(0.05)
    for pid in watched:
        _send(pid, signal.SIGKILL)


def _send(pid: int, number: int) -> bool:
    """False where there is no such process any more."""
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    keep(sys.stdin)
