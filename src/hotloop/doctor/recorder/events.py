"""What the hooks report to, between two events of the script: when each began and ended, kept until there are many.

This is as short as can be, since it runs with cold caches amid the script's work: what can wait is done for many events
at once, and `__slots__` keep what is touched on a few cache lines. An error in any of this is ours, not the script's:
it is noted, and the recording ends there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .attribution import Attribution
from .passes import Faults, Passes
from .results import EnvCalls
from .words import OPTIMISER

LONG = 3e-4
"""Seconds of a gap or an event after which the processor's clock is read, a system call: less is too short for another
program to have had the core."""
NEVER = float("inf")


class Events(EnvCalls):
    """Hooks pass straight through while `busy`: inside another hook, before the loop, after the end."""

    __slots__ = (
        *("busy", "thread", "over", "plain_below", "clock", "unsettled", "_left", "_long", "_gap_lost", "_resumed"),
        "_batch",
        *("_plain", "_takes_notes", "_gap_note", "_on_update", "processor", "_looked", "begun", "opened"),
        *("passes", "attribution", "events"),
    )

    def __init__(
        self,
        faults: Faults,
        clock: Callable[[], float],
        processor: Callable[[], float] | None,
        passes: Passes,
        batch: int,
    ) -> None:
        """`batch` events are seen before they are attributed. `processor` is the clock of the processor time of the
        thread that asks."""
        super().__init__(faults)
        self.clock, self.processor, self.passes, self._batch = clock, processor, passes, batch
        self.busy, self.begun, self.over = True, False, False
        self.thread = 0
        """The thread that stepped the first env; what others do is not timed."""
        self.opened = clock()
        self.unsettled: list[tuple[Any, ...]] = []
        self.attribution, self.events = Attribution(self.opened), 0
        self._resumed = self._left = self.opened
        """When the script ran on after an event that we did more at than usual; when the last event ended."""
        self._gap_lost, self._looked = 0.0, (self.opened, 0.0)
        """Both clocks when the processor's was last read."""
        self._long = LONG if processor is not None else NEVER
        self._takes_notes, self._on_update = passes.takes_notes, passes.on_update
        self._plain = self._long if batch > 1 and not passes.takes_notes and not passes.on_update else 0.0
        self.plain_below = self._plain
        """Events of less seconds hooks may note themselves, in fewer steps than `leave` takes; 0 after a long gap, and
        where there is more to do."""
        self._gap_note: Any = None

    def enter(self) -> float:
        """An event begins: when, by the clock."""
        self.busy = True
        if self._takes_notes:
            try:
                self._gap_note = self.passes.note()
            except Exception as error:
                self.give_up("note", error)
        start = self.clock()
        if start - self._left > self._long:
            self._gap_lost, self.plain_below = self._lost(start), 0.0
        return start

    def leave(self, kind: str, start: float, forward: tuple[int, bool, int] | None = None, now: float = 0.0) -> None:
        """An event ended: at `now`, where more was done since than to call this."""
        if self.over:
            return
        now = now or self.clock()
        try:
            lost = None
            if now - start > self._long:
                lost = (self._gap_lost, self._lost(now))
            elif self._gap_lost:
                lost = (self._gap_lost, 0.0)
            notes = (self._gap_note, self.passes.note()) if self._takes_notes else None
            self.unsettled.append((kind, start, now, forward, self._resumed, lost, notes))
            self._left, self._gap_lost, self.plain_below, self.busy = now, 0.0, self._plain, False
            if len(self.unsettled) >= self._batch:
                self.settle()
                self._resume()
            if self._on_update and kind == OPTIMISER:
                self.passes.tell(self._on_update, now)
                self.end_where_due(now)
                self._resume()
        except Exception as error:
            self.give_up("leave", error)

    def _lost(self, now: float) -> float:
        """Since the processor's clock was last read: seconds in which this thread did not compute."""
        spent = self.processor() if self.processor is not None else 0.0
        lost = now - self._looked[0] - (spent - self._looked[1])
        self._looked = (now, spent)
        return lost if lost > 0.0 else 0.0

    def _resume(self) -> None:
        """The script runs on, after more than the usual."""
        self._resumed = self.clock()

    def settle(self) -> None:
        """Attribute what was seen: many events at once, since one by one amid the script's work costs more."""
        self.attribution.events(self.unsettled)
        self.events += len(self.unsettled)
        self.unsettled.clear()

    def end_where_due(self, now: float) -> None:
        """The watch knows when that is."""

    def give_up(self, where: str, error: BaseException) -> None:
        """What the watch does about an error of ours."""
