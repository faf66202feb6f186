"""What else the machine did while the runs were trained: seconds are compared fairly only where it was little."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import psutil

EVERY = 10.0
"""Seconds between two looks: one takes some milliseconds for each hundred processes."""
BUSY = 0.25
"""Of a core, since the last look: what takes less is no matter."""
MOST_NAMED = 4


class LoadSample(NamedTuple):
    load: float  # mean over the last minute of threads that run or want to
    others: dict[str, float]  # busy processes that are not ours, by name: cores that they took


@dataclass(frozen=True)
class Load:
    """Of all looks: the range of the load average, and each busy program with the most cores it took."""

    low: float
    high: float
    others: dict[str, float]

    def as_data(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, "others": self.others}

    def sentence(self, cores: int, trained: int = 0, reused: int = 0) -> str:
        """`trained` runs were trained while the looks were taken; those `reused` before, under a load not known."""
        named = list(self.others.items())[:MOST_NAMED]
        other = ", ".join(f"{name} ({taken:.1f} cores)" for name, taken in named)
        more = f" and {len(self.others) - MOST_NAMED} more" if len(self.others) > MOST_NAMED else ""
        besides = f"busy besides the runs: {other}{more}" if other else "no other process took a quarter of a core"
        runs = f"the {trained} runs of this command" if reused and trained != 1 else "they"
        runs = "the one run of this command" if reused and trained == 1 else runs
        verb = "was" if reused and trained == 1 else "were"
        before = "; the load beside those that were there before is not known" if reused else ""
        said = f"Load average while {runs} {verb} trained: {self.low:.1f} to {self.high:.1f} on {cores_in_text(cores)}"
        return f"{said}; {besides}{before}."


def cores_in_text(cores: int) -> str:
    return f"{cores} core{'' if cores == 1 else 's'}"


def load_of(looks: list[LoadSample]) -> Load | None:
    """None where nothing was trained."""
    if not looks:
        return None
    most: dict[str, float] = {}
    for look in looks:
        for name, taken in look.others.items():
            most[name] = max(taken, most.get(name, 0.0))
    loads = [look.load for look in looks]
    return Load(min(loads), max(loads), dict(sorted(most.items(), key=lambda one: -one[1])))


class LoadMeter:
    """`watch` may be called as often as one likes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, every: float = EVERY) -> None:
        self.looks: list[LoadSample] = []
        self._clock, self._every = clock, every
        self._due = self._last = clock()
        self._spent: dict[tuple[int, float], float] = {}

    def watch(self) -> None:
        now = self._clock()
        if now < self._due:
            return
        others = self._others(now)
        self._due, self._last = now + self._every, now
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
        self.looks.append(LoadSample(load, others))

    def _others(self, now: float) -> dict[str, float]:
        """Cores that processes which do not descend from this one took since the last look."""
        spent, names = {}, {}
        ours = {os.getpid(), *(process.pid for process in psutil.Process().children(recursive=True))}
        for process in psutil.process_iter(["name", "cpu_times", "create_time"]):
            times, made = process.info["cpu_times"], process.info["create_time"]
            if process.pid not in ours and times is not None:
                spent[process.pid, made] = times.user + times.system
                names[process.pid, made] = str(process.info["name"])
        found: dict[str, float] = {}
        for key in spent.keys() & self._spent.keys():
            name = names[key]
            found[name] = found.get(name, 0.0) + (spent[key] - self._spent[key]) / max(1e-9, now - self._last)
        self._spent = spent
        return {name: round(taken, 2) for name, taken in found.items() if taken >= BUSY}
