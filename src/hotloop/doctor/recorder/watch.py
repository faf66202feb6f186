"""The course of a recording: when it begins, when the steady state does, what is counted at env calls, and its end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from threading import get_ident
from types import SimpleNamespace
from typing import Any

from .attribution import Attribution
from .events import NEVER, Events
from .order import RECORDING, UPDATES_OF_A_ROLLOUT
from .originals import own_pid
from .passes import Faults, Pass, Passes
from .places import unseen
from .results import looks_like_a_step
from .timeline import Mark, Timeline, Told
from .words import ENV, RESET

SURE, UNSURE, NOT_AN_ENV = "sure", "unsure", "not an env"
NOW_AND_THEN = 1.0
SHORTEST_SLICE = 0.05


class LimitReached(BaseException):
    """Raised in the script when the doctor has seen enough; not an Exception, so that `except Exception` lets it go."""


def raise_limit() -> None:
    raise LimitReached


class Watch(Events):
    """One per child. It asks the passes, and knows none of them by name."""

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
        own: tuple[float, float] = (0.0, 0.0),
        alone_after: float = 0.0,
    ) -> None:
        """Ends `seconds` after the first env call or after so many `env_steps`; `at_limit` ends the script. `batch`
        events are seen before they are attributed. `steady`: after so many updates, or where the second is not 0 after
        so many env steps, the steady state begins, and a `window` of seconds with it, within the `seconds` in all;
        where an optimizer exists all of them are waited for its first updates.
        Where optimizers step for `alone_after` seconds (0: for ever) and no env does, their rounds are the loop.
        Then it goes on for `late` seconds in which hooks do nothing. `processor` is the clock of the processor time of
        the thread that asks; `own` what a hook adds to the gap before an event, and to the event."""
        faults = Faults()
        super().__init__(faults, clock, processor, Passes(tuple(passes), faults.note), batch)
        for one in passes:
            one.watch = self
        self._steady, self._window, self._own = steady, window, own
        self.mark: Mark | None = None
        self._late, self.late_from = late, 0.0
        """When the hooks ceased, and only samples are taken; 0 while they work."""
        self.began = self.ended = self.opened
        self.timeline = Timeline(self.opened)
        self._seconds, self._limit = seconds, NEVER if env_steps is None else env_steps
        self.deadline = self._asked_at = self._due = self.opened
        """When the recording ends; when passes are asked what they do now and then; the first of these."""
        self._at_limit = at_limit
        self._look_at: float = 0
        """Total of env steps at which there is more to do than to count them."""
        self._expects_updates = False
        self._alone_after, self._first_step = alone_after, 0.0
        self.alone = False
        """Whether the loop began without an env step."""
        self.unseen_steps = 0
        """Of optimizers, before any env step or by other threads than the one that steps envs."""
        self._updates = self._turns = 0
        """Updates as last looked at; how often there were new ones at an env call since the steady state began."""
        self._process = own_pid()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.disable)

    def __reduce__(self) -> Any:
        """Hooked classes may be sent to worker processes by value: there the hooks do nothing."""
        return SimpleNamespace, (), {"busy": True, "begun": True, "thread": 0, "unseen_steps": 0}

    def disable(self) -> None:
        """In a process forked from this one."""
        self.busy = self.begun = self.over = True
        self.passes.ask("forked")

    @property
    def in_recorder(self) -> bool:
        """Whether this is the process that records, not one forked from it."""
        return own_pid() == self._process

    def off_main_thread(self) -> bool:
        return get_ident() != self.thread

    def bound(self, seconds: float, env_steps: int | None = None) -> None:
        """End the recording so long from now."""
        self._end_at(self.clock() + seconds)
        self._limit = NEVER if env_steps is None else self.env_steps + env_steps
        self._look_at = 0

    def _end_at(self, deadline: float) -> None:
        self.deadline = deadline
        self._due = min(self._due, deadline)

    def begin(self, start: float) -> None:
        """The first env call: everything before it was start-up."""
        self.thread, self.began = get_ident(), start
        self._resumed = self._left = start
        self._asked_at = self._due = start + NOW_AND_THEN
        if self.processor is not None:
            self._looked = (self.clock(), self.processor())
        waits = self._expects_updates or self._steady[1] > 0
        self._end_at(start + (self._window if self._window and not waits else self._seconds))
        self.attribution = Attribution(start, self.passes.sink, self.passes.fresh, self._own)
        self.attribution.setting_up = True
        self.timeline = Timeline(start, shortest=self._shortest_slice)
        self.begun = True  # last: from here on the guard looks at the deadline
        self.passes.ask("begin")

    def meet_step(self) -> None:
        """An optimizer stepped and no loop has begun. Where no env step has come for long, its
        rounds are the loop from here on: nothing tells its turns, so that all of it is watched for one window."""
        self.unseen_steps += 1
        if not self._alone_after:
            return
        now = self.clock()
        self._first_step = self._first_step or now
        if self.unseen_steps > 1 and now - self._first_step >= self._alone_after:
            self.alone, self.unseen_steps = True, 0
            self.begin(now)
            self._end_at(now + (self._window or self._seconds))
            self.busy = False

    def expect_updates(self) -> None:
        """An optimizer was made: the recording does not end before its first updates, as long as there is time."""
        if self.begun and not self._expects_updates and self.mark is None and not self.late_from:
            self.deadline = max(self.deadline, self.began + self._seconds)
        self._expects_updates = True

    @property
    def _shortest_slice(self) -> float:
        return SHORTEST_SLICE if self._batch > 1 else 0.0

    def leave_env(self, start: float, args: tuple[Any, ...], result: Any) -> None:
        """An outermost `step`, called with `args` (the env first), returned `result`; the recording may end here."""
        now = self.clock()
        self.leave(ENV, start, None, now)
        if self.over:
            return
        try:
            self.count_call(args[0] if args else None, result)
            if now >= self._due or self.env_steps >= self._look_at:
                self._look_up(now)
        except Exception as error:
            self.give_up("leave_env", error)
        self._resumed = self.clock()

    def leave_reset(self, start: float, args: tuple[Any, ...], result: Any) -> None:
        """An outermost `reset` returned `result`."""
        self.leave(RESET, start)

    def settle(self) -> None:
        self.attribution.envs_at_once = self.at_once
        super().settle()
        if self.attribution.counts["updates"] != self._updates:
            self._look_at = 0

    def _look_up(self, now: float) -> None:
        """What need not be done at every env call."""
        if self.env_steps >= self.timeline.next_at:
            self._slice_where_due()
        updates = self.attribution.counts["updates"]
        if updates != self._updates:
            self._updates = updates
            self._end_turn()
        if self.mark is None and self._is_settled():
            self._begin_steady()
        if self.passes.on_env:
            self.passes.tell(self.passes.on_env, now)
        if now >= self._asked_at:
            self.passes.ask("now_and_then", now)
            self._asked_at = now + NOW_AND_THEN
        self._due = min(self.deadline, self._asked_at)
        waits = self.passes.on_env or (self.mark is None and self._steady[1])
        self._look_at = 0 if waits else min(self.timeline.next_at, self._limit)
        self.end_where_due(now)

    def _end_turn(self) -> None:
        """The first env call after updates: the recording ends here where it would end amid the next turn of acting and
        learning, since half a turn is not made like a whole one."""
        if self.mark is not None and self._window:
            self._turns += 1
            if self._left + (self._left - self.mark.at) / self._turns > self.deadline:
                self._end_at(self._left)

    def _is_settled(self) -> bool:
        updates, env_steps = self._steady
        if env_steps:
            return self.env_steps >= env_steps
        return 0 < updates <= self.attribution.counts["updates"]

    def _begin_steady(self) -> None:
        """What comes from here on is told, if enough comes."""
        self.slice()
        seen = self.attribution
        self.mark = Mark(seen.mark, self._whole())
        past = self.mark.past
        counts = (self.env_steps, self.episodes, seen.counts["updates"])
        self.timeline = Timeline(seen.mark, counts, past.phases, past.processor, self._shortest_slice)
        if self._window:
            now, end = self.clock(), self.began + self._seconds
            only_turn = seen.bursts <= 1 and counts[2] >= UPDATES_OF_A_ROLLOUT and now + (now - self.began) > end
            self._end_at(now if only_turn else min(now + self._window, end))
        self._limit += self.env_steps
        self.passes.ask("steady")

    @property
    def told_from(self) -> Mark | None:
        """Where what is told begins: the mark, where enough came after it."""
        return self.mark if self.mark is not None and self.mark.leaves_enough(self.totals()) else None

    def end_where_due(self, now: float) -> None:
        if now >= self.deadline or self.env_steps >= self._limit:
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
            self._judge(verdict, calls, known, start, (*args, *keywords.values()), result)
        except Exception as error:
            verdict[0] = NOT_AN_ENV
            self.faults.note("try_env", error)
        return result

    def _judge(self, verdict: list[str], calls: int, known: int, start: float, args: Any, result: Any) -> None:
        if verdict[0] == UNSURE and not looks_like_a_step(result):
            verdict[0] = NOT_AN_ENV
            return
        verdict[0] = SURE
        self.forget_envs(known)  # those within this one, which will not be outermost again
        if self.env_calls == calls and not self.over:
            if not self.begun:
                self.begin(start)
            self.leave_env(start, args, result)

    def _slice_where_due(self) -> None:
        """Slices of the warm-up stay short: they tell when learning began."""
        if not (self.attribution.counts["updates"] and self.timeline.lengthen(self._left)):
            self.slice()

    def slice(self) -> None:
        self.settle()
        seen, whole = self.attribution, self._whole()
        counts = (self.env_steps, self.episodes, seen.counts["updates"])
        self.timeline.look(seen.mark, *counts, whole.phases, whole.processor)

    def totals(self) -> dict[str, Any]:
        """What was counted so far: fields of Counts."""
        totals: dict[str, Any] = {"env_steps": self.env_steps, "env_calls": self.env_calls, "episodes": self.episodes}
        totals["env_switches"] = self.env_switches
        totals["main_env_calls"], totals["main_env_steps"] = self.most_stepped()
        return {**totals, **self.attribution.counts, "update_bursts": self.attribution.bursts}

    def _whole(self) -> Told:
        seen = self.attribution
        phases = {**seen.phases, RECORDING: seen.recording} if self.begun else {}
        processor = seen.processor() if self.processor is not None else {}
        modules = dict(seen.learning_modules)
        return Told(self.began, self.totals(), phases, dict(seen.parts), processor, modules, self.timeline.slices, [])

    def told(self) -> Told:
        """What is told in the end, with the recording's own time as a phase."""
        whole = self._whole()
        if self.told_from is not None:
            return self.told_from.rest_of(whole)
        return self.mark.with_rest(whole) if self.mark is not None else whole

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
            lost = self._lost(end) if self.processor is not None else 0.0
            self.attribution.finish(end, note, self._resumed, lost)
            self.slice()
        except Exception as error:
            self.faults.note("finish", error)


unseen(Watch.try_env)  # it calls the script's own function
