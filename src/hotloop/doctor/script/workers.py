"""What the script's worker processes computed while its loop ran: what stepping their envs here would cost at most."""

from __future__ import annotations

import psutil

try:
    from resource import RUSAGE_CHILDREN, getrusage
except ImportError:  # not on Windows: workers that have ended are not counted there
    getrusage = None  # type: ignore[assignment]


class WorkerTime:
    """Processor time of all child processes, the ended ones included, since `begin`."""

    def __init__(self) -> None:
        self._before: float | None = None

    def begin(self) -> None:
        self._before = processor_seconds()

    @property
    def seconds(self) -> float:
        return 0.0 if self._before is None else max(0.0, processor_seconds() - self._before)


def processor_seconds() -> float:
    return sum(map(_seconds_of, psutil.Process().children(recursive=True)), start=_seconds_of_the_ended())


def _seconds_of(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return times.user + times.system


def _seconds_of_the_ended() -> float:
    if getrusage is None:
        return 0.0
    usage = getrusage(RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
