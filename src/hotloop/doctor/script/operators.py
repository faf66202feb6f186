"""The dearest PyTorch operators, by PyTorch's own profiler over a short stretch of the loop."""

from __future__ import annotations

import sys
from typing import Any

from hotloop.doctor.script.watch import Watch
from hotloop.doctor.trace import OperatorCost

MOST = 20
SECONDS = 3.0


class OperatorWatch:
    """Runs the profiler from the first update on."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self._profiler: Any = None
        self._running = False

    def on_env(self, now: float) -> None:
        if self._profiler is None and self.watch.attribution.bursts:
            profiler = sys.modules["torch"].profiler
            self._profiler = profiler.profile(activities=[profiler.ProfilerActivity.CPU])
            self._profiler.__enter__()
            self._running = True
            self.watch.deadline = min(self.watch.deadline, now + SECONDS)

    def stop(self) -> None:
        if self._running:
            self._running = False
            self._profiler.__exit__(None, None, None)

    def costs(self) -> list[OperatorCost]:
        if self._profiler is None:
            return []
        rows = [row for row in self._profiler.key_averages() if row.self_cpu_time_total > 0]
        total = sum(row.self_cpu_time_total for row in rows)
        rows.sort(key=lambda row: -row.self_cpu_time_total)
        return [
            OperatorCost(
                name=row.key,
                calls=int(row.count),
                seconds=row.self_cpu_time_total / 1e6,
                share=row.self_cpu_time_total / total,
            )
            for row in rows[:MOST]
        ]
