"""Time that Python's garbage collector takes out of the loop."""

from __future__ import annotations

import gc

from hotloop.doctor.script.watch import Watch


class Pauses:
    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.seconds = 0.0
        self.collections = 0
        self._start = 0.0

    def start(self) -> None:
        gc.callbacks.append(self._collecting)

    def _collecting(self, moment: str, _facts: dict[str, int]) -> None:
        if not self.watch.begun or self.watch.over:
            return
        if moment == "start":
            self._start = self.watch.clock()
        elif self._start:
            self.seconds += self.watch.clock() - self._start
            self.collections += 1
