"""Where the loop stands, looked at every few milliseconds; each look is charged the time since the previous one.

A busy machine takes the core away most often inside system calls, and the recording makes some in every event: looks
that find the recording at work are dropped, or its lines would seem to take what the queue took. For the same reason a
look counts no more than two intervals, or what the thread has computed since, where that is more.

The alarm signal is used where there is one: its handler runs in the main thread at the next call boundary, on the very
line that was running. A thread that asks for the interpreter lock instead gets it when the script lets go of it, which
PyTorch does within every operator: it would see operators only, never the Python between them.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from .alarm import Alarm, start_thread
from .costs import (
    fit_to_phases,
    line_costs,
    lines_beneath,
    loops_around,
    split_recording,
    split_waiting,
    stack_costs,
    waiting_seconds,
)
from .order import OTHER
from .passes import Pass
from .places import UNSEEN, SourcePlaces, is_recording
from .timeline import after

if TYPE_CHECKING:
    from .places import Stack

DEEPEST = 120
MOST_INTERVALS = 2.0


class StackSampler(Pass):
    """Takes the looks and charges each to the phase that runs."""

    early = True

    def __init__(
        self,
        places: SourcePlaces,
        interval: float,
        clock: Callable[[], float] = time.perf_counter,
        alarm: Alarm | None = None,
    ) -> None:
        self.places, self.interval, self.clock = places, interval, clock
        self.alarm = alarm or Alarm()
        self.charged: dict[tuple[str, str, tuple[int, ...]], float] = {}
        """Seconds by phase, part of the update, and stack: the identity of each frame's code, and where in it. Codes
        themselves would be hashed by all their bytes, a hundred microseconds for a stack."""
        self._codes: dict[int, CodeType] = {}
        """By identity: held, so that no other gets it."""
        self._before: dict[tuple[str, str, tuple[int, ...]], float] = {}
        self.late: dict[tuple[int, ...], float] = {}
        """What was seen after the window."""
        self.looks = 0
        self.cost = 0.0
        """Seconds spent looking."""
        self.fresh: deque[tuple[float, float, tuple[int, ...]]] = deque()
        self._last = clock()
        self._computed: float | None = None
        """Processor time of the loop's thread at the last look, where it is that thread which looks."""
        self._running = self.by_signal = False

    def prepare(self) -> None:
        self._running, self._last = True, self.clock()
        self.by_signal = self.alarm.ring_every(self.interval, self._rung)
        if self.by_signal:
            self.alarm.instead(self._start_following)
        else:
            self._start_following()

    def stop(self) -> None:
        self._running = False

    def _rung(self, frame: FrameType | None) -> None:
        if not self.watch.begun or self.watch.over:
            self._last = self.clock()
        elif self.watch.off_main_thread():
            self.look(sys._current_frames().get(self.watch.thread))
        else:
            self.look(frame, self.watch.processor)

    def _start_following(self) -> None:
        start_thread(self._follow)

    def _follow(self) -> None:
        """Instead of the signal, or once the script has taken it for itself."""
        while self._running:
            time.sleep(self.interval)
            if self.watch.begun and not self.watch.over:
                self.look(sys._current_frames().get(self.watch.thread))
            else:
                self._last = self.clock()

    def look(self, frame: FrameType | None, processor: Callable[[], float] | None = None) -> None:
        now = self.clock()
        seconds = self._seconds(now, processor)
        own = frame
        while frame is not None and is_recording(frame.f_code.co_filename):
            frame = frame.f_back
        if own is not frame and frame is not None and frame.f_code.co_filename == UNSEEN:
            self._last = now  # what a hook does for the recording; a callback of the collector's is not that
            return
        stack: list[int] = []
        codes = self._codes
        while frame is not None and len(stack) < 2 * DEEPEST:
            code = frame.f_code
            codes[id(code)] = code
            stack += (id(code), frame.f_lasti)
            frame = frame.f_back
        key = tuple(stack)
        if self.watch.late_from:
            self.late[key] = self.late.get(key, 0.0) + seconds
        else:
            self.fresh.append((now, seconds, key))
        self._last = now
        self.looks += 1
        self.cost += self.clock() - now

    def _seconds(self, now: float, processor: Callable[[], float] | None) -> float:
        seconds = now - max(self._last, self.watch.began)
        if processor is None:
            return seconds
        before, self._computed = self._computed, processor()
        computed = self._computed - before if before is not None else 0.0
        return min(seconds, max(MOST_INTERVALS * self.interval, computed))

    def charge(self, phase: str, end: float, note: Any) -> None:
        """A stretch that ended at `end` was `phase`: so were the looks taken in it."""
        fresh = self.fresh
        while fresh and fresh[0][0] <= end:
            _, seconds, stack = fresh.popleft()
            key = (phase, self.watch.attribution.part, stack)
            self.charged[key] = self.charged.get(key, 0.0) + seconds

    def steady(self) -> None:
        self._before = dict(self.charged)

    def add_to(self, trace: dict[str, Any]) -> None:
        """Waiting becomes a phase of its own, in the lines and in the whole."""
        told = after(self.charged, self._before) if self.watch.told_from is not None else self.charged
        seen = {
            (phase, part, self._frames(stack)): seconds for (phase, part, stack), seconds in told.items() if seconds > 0
        }
        charged = fit_to_phases(seen, trace["phases"])
        charged = split_recording(charged, trace["phases"], trace["processor"], trace["update_parts"], self.places)
        trace["counts"]["waiting_seconds"] = waiting_seconds(charged)
        charged = split_waiting(charged, trace["phases"], trace["processor"], trace["update_parts"])
        trace["lines"] = line_costs(charged, self.places)
        trace["beneath"] = lines_beneath(charged, self.places)
        trace["stacks"] = stack_costs(charged, self.places)
        trace["loops"], sources = loops_around(charged, self.places)
        trace.setdefault("sources", {}).update(sources)
        late = {(OTHER, "", self._frames(stack)): seconds for stack, seconds in self.late.items()}
        trace["late"] = stack_costs(late, self.places)
        trace["counts"]["late_seconds"] = sum(late.values())
        trace["notes"] += self._notes()

    def _frames(self, stack: tuple[int, ...]) -> Stack:
        return tuple((self._codes[code], place) for code, place in zip(stack[::2], stack[1::2]))

    def _notes(self) -> list[str]:
        if not self.watch.begun:
            return []
        watch = self.watch
        share = (watch.attribution.recording + self.cost) / max(1e-9, watch.ended - watch.began)
        mark = watch.told_from
        seen = f"{watch.events} events, {self.looks} samples"
        how = "the alarm signal" if self.by_signal else "a thread, which sees only where the interpreter lock is free"
        every = f"every {1000 * self.interval:g} ms"
        notes = [
            f"recording took {100 * share:.1f} % of the time ({seen}), which is not in the figures",
            f"lines sampled by {how} {every}; native time is charged to the line that called",
        ]
        if mark is not None:
            notes.append(f"the first {mark.past.totals['env_steps']:,} env steps, with the first updates, are left out")
        if self.by_signal and self.alarm.displaced:
            notes.append("the script uses the alarm signal itself: from then on lines were sampled by a thread")
        return notes
