"""What the machine has and what a run takes of it: memory, cores, load. Of runs on this machine only."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from hotloop.doctor.facts import usable_cores
from hotloop.runs import lock
from hotloop.runs.directory import LOCK

_seen: dict[int, tuple[float, float]] = {}
_usage: dict[int, float] = {}


def machine_now() -> dict[str, Any]:
    memory = psutil.virtual_memory()
    return {
        "cores": usable_cores(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "memory": int(memory.total),
        "memory_used": int(memory.total - memory.available),
    }


def trainer_of(run: Path) -> psutil.Process | None:
    """The process that trains a run, where it is one of this machine and really holds the run's lock.

    The lock names a process, and anybody may have written the file: that process must have it open.
    """
    path = run / LOCK
    if not lock.is_held(path):
        return None
    with suppress(OSError, ValueError, psutil.Error):
        process = psutil.Process(int(path.read_bytes()[:20]))
        if any(os.path.samefile(held.path, path) for held in process.open_files() if os.path.exists(held.path)):
            return process
    return None


def used_by(run: Path) -> dict[str, Any] | None:
    """What the process of a run and its children take; None where nobody trains it here."""
    process = trainer_of(run)
    if process is None:
        return None
    with suppress(psutil.Error):
        family = [process, *process.children(recursive=True)]
        seconds = sum(sum(one.cpu_times()[:2]) for one in family)
        return {
            "pid": process.pid,
            "memory": sum(one.memory_info().rss for one in family),
            "processes": len(family),
            "threads": sum(one.num_threads() for one in family),
            "cores": _cores(process.pid, seconds, time.monotonic()),
        }
    return None


def _cores(pid: int, seconds: float, now: float) -> float | None:
    """Cores in use since the last time that somebody asked, at least half a second ago."""
    before = _seen.get(pid)
    if before is None or now - before[0] >= 0.5:
        _seen[pid] = now, seconds
        if before is not None:
            _usage[pid] = round(max(0.0, seconds - before[1]) / (now - before[0]), 2)
        for other in [other for other in _seen if len(_seen) > 100 and other != pid]:
            _seen.pop(other, None)
            _usage.pop(other, None)
    return _usage.get(pid)


def idle_cores(used: dict[str, Any] | None, cores: int) -> str:
    """`one of two cores idle`: what the run leaves, as far as it was watched; empty where that is less than a core."""
    if used is None or used["cores"] is None:
        return ""
    idle = int(cores - used["cores"] + 0.1)
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")
    told = [words[count] if count < len(words) else str(count) for count in (idle, cores)]
    return f"{told[0]} of {told[1]} cores idle" if idle >= 1 and cores > 1 else ""
