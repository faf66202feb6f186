"""Removes a folder and ends what works in it, once its owner is gone, however it went.

A small process at the other end of a pipe, as `core/keeper.py` is. A cluster of ours has one: Ray ends its processes
with the one that started them; what those had started (trainers, which save first) and the folder with token, sockets
and logs would stay. Every run on a node has one too: there, worker and trainer may both be killed. The file is the
janitor's program, and therefore needs nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

PATIENCE_SECONDS = 10.0


class Janitor:
    """`with Janitor(folder):` around the life of whatever keeps everything of its own in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Path:
        from hotloop.core.children import own_program  # not above: without hotloop where the file is the program

        words = own_program(__file__)
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        # the folder is no word of its command line: those that have it there are ended
        self._process = subprocess.Popen(
            words, stdin=pipe, stdout=pipe, stderr=nowhere, bufsize=0, start_new_session=True
        )
        assert self._process.stdin is not None
        self._process.stdin.write(f"{self._folder}\n".encode())
        self._process.wait()  # the janitor is its child by then
        return self._folder

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        with self._process.stdout as until_it_ends:
            until_it_ends.read()


def tidy(folder: str, owner: int = 0) -> None:
    give_up = time.monotonic() + PATIENCE_SECONDS
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in _those_of(folder, owner):
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        while _those_of(folder, owner) and time.monotonic() < give_up:
            time.sleep(0.1)
    for _ in range(20):  # a process that is just ending may still write
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.lexists(folder):
            return
        time.sleep(0.1)


def _those_of(folder: str, owner: int) -> list[int]:
    """Processes of this user that name the folder on their command line, work in it, or have a file open there: Ray's
    agents give themselves another title and print into a pipe. Not its owner, who may have one of Ray's logs open."""
    found = []
    mark, deeper = folder.encode(), folder + os.sep
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) in (os.getpid(), owner):
            continue
        with contextlib.suppress(OSError):
            words = Path("/proc", name, "cmdline").read_bytes()
            links = ["cwd", *(f"fd/{number}" for number in os.listdir(f"/proc/{name}/fd"))]
            places = [_target(f"/proc/{name}/{link}") for link in links]
            within = mark in words or any(place.startswith(deeper) for place in places)
            if words and within and os.stat(f"/proc/{name}").st_uid == os.getuid():
                found.append(int(name))
    return found


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def main() -> None:
    owner = os.getppid()
    if os.fork():  # a worker of Ray's that ends kills its children: the janitor must not be one
        return
    folder = sys.stdin.readline().strip()
    while sys.stdin.readline():
        pass
    if folder:
        tidy(folder, owner)


if __name__ == "__main__":
    main()
