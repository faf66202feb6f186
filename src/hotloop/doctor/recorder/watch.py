"""What the hooks report to: it knows whether something is being timed already, counts, asks the passes, and ends the
recording.

An error in any of this is ours, not the script's: it is noted, and the recording ends there.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Sequence
from threading import get_ident
from types import SimpleNamespace
from typing import Any

from .attribution import ENV, OPTIMISER, RESET, Attribution
from .order import RECORDING
from .passes import Faults, Pass, Passes
from .places import unseen
from .results import looks_like_a_step, read_step
from .timeline import Mark, Timeline, Told, after, mark_of

SURE, UNSURE, NOT_AN_ENV = "sure", "unsure", "not an env"
MOST_ENVS = 4_096


class LimitReached(BaseException):
    """Raised in the script when the doctor has seen enough; not an Exception, so that `except Exception` lets it go."""


def raise_limit() -> None:
    raise LimitReached


def _nothing() -> None:
    return None


def weak_reference(one: Any) -> Callable[[], Any]:
    """Asked for it at the end, where it is still there; it is not kept alive for us."""
    try:
        return weakref.ref(one)
    except TypeError:
        return _nothing


class Watch:
    """One per child. Hooks pass straight through while `busy`: inside another hook, before the loop, after the end."""

    def __init__(
        self,
        seconds: float,
        env_steps: int | None,
        clock: Callable[[], float] = time.perf_counter,
        *,
        passes: Sequence[Pass] = (),
        at_limit: Callable[[], None] = raise_limit,
        batch: int = 1,
        steady: tuple[int, int] = (0, 0),
        window: float = 0.0,
        late: float = 0.0,
        processor: Callable[[], float] | None = None,
    ) -> None:
        """Ends `seconds` after the first env call or after so many `env_steps`; `at_limit` ends the script. `batch`
        events are seen before they are attributed. `steady`: after so many updates, or where the second is not 0 after
        so many env steps, the steady state begins, and a `window` of seconds with it, within the `seconds` in all.
        Then it goes on for `late` seconds in which hooks do nothing. `processor` is the clock of the processor time of
        the thread that asks."""
        self.clock, self.faults = clock, Faults()
        self.processor, self._steady, self._window = processor, steady, window
        self.mark: Mark | None = None
        self._late, self.late_from = late, 0.0
        """When the hooks ceased, and only samples are taken; 0 while they work."""
        self.passes = Passes(tuple(passes), self.faults.note)
        for one in passes:
            one.watch = self
        self.busy, self.begun, self.over = True, False, False
        self.thread = 0
        """The thread that stepped the first env; what others do is not timed."""
        self.opened = self.began = self.ended = clock()
        self.env_steps = self.env_calls = self.env_switches = self.episodes = self.events = 0
        self.first_env: Callable[[], Any] = _nothing
        self.envs: dict[int, str] = {}
        """Class of each env whose outermost `step` was called."""
        self.attribution, self.timeline = Attribution(self.opened), Timeline(self.opened)
        self._seconds, self._limit, self.deadline = seconds, env_steps, self.opened
        self._at_limit, self._batch = at_limit, batch
        self._resumed = self.opened
        """When the script ran on after the last event."""
        self._spent = self._entered = 0.0
        """Processor time at the end of the last event, and at the beginning of this one."""
        self._pause = 0.0
        """What the recording itself took after the last event."""
        self._last_env = 0
        self._unsettled: list[tuple[Any, ...]] = []
        self._gap_note: Any = None
        self._next_slice = 1
        self._process = os.getpid()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.disable)

    def __reduce__(self) -> Any:
        """Hooked classes may be sent to worker processes by value: there the hooks do nothing."""
        return SimpleNamespace, (), {"busy": True, "begun": True, "thread": 0}

    def disable(self) -> None:
        """In a process forked from this one."""
        self.busy = self.begun = self.over = True
        self.passes.ask("forked")

    @property
    def in_recorder(self) -> bool:
        """Whether this is the process that records, not one forked from it."""
        return os.getpid() == self._process

    def off_main_thread(self) -> bool:
        return get_ident() != self.thread

    def bound(self, seconds: float, env_steps: int | None = None) -> None:
        """End the recording so long from now."""
        self.deadline = self.clock() + seconds
        self._limit = None if env_steps is None else self.env_steps + env_steps

    def begin(self, start: float) -> None:
        """The first env call: everything before it was start-up."""
        self.begun, self.thread, self.began = True, get_ident(), start
        self._resumed = start
        if self.processor is not None:
            self._spent = self._entered = self.processor()
        skips = self._steady[1] > 0
        self.deadline = start + (self._window if self._window and not skips else self._seconds)
        self.attribution = Attribution(start, self.passes.sink, self.passes.fresh)
        self.attribution.setting_up = True
        self.timeline = Timeline(start)
        self.passes.ask("begin")

    def enter(self) -> float:
        """An event begins: when, by the clock."""
        self.busy = True
        if self.passes.takes_notes:
            try:
                self._gap_note = self.passes.note()
            except Exception as error:
                self.give_up("note", error)
        if self.processor is not None:
            self._entered = self.processor()
        return self.clock()

    def leave(self, kind: str, start: float, forward: tuple[int, bool, int] | None = None, now: float = 0.0) -> None:
        """An event ended: at `now`, where more was done since than to call this."""
        if self.over:
            return
        now = now or self.clock()
        try:
            notes = (self._gap_note, self.passes.note()) if self.passes.takes_notes else None
            spent = None if self.processor is None else self._processor_spent(self.processor())
            self._unsettled.append((kind, start, now, notes, forward, self._resumed, spent))
            if len(self._unsettled) >= self._batch:
                self.settle()
            self.busy = False
            if kind == OPTIMISER and self.passes.on_update:
                self.passes.tell(self.passes.on_update, now)
                self.end_where_due(now)
        except Exception as error:
            self.give_up("leave", error)
        self._resume(now)

    def _processor_spent(self, now: float) -> tuple[float, float]:
        """Of the gap before this event, without what the recording took of it, and of the event."""
        gap, event = self._entered - self._spent - self._pause, now - self._entered
        self._spent = now
        return (gap if gap > 0 else 0.0), event

    def _resume(self, left: float) -> None:
        """The script runs on: the event was left at `left`."""
        self._resumed = self.clock()
        self._pause = self._resumed - left

    def settle(self) -> None:
        """Attribute what was seen: many events at once, since one by one amid the script's work costs more."""
        event = self.attribution.event
        for seen in self._unsettled:
            event(*seen)
        self.events += len(self._unsettled)
        self._unsettled.clear()

    def leave_env(self, start: float, args: tuple[Any, ...], result: Any) -> None:
        """An outermost `step`, called with `args` (the env first), returned `result`; the recording may end here."""
        now = self.clock()
        self.leave(ENV, start, None, now)
        if self.over:
            return
        try:
            self._count(args[0] if args else None, result)
            if self.passes.on_env:
                self.passes.tell(self.passes.on_env, now)
            self.end_where_due(now)
        except Exception as error:
            self.give_up("leave_env", error)
        self._resume(now)

    def leave_reset(self, start: float, args: tuple[Any, ...], result: Any) -> None:
        """An outermost `reset` returned `result`."""
        self.leave(RESET, start)

    def _count(self, env: Any, result: Any) -> None:
        try:
            steps, ended = read_step(result)
        except Exception as error:
            steps, ended = 1, 0
            self.faults.note("what an env's step returned could not be read", error)
        self.env_calls += 1
        self.env_steps += steps
        self.episodes += ended
        self.attribution.envs_at_once = steps
        self.env_switches += id(env) != self._last_env
        self._last_env = id(env)
        if id(env) not in self.envs and len(self.envs) < MOST_ENVS:
            self.envs[id(env)] = f"{type(env).__module__}.{type(env).__qualname__}"
            if self.first_env is _nothing:
                self.first_env = weak_reference(env)
        if self.env_steps >= self._next_slice:
            self.slice()
        if self.mark is None and self._is_settled():
            self._begin_steady()

    def _is_settled(self) -> bool:
        updates, env_steps = self._steady
        if env_steps:
            return self.env_steps >= env_steps
        return 0 < updates <= self.attribution.counts["updates"]

    def _begin_steady(self) -> None:
        """What comes from here on is told, if enough comes."""
        self.slice()
        seen, totals = self.attribution, self.totals()
        self.mark = mark_of(seen.mark, totals, seen, self.timeline.slices)
        spent = {**seen.phases, RECORDING: seen.recording}
        counts = (self.env_steps, self.episodes, seen.counts["updates"])
        self.timeline = Timeline(seen.mark, counts, spent, seen.processor)
        self._next_slice = self.timeline.next_at
        if self._window:
            self.deadline = min(self.clock() + self._window, self.began + self._seconds)
        if self._limit is not None:
            self._limit += self.env_steps
        self.passes.ask("steady")

    @property
    def told_from(self) -> Mark | None:
        """Where what is told begins: the mark, where enough came after it."""
        return self.mark if self.mark is not None and self.mark.leaves_enough(self.totals()) else None

    def end_where_due(self, now: float) -> None:
        if now >= self.deadline or (self._limit is not None and self.env_steps >= self._limit):
            if self._late and not self.late_from:
                self._go_on_late()
            else:
                self._at_limit()

    def _go_on_late(self) -> None:
        """The window is closed; the script runs on, and hooks pass straight through. The guard ends it."""
        self.late_from = self.clock()
        self._close(self.late_from)
        self.busy = True
        self.deadline = self.late_from + self._late

    def try_env(self, verdict: list[str], function: Callable[..., Any], args: Any, keywords: Any) -> Any:
        """The first call of a `step`: whether it is an env's is seen from what it returns.

        Nothing is marked busy meanwhile, so that an agent's `step` keeps what it calls apart.
        """
        calls, known, start = self.env_calls, len(self.envs), self.clock()
        result = function(*args, **keywords)
        try:
            self._judge(verdict, calls, known, start, args, result)
        except Exception as error:
            verdict[0] = NOT_AN_ENV
            self.faults.note("try_env", error)
        return result

    def _judge(self, verdict: list[str], calls: int, known: int, start: float, args: Any, result: Any) -> None:
        if verdict[0] == UNSURE and not looks_like_a_step(result):
            verdict[0] = NOT_AN_ENV
            return
        verdict[0] = SURE
        while len(self.envs) > known:
            self.envs.popitem()  # an env within this one, which will not be outermost again
        if self.env_calls == calls and not self.over:
            if not self.begun:
                self.begin(start)
            self.leave_env(start, args, result)

    def slice(self) -> None:
        self.settle()
        seen = self.attribution
        spent = {**seen.phases, RECORDING: seen.recording}
        counts = (self.env_steps, self.episodes, seen.counts["updates"])
        self.timeline.look(seen.mark, *counts, spent, seen.processor)
        self._next_slice = self.timeline.next_at

    def totals(self) -> dict[str, Any]:
        """What was counted so far: fields of Counts."""
        totals: dict[str, Any] = {"env_steps": self.env_steps, "env_calls": self.env_calls, "episodes": self.episodes}
        totals["env_switches"] = self.env_switches
        return {**totals, **self.attribution.counts, "update_bursts": self.attribution.bursts}

    def told(self) -> Told:
        """What is told in the end, with the recording's own time as a phase."""
        seen, mark = self.attribution, self.told_from
        phases = {**seen.phases, RECORDING: seen.recording} if self.begun else {}
        if mark is None:
            slices = self.timeline.slices
            if self.mark is not None:
                later = self.mark.at - self.began
                slices = self.mark.slices + [one._replace(start_seconds=one.start_seconds + later) for one in slices]
            return Told(
                self.began, self.totals(), phases, dict(seen.parts), seen.processor, seen.learning_modules, slices, []
            )
        totals = {**after(self.totals(), mark.totals), "skipped_env_steps": mark.totals["env_steps"]}
        return Told(
            mark.at,
            totals,
            after(phases, {**mark.phases, RECORDING: mark.recording}),
            after(seen.parts, mark.parts),
            after(seen.processor, mark.processor),
            after(seen.learning_modules, mark.modules),
            self.timeline.slices,
            mark.slices,
        )

    def give_up(self, where: str, error: BaseException) -> None:
        """Our own error: from here on the hooks do nothing, and what was seen so far is what there is."""
        self.faults.note(where, error)
        self.finish()

    def finish(self) -> None:
        """The end of the recording: from here on the hooks do nothing."""
        if self.over:
            return
        self.ended = self.late_from or self.clock()
        self.busy = self.over = True
        if self.begun and not self.late_from:
            self._close(self.ended)
        self.passes.ask("stop")

    def _close(self, end: float) -> None:
        """Attribute what is left, to `end`."""
        try:
            self.settle()
            note = self.passes.note() if self.passes.takes_notes else None
            self.attribution.finish(end, note, self._resumed)
            self.slice()
        except Exception as error:
            self.faults.note("finish", error)


unseen(Watch.try_env)  # it calls the script's own function
