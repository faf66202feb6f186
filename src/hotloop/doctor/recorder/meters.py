"""Passes that measure beside time: pauses, workers, the queue for a core; and what machine this is, as far as the
script's process can tell with the standard library: the parent adds the rest."""

from __future__ import annotations

import gc
import os
import platform
import re
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from .originals import list_folder, open_file, own_pid
from .passes import Pass

try:
    from resource import RUSAGE_CHILDREN, getrusage
except ImportError:  # not on Windows: workers that have ended are not counted there
    getrusage = None  # type: ignore[assignment]

LIBRARIES = ("numpy", "gymnasium", "gym", "torch", "stable_baselines3", "jax", "tensorflow", "keras")


class Pauses(Pass):
    """Time that Python's garbage collector takes out of the loop."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.collections = 0
        self._start = 0.0
        self._before = (0.0, 0)

    def steady(self) -> None:
        self._before = (self.seconds, self.collections)

    def prepare(self) -> None:
        if hasattr(gc, "callbacks"):
            gc.callbacks.append(self._collecting)

    def _collecting(self, moment: str, _facts: dict[str, int]) -> None:
        if not self.watch.begun or self.watch.over:
            return
        if moment == "start":
            self._start = self.watch.clock()
        elif self._start:
            self.seconds += self.watch.clock() - self._start
            self.collections += 1

    def add_to(self, trace: dict[str, Any]) -> None:
        seconds, collections = self._before if self.watch.told_from is not None else (0.0, 0)
        trace["counts"].update(gc_seconds=self.seconds - seconds, gc_collections=self.collections - collections)


LEAST_OF_A_WORKER = 0.02
"""Seconds of processor time below which a child process does something else than step envs."""


class WorkerTime(Pass):
    """Processor time of all child processes, the ended ones included, since `begin`: what stepping their envs here
    would cost at most."""

    def __init__(self) -> None:
        self._before: float | None = None
        self._at_mark = 0.0
        self._workers = 0

    def begin(self) -> None:
        self._before = processor_seconds()

    def steady(self) -> None:
        self._at_mark = processor_seconds()

    def stop(self) -> None:
        self._workers = sum(seconds >= LEAST_OF_A_WORKER for seconds in children_seconds())

    @property
    def seconds(self) -> float:
        return 0.0 if self._before is None else max(0.0, processor_seconds() - self._before)

    def add_to(self, trace: dict[str, Any]) -> None:
        if self.watch.told_from is not None:
            self._before = self._at_mark
        trace["counts"].update(worker_seconds=self.seconds, workers=self._workers)


LEAST_COMPUTED = 0.2
"""Seconds of processor time before the loop from which on the queue for a core is told by them."""


class Queue(Pass):
    """How long the loop's thread was ready to run and others had the cores, by what Linux tells of each thread; and
    what all threads of the script computed meanwhile. How it stood in the queue before the loop, when it seldom waited
    for anything and had no workers yet, tells how long computing takes here by the wall clock."""

    def __init__(self) -> None:
        self._path = ""
        self._before = self._at_mark = self._last = (0.0, 0.0)
        self._crowding = 0.0

    def begin(self) -> None:
        self._path = f"/proc/self/task/{threading.get_native_id()}/schedstat"
        self._before = self._look()
        computed = time.thread_time() if hasattr(time, "thread_time") else 0.0
        if computed >= LEAST_COMPUTED:
            self._crowding = 1.0 + self._before[0] / computed

    def steady(self) -> None:
        self._at_mark = self._look()

    def stop(self) -> None:
        self._last = self._look()

    def _look(self) -> tuple[float, float]:
        try:
            with open_file(self._path, "rb") as text:
                queued = int(text.read().split()[1]) / 1e9
        except (OSError, IndexError, ValueError):  # not on Linux, or not told
            queued = 0.0
        return queued, time.process_time()

    def add_to(self, trace: dict[str, Any]) -> None:
        if self._path:
            before = self._at_mark if self.watch.told_from is not None else self._before
            queued, computed = (max(0.0, last - first) for last, first in zip(self._last, before))
            trace["counts"].update(queued_seconds=queued, own_threads_seconds=computed, crowding=self._crowding)


def processor_seconds() -> float:
    """Of all processes below this one, by what Linux tells of each; elsewhere only of those that have ended."""
    return _seconds_of_the_ended() + sum(children_seconds())


def children_seconds() -> list[float]:
    """Processor time of each process below this one that is still there."""
    tree: dict[int, list[tuple[int, float]]] = {}
    for pid, parent, seconds in _processes():
        tree.setdefault(parent, []).append((pid, seconds))
    found, waiting = [], [own_pid()]
    while waiting:
        for pid, seconds in tree.get(waiting.pop(), ()):
            found.append(seconds)
            waiting.append(pid)
    return found


def _processes() -> Iterator[tuple[int, int, float]]:
    """(pid, its parent's, processor seconds with those of the children that it has waited for) of all that can be
    seen."""
    if not os.path.isdir("/proc/self"):
        return
    ticks = os.sysconf("SC_CLK_TCK")
    for name in list_folder("/proc"):
        if name.isdigit():
            try:
                with open_file(f"/proc/{name}/stat", "rb") as text:
                    fields = text.read().rpartition(b")")[2].split()
            except OSError:  # it has just ended
                continue
            yield int(name), int(fields[1]), sum(map(int, fields[11:15])) / ticks


def _seconds_of_the_ended() -> float:
    if getrusage is None:
        return 0.0
    usage = getrusage(RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def process_facts() -> dict[str, Any]:
    """Python, cores and the versions of what is loaded already; PyTorch's build and threads."""
    facts: dict[str, Any] = {"python": platform.python_version(), "cores": usable_cores()}
    if platform.python_implementation() != "CPython":
        facts["implementation"] = platform.python_implementation()
    for name in LIBRARIES:
        if name in sys.modules:
            facts[name] = str(getattr(sys.modules[name], "__version__", "unknown"))
    if "torch" in sys.modules:
        facts.update(torch_facts(sys.modules["torch"]))
    return facts


def usable_cores() -> int:
    """Cores this process may use, which a container can make fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def torch_facts(torch: Any) -> dict[str, Any]:
    tiny = torch.full((1,), 1e-40)
    capability = getattr(torch.backends.cpu, "get_cpu_capability", None) if hasattr(torch.backends, "cpu") else None
    return {
        "torch_threads": torch.get_num_threads(),
        "blas": _blas(torch.__config__.show()),
        "vector_instructions": capability() if capability is not None else "unknown",
        "denormals_flushed": bool((tiny * 1.0).item() == 0.0),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }


def _blas(configuration: str) -> str:
    """Which matrix library PyTorch was built with: its configuration says `BLAS_INFO=mkl` somewhere."""
    found = re.search(r"BLAS_INFO=(\w+)", configuration)
    return found[1] if found else "unknown"
