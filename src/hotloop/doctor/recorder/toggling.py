"""Compares thread counts within one run of the script: by turns as it is and with a change, a stretch each."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .meters import usable_cores
from .order import TO_ROUNDING
from .passes import Pass

if TYPE_CHECKING:
    from .order import Order

    Change = tuple[str, str, str, Callable[[], None]]
    """Name, what it does, kind, and how it is put into effect."""

MOST_ARMS = 4
SHORTEST = 0.15
LONG_BURST = 0.6
AS_IT_IS = -1
LEARNING = ("forward", "backward", "optimiser")
"""Parts of the update: where denormal moments and gradients are computed with."""
NOTHING_TO_COMPARE = "thread counts were not compared: there is one core, and PyTorch uses one thread"


class Toggler(Pass):
    """Changes only where learning has just been done: every stretch holds whole turns of acting and learning.

    Where many updates come at once a turn can be too long: then the changes come between updates, and what they gain
    there is taken for the updates' share of the loop alone. Where nothing is learned, any env call will do.
    """

    early = True

    def __init__(self, order: Order) -> None:
        self.seconds, self.flush = order.seconds, order.flush_denormals
        self.learns = order.learns
        self.by_update = order.burst_seconds >= LONG_BURST
        self.share = order.update_share if self.by_update else 1.0
        self.costs: list[tuple[int, float]] = []
        """(change, seconds per env step or update) in order; change -1 is the script as it is."""
        self.learning: list[tuple[int, float]] = []
        """(change, processor seconds of forward, backward and optimizer's step): what lasts has no turns, in which the
        machine's other work and what becomes of the program fall out; only what it can change is looked at."""
        self.as_it_is = [0.0, 0.0]
        """Processor seconds as it is, and those of learning in them."""
        self.changes: list[Change] | None = None
        """None until PyTorch is in use."""
        self._undo: Callable[[], None] = lambda: None
        self._bursts = 0
        self._start = self._spent = self._learned = 0.0
        self._done = self._steps = 0
        self._env_calls = 0
        self._current = AS_IT_IS

    def on_env(self, now: float) -> None:
        bursts = self.watch.attribution.bursts
        if bursts == self._bursts and self.learns:
            return
        self._bursts = bursts
        if not self.by_update and "torch" in sys.modules:
            self._look(now, self.watch.env_steps)

    def on_update(self, now: float) -> None:
        """A stretch that an env call fell into is begun again: it was not of updates alone."""
        if not self.by_update or "torch" not in sys.modules:
            return
        if self.watch.env_calls != self._env_calls:
            self._env_calls = self.watch.env_calls
            self._begin(now, self.watch.attribution.counts["updates"])
        self._look(now, self.watch.attribution.counts["updates"])

    def _look(self, now: float, done: int) -> None:
        if self.changes is None:
            self.changes = changes(sys.modules["torch"], self.flush)
            self._undo = undo(sys.modules["torch"])
            self._begin(now, done)
            self.watch.bound(self.seconds if self.changes else 0.0)
        elif now - self._start >= max(SHORTEST, self.seconds / (40 * len(self._changes))) and done > self._done:
            self._turn(now, done)

    def _turn(self, now: float, done: int) -> None:
        self.costs.append((self._current, (now - self._start) / (done - self._done)))
        self._note_learning()
        following = self._following(now)
        if following != self._current:
            self._undo()
            if following != AS_IT_IS:
                self._changes[following][3]()
        self._current = following
        self._begin(self.watch.clock(), done)

    def _begin(self, now: float, done: int) -> None:
        """A stretch."""
        self._start, self._spent, self._done = now, time.process_time(), done
        self._learned, self._steps = self._learning()

    def _learning(self) -> tuple[float, int]:
        """Processor seconds and steps so far."""
        if not self.flush:
            return 0.0, 0
        seconds = self.watch.attribution.processor()
        return sum(seconds.get(part, 0.0) for part in LEARNING), self.watch.attribution.counts["optimiser_steps"]

    def _note_learning(self) -> None:
        seconds, steps = self._learning()
        if steps > self._steps:
            self.learning.append((self._current, (seconds - self._learned) / (steps - self._steps)))
        if self._current == AS_IT_IS:
            self.as_it_is[0] += time.process_time() - self._spent
            self.as_it_is[1] += seconds - self._learned

    def _following(self, now: float) -> int:
        """Changes by turns with the script as it is; flushing has the second half for itself, since what was flushed
        stays so."""
        others = len(self._changes) - self.flush
        if self.flush and now > self.watch.deadline - self.seconds / 2:
            return others
        if self._current != AS_IT_IS or not others:
            return AS_IT_IS
        return (len(self.costs) // 2) % others

    @property
    def _changes(self) -> list[Change]:
        return self.changes or []

    def stop(self) -> None:
        self._undo()

    def add_to(self, trace: dict[str, Any]) -> None:
        trace["experiments"] = self.experiments()
        if self.changes == []:
            trace["notes"].append(NOTHING_TO_COMPARE)

    def experiments(self) -> list[dict[str, Any]]:
        """Each change with its paired ratios; the parent makes medians and intervals of them."""
        found = []
        for index, (name, what, kind, _) in enumerate(self._changes):
            lasting = self.flush and index == len(self._changes) - 1
            paired = before_and_after(self.learning, index) if lasting else ratios(self.costs, index)
            part = min(1.0, self.as_it_is[1] / max(self.as_it_is[0], 1e-9)) if lasting else 1.0
            pairs = [whole(ratio, self.share * part) for ratio in paired]
            found.append(dict(name=name, what=what, kind=kind, pairs=pairs))
        return found


def whole(ratio: float, share: float) -> float:
    """The gain of the whole loop where `share` of it gains `ratio`."""
    return 1.0 / (1.0 - share + share / ratio)


def ratios(costs: list[tuple[int, float]], change: int) -> list[float]:
    """The mean of both neighbors as they are, over the changed stretch between them: drift falls out."""
    found = []
    for before, here, after in zip(costs[1:], costs[2:], costs[3:]):
        if here[0] == change:
            found.append((before[1] + after[1]) / 2 / here[1])
    return found


def before_and_after(costs: list[tuple[int, float]], change: int) -> list[float]:
    """Stretches as they were over stretches after a change that lasts, the nearest first; the first of each warm up."""
    before = [cost for kind, cost in costs[1:] if kind == AS_IT_IS]
    after = [cost for kind, cost in costs if kind == change][1:]
    return [one / other for one, other in zip(reversed(before), after) if other > 0]


def changes(torch: Any, flush_denormals: bool) -> list[Change]:
    """Thread counts other than the script's own, and flushing denormals where some were found."""
    now, cores = torch.get_num_threads(), usable_cores()
    counts = [count for count in sorted({1, 2, 4, 8, cores // 2, cores}) if 1 <= count <= cores and count != now]
    made: list[Change] = []
    for count in counts[:MOST_ARMS]:
        what = f"PyTorch with {count} thread{'s' if count > 1 else ''} instead of {now}"
        made.append((f"threads={count}", what, TO_ROUNDING, lambda count=count: torch.set_num_threads(count)))  # type: ignore[misc]
    if flush_denormals:
        what = "numbers too small for ordinary floats (below 1.2e-38) are taken as 0"
        made.append(("flush denormals", what, TO_ROUNDING, lambda: torch.set_flush_denormal(True)))
    return made


def undo(torch: Any) -> Callable[[], None]:
    now = torch.get_num_threads()

    def restore() -> None:
        torch.set_num_threads(now)
        torch.set_flush_denormal(False)

    return restore
