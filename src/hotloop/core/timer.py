"""Where the time goes: named phases of a loop, each nanosecond charged exactly once.

A phase entered inside another takes its time from it, so the totals always sum to the time since the start. Time
outside every phase is charged to `other`. One switch costs about 0.2 microseconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable

OTHER = "other"
NOT_TRAINING = ("start-up", "compile", "evaluate", "checkpoint", "caller")
"""Phases of a run that its `env_steps_per_second` leaves out."""


class PhaseTimer:
    def __init__(self, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self._clock = clock
        self._phases: dict[str, _Phase] = {}
        self._current = self.phase(OTHER)
        self._stack: list[_Phase] = []
        self.last_ns = clock()

    def phase(self, name: str) -> _Phase:
        """A context manager that charges its body to `name`; the same object every time."""
        found = self._phases.get(name)
        if found is None:
            found = self._phases[name] = _Phase(self)
        return found

    @property
    def current(self) -> _Phase:
        """The phase that time is charged to now."""
        return self._current

    def enter(self, phase: _Phase) -> None:
        """Charge what follows to `phase`: for phases in a row, at half the cost of as many `with` statements."""
        self._switch(phase)
        phase.count += 1

    def go_back(self, phase: _Phase) -> None:
        """Charge what follows to a phase that was entered before."""
        self._switch(phase)

    def totals_ns(self) -> dict[str, int]:
        """Nanoseconds of every phase seen so far, up to this moment."""
        self._switch(self._current)
        return {name: phase.total_ns for name, phase in self._phases.items()}

    def add_ns(self, totals: dict[str, int]) -> None:
        """Count time spent before, as when a run is resumed."""
        for name, nanoseconds in totals.items():
            self.phase(name).total_ns += nanoseconds

    def counts(self) -> dict[str, int]:
        """How often each phase was entered."""
        return {name: phase.count for name, phase in self._phases.items()}

    def _switch(self, phase: _Phase) -> None:
        now = self._clock()
        self._current.total_ns += now - self.last_ns
        self.last_ns = now
        self._current = phase


class _Phase:
    __slots__ = ("_timer", "count", "total_ns")

    def __init__(self, timer: PhaseTimer) -> None:
        self._timer = timer
        self.total_ns = 0
        self.count = 0

    def __enter__(self) -> None:  # spelt out, as is the exit: a call for each switch would double its cost
        timer = self._timer
        now, left = timer._clock(), timer._current
        left.total_ns += now - timer.last_ns
        timer.last_ns, timer._current = now, self
        timer._stack.append(left)
        self.count += 1

    def __exit__(self, *_: object) -> None:
        timer = self._timer
        now = timer._clock()
        self.total_ns += now - timer.last_ns
        timer.last_ns, timer._current = now, timer._stack.pop()
