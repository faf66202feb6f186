"""How long a whole program takes, on the wall and on all processors that it uses."""

from __future__ import annotations

import os
import time
from typing import Any

from .follow import Follower, FollowPass
from .meters import processor_seconds
from .order import Order
from .originals import open_file
from .results import read_step


class Pace(FollowPass):
    """How long a program takes from its first env step on; it ends where the other run ended. Processor time is that of
    the program and of all its children, those that have ended and those that live."""

    watch: Follower

    def __init__(self, order: Order) -> None:
        self.order, self.env_steps = order, 0
        self._began = (0.0, 0.0)

    def begin(self) -> None:
        open_file(self.order.result + ".begun", "w").close()
        self._began = self._now()

    def on_step(self, args: tuple[Any, ...], result: Any, start: float) -> None:
        self.env_steps += read_step(result)[0]
        if self.order.env_steps is not None and self.env_steps >= self.order.env_steps:
            self.watch.end_here()

    def add_to(self, trace: dict[str, Any]) -> None:
        now = self._now()
        trace["wall_seconds"], trace["processor_seconds"] = (end - start for start, end in zip(self._began, now))
        trace["env_steps"] = self.env_steps
        trace["children_counted"] = os.path.isdir("/proc/self")

    @staticmethod
    def _now() -> tuple[float, float]:
        return time.perf_counter(), time.process_time() + processor_seconds()
