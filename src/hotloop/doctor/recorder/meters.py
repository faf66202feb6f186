"""Passes that measure beside time: learning, operators, pauses and workers."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .passes import Pass

if TYPE_CHECKING:
    from .torch_hooks import TorchHooks

try:
    from resource import RUSAGE_CHILDREN, getrusage
except ImportError:  # not on Windows: workers that have ended are not counted there
    getrusage = None  # type: ignore[assignment]

MOST_VALUES = 50_000_000


class Learning(Pass):
    """What can be told of networks and optimisers when the loop has ended."""

    def __init__(self, hooks: TorchHooks) -> None:
        self.hooks = hooks

    def add_to(self, trace: dict[str, Any]) -> None:
        trace["counts"].update(learning_counts(self.hooks, self.watch.told().modules))


def learning_counts(hooks: TorchHooks, learning_modules: dict[int, int]) -> dict[str, Any]:
    """Fields of Counts."""
    torch = sys.modules.get("torch")
    if torch is None or not hooks.optimisers:
        return {}
    parameters = {id(one): one for optimiser in hooks.optimisers for one in _parameters(optimiser)}
    return {
        "parameter_tensors": len(parameters),
        "parameters": sum(one.numel() for one in parameters.values()),
        "double_parameters": sum(one.numel() for one in parameters.values() if one.dtype == torch.float64),
        "optimiser": _name(hooks.optimisers[0]),
        "denormal_values": _denormals(torch, hooks.optimisers),
        "unneeded_grad_forwards": _unneeded(hooks.modules, learning_modules, set(parameters)),
    }


def _parameters(optimiser: Any) -> Iterator[Any]:
    for group in optimiser.param_groups:
        yield from group["params"]


def _name(optimiser: Any) -> str:
    group = optimiser.param_groups[0] if optimiser.param_groups else {}
    how = next((word for word in ("fused", "foreach") if group.get(word)), "")
    return f"{type(optimiser).__name__} {how}".strip()


def _denormals(torch: Any, optimisers: list[Any]) -> int:
    found = seen = 0
    with torch.no_grad():
        for optimiser in optimisers:
            for values in (value for state in optimiser.state.values() for value in state.values()):
                if not torch.is_tensor(values) or not values.is_floating_point() or seen > MOST_VALUES:
                    continue
                seen += values.numel()
                tiny = torch.finfo(values.dtype).tiny
                found += int(((values != 0) & (values.abs() < tiny)).sum())
    return found


def _unneeded(modules: dict[int, Any], forwards: dict[int, int], optimised: set[int]) -> int:
    """Forwards that recorded gradients nobody uses: no optimiser holds any parameter of the module."""
    total = 0
    for identity, count in forwards.items():
        module = modules.get(identity)
        own = [one for one in module.parameters() if one.requires_grad] if module is not None else []
        if own and not any(id(one) in optimised for one in own):
            total += count
    return total


MOST = 20
SECONDS = 3.0


class Operators(Pass):
    """The most expensive PyTorch operators, by PyTorch's own profiler over a short stretch from the first update on."""

    def __init__(self) -> None:
        self._profiler: Any = None
        self._running = False

    def on_env(self, now: float) -> None:
        if self._profiler is None and self.watch.attribution.bursts:
            profiler = sys.modules["torch"].profiler
            self._profiler = profiler.profile(activities=[profiler.ProfilerActivity.CPU])
            self._profiler.__enter__()
            self._running = True
            self.watch.bound(min(self.watch.deadline - now, SECONDS))

    def stop(self) -> None:
        if self._running:
            self._running = False
            self._profiler.__exit__(None, None, None)

    def add_to(self, trace: dict[str, Any]) -> None:
        if self._profiler is None:
            return
        rows = [row for row in self._profiler.key_averages() if row.self_cpu_time_total > 0]
        total = sum(row.self_cpu_time_total for row in rows)
        rows.sort(key=lambda row: -row.self_cpu_time_total)
        trace["operators"] = [
            dict(
                name=row.key,
                calls=int(row.count),
                seconds=row.self_cpu_time_total / 1e6,
                share=row.self_cpu_time_total / total,
            )
            for row in rows[:MOST]
        ]


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


class WorkerTime(Pass):
    """Processor time of all child processes, the ended ones included, since `begin`: what stepping their envs here
    would cost at most."""

    def __init__(self) -> None:
        self._before: float | None = None

        self._at_mark = 0.0

    def begin(self) -> None:
        self._before = processor_seconds()

    def steady(self) -> None:
        self._at_mark = processor_seconds()

    @property
    def seconds(self) -> float:
        return 0.0 if self._before is None else max(0.0, processor_seconds() - self._before)

    def add_to(self, trace: dict[str, Any]) -> None:
        if self.watch.told_from is not None:
            self._before = self._at_mark
        trace["counts"]["worker_seconds"] = self.seconds


class Queue(Pass):
    """How long the loop's thread was ready to run and others had the cores, by what Linux tells of each thread; and
    what all threads of the script computed meanwhile."""

    def __init__(self) -> None:
        self._path = ""
        self._before = self._at_mark = self._last = (0.0, 0.0)

    def begin(self) -> None:
        self._path = f"/proc/self/task/{threading.get_native_id()}/schedstat"
        self._before = self._look()

    def steady(self) -> None:
        self._at_mark = self._look()

    def stop(self) -> None:
        self._last = self._look()

    def _look(self) -> tuple[float, float]:
        try:
            with open(self._path, "rb") as text:
                queued = int(text.read().split()[1]) / 1e9
        except (OSError, IndexError, ValueError):  # not on Linux, or not told
            queued = 0.0
        return queued, time.process_time()

    def add_to(self, trace: dict[str, Any]) -> None:
        if self._path:
            before = self._at_mark if self.watch.told_from is not None else self._before
            queued, computed = (max(0.0, last - first) for last, first in zip(self._last, before))
            trace["counts"].update(queued_seconds=queued, own_threads_seconds=computed)


def processor_seconds() -> float:
    """Of all processes below this one, by what Linux tells of each; elsewhere only of those that have ended."""
    tree: dict[int, list[tuple[int, float]]] = {}
    for pid, parent, seconds in _processes():
        tree.setdefault(parent, []).append((pid, seconds))
    total, waiting = _seconds_of_the_ended(), [os.getpid()]
    while waiting:
        for pid, seconds in tree.get(waiting.pop(), ()):
            total += seconds
            waiting.append(pid)
    return total


def _processes() -> Iterator[tuple[int, int, float]]:
    """(pid, its parent's, processor seconds) of all that can be seen."""
    if not os.path.isdir("/proc/self"):
        return
    ticks = os.sysconf("SC_CLK_TCK")
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as text:
                    fields = text.read().rpartition(b")")[2].split()
            except OSError:  # it has just ended
                continue
            yield int(name), int(fields[1]), (int(fields[11]) + int(fields[12])) / ticks


def _seconds_of_the_ended() -> float:
    if getrusage is None:
        return 0.0
    usage = getrusage(RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
