"""A program that brings training processes into the world and kills them; `killing.py` talks to it.

Starting Python, torch and the kernels costs seconds. This process pays once, keeps to one thread, and forks a child for
each order that it reads from stdin, one JSON object a line:

    {"preset": "cartpole-dqn", "tree": {...}, "kill": null}     train or resume, to the end
    {..., "kill": {"seconds": 0.4}}                             SIGKILL from outside after so long
    {..., "kill": {"call": 17, "when": "before"}}               SIGKILL at the 17th call that changes a file
    {..., "kill": {"call": 17, "when": "after"}}                once it is done
    {..., "kill": {"call": 17, "when": "half"}}                 in the middle of it, where it is a write

The answer is one line too: how the child ended, for how long it lived and how many such calls it made.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

CALLS = ("fsync", "rename", "replace", "link", "ftruncate", "mkdir", "write", "unlink", "rmdir")


class Fate:
    """Counts the calls that change files and ends the process at one of them."""

    def __init__(self, kill: dict[str, Any] | None) -> None:
        self.made = 0
        self._at = (kill or {}).get("call", 0)
        self._when = (kill or {}).get("when", "")

    def install(self) -> None:
        for name in CALLS:
            setattr(os, name, self._counted(getattr(os, name), name))

    def _counted(self, real: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*words: Any, **options: Any) -> Any:
            self.made += 1
            if self.made != self._at:
                return real(*words, **options)
            if self._when == "half" and name == "write":
                real(words[0], memoryview(words[1])[: len(words[1]) // 2])
            elif self._when != "before":
                real(*words, **options)
            os.kill(os.getpid(), signal.SIGKILL)

        return call


def live(order: dict[str, Any], report: int) -> None:
    """What the child does: begin the run, or go on with it where it was begun."""
    import hotloop
    from hotloop.replay import segments

    segments.SEGMENT_BYTES = 4_800  # a hundred rows: small replays too are saved in several files that are then shared
    fate = Fate(order["kill"])
    settings = hotloop.preset(order["preset"], **order["tree"])
    raw_write = os.write
    fate.install()
    if (Path(settings.run_dir) / "settings.toml").exists():
        hotloop.resume(settings.run_dir)
    else:
        hotloop.train(settings)
    raw_write(report, str(fate.made).encode())


def bear(order: dict[str, Any]) -> dict[str, Any]:
    """One child, from fork to its end."""
    reading, writing = os.pipe()
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            live(order, writing)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    os.close(writing)
    handle = os.pidfd_open(child)
    limit = (order["kill"] or {}).get("seconds")
    if not select.select([handle], [], [], limit)[0]:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    made = os.read(reading, 100)
    os.close(reading)
    os.close(handle)
    seconds = time.monotonic() - begun
    return {"code": os.waitstatus_to_exitcode(status), "seconds": seconds, "calls": int(made or 0)}


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


def warm_up(trees: list[tuple[str, dict[str, Any]]]) -> None:
    """Load what a run needs, with other seeds than any child has: nothing of its results is here to be inherited."""
    import hotloop

    for preset, tree in trees:
        hotloop.train(hotloop.preset(preset, **tree))


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        order = json.loads(line)
        answer = warm_up(order["warm_up"]) or {} if "warm_up" in order else bear(order)
        assert threads() == 1, "a process with several threads must not fork"
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
