"""What the hooks report to: it knows whether something is being timed already, counts, and ends the recording."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sized
from threading import get_ident
from types import SimpleNamespace
from typing import Any

from hotloop.doctor.recorder.attribution import ENV, OPTIMISER, Attribution, Sink
from hotloop.doctor.recorder.results import looks_like_a_step, read_step
from hotloop.doctor.trace import OUTSIDE, RECORDING, Slice

MOST = 200


class Timeline:
    """The loop cut into equal numbers of env steps; when there are too many slices, neighbours are joined, so that a
    long recording costs no more memory than a short one."""

    def __init__(self, start: float) -> None:
        self.every = 1
        self.slices: list[Slice] = []
        self._origin = start
        self._before: tuple[float, int, int, int, dict[str, float]] = (start, 0, 0, 0, {})

    def look(self, now: float, env_steps: int, episodes: int, updates: int, phases: Mapping[str, float]) -> None:
        """Close a slice; all values are totals so far."""
        start, steps_before, episodes_before, updates_before, phases_before = self._before
        if env_steps == steps_before:
            return
        spent = {name: value - phases_before.get(name, 0.0) for name, value in phases.items()}
        outside = sum(spent.pop(name, 0.0) for name in OUTSIDE)
        self.slices.append(
            Slice(
                start_seconds=start - self._origin,
                seconds=now - start - outside,
                env_steps=env_steps - steps_before,
                episodes=episodes - episodes_before,
                updates=updates - updates_before,
                phases={name: value for name, value in spent.items() if value > 0},
            )
        )
        self._before = (now, env_steps, episodes, updates, dict(phases))
        if len(self.slices) >= MOST:
            self.slices = [join(*pair) for pair in zip(self.slices[::2], self.slices[1::2], strict=False)]
            self.every *= 2

    @property
    def next_at(self) -> int:
        """Total of env steps at which the next slice is due."""
        return self._before[1] + self.every


def join(first: Slice, second: Slice) -> Slice:
    names = {*first.phases, *second.phases}
    return Slice(
        start_seconds=first.start_seconds,
        seconds=first.seconds + second.seconds,
        env_steps=first.env_steps + second.env_steps,
        episodes=first.episodes + second.episodes,
        updates=first.updates + second.updates,
        phases={name: first.phases.get(name, 0.0) + second.phases.get(name, 0.0) for name in sorted(names)},
    )


SURE, UNSURE, NOT_AN_ENV = "sure", "unsure", "not an env"


class LimitReached(BaseException):
    """Raised in the script when the doctor has seen enough; not an Exception, so that `except Exception` lets it go."""


class Watch:
    """One per child. Hooks pass straight through while `busy`: inside another hook, before the loop, after the end."""

    def __init__(self, seconds: float, env_steps: int | None, clock: Callable[[], float] = time.perf_counter) -> None:
        self.busy = True
        self.begun = False
        self.over = False
        self.stopping = False
        """Whether the doctor, not the script, has put an end to it."""
        self.thread = 0
        """The thread that stepped the first env; what others do is not timed."""
        self.clock = clock
        self.opened = clock()
        self.seconds, self.limit = seconds, env_steps
        self.env_steps = self.env_calls = self.episodes = self.events = 0
        self.envs: dict[int, str] = {}
        """Class of each env whose outermost `step` was called."""
        self.sink: Sink | None = None
        self.fresh: Sized = (True,)
        """Whether the sink has anything to do."""
        self.notes: Callable[[], Any] | None = None
        """In the counting pass: what was collected since it was last asked."""
        self.on_begin: list[Callable[[], None]] = []
        self.on_env: Callable[[float], None] | None = None
        self.on_update: Callable[[float], None] | None = None
        self.on_limit: Callable[[], None] = lambda: None
        self.began = self.deadline = self.opened
        self.attribution = Attribution(self.opened)
        self.timeline = Timeline(self.opened)
        self.batch = 1
        """Events seen before they are attributed."""
        self.resumed = self.opened
        """When the script ran on after the last event."""
        self._unsettled: list[tuple[Any, ...]] = []
        self._gap_note: Any = None
        self._next_slice = 1
        self._process = os.getpid()
        os.register_at_fork(after_in_child=self.disable)

    def __reduce__(self) -> Any:
        """Hooked classes may be sent to worker processes by value: there the hooks do nothing."""
        return SimpleNamespace, (), {"busy": True, "begun": True, "thread": 0}

    def disable(self) -> None:
        self.busy = self.begun = self.over = True

    @property
    def in_recorder(self) -> bool:
        """Whether this is the process that records, not one forked from it."""
        return os.getpid() == self._process

    def off_main_thread(self) -> bool:
        return get_ident() != self.thread

    def begin(self, start: float) -> None:
        """The first env call: everything before it was start-up."""
        self.begun, self.thread, self.began = True, get_ident(), start
        self.resumed = start
        self.deadline = start + self.seconds
        self.attribution = Attribution(start, self.sink, self.fresh)
        self.attribution.setting_up = True
        self.timeline = Timeline(start)
        for call in self.on_begin:
            call()

    def enter(self) -> float:
        self.busy = True
        if self.notes is not None:
            self._gap_note = self.notes()
        return self.clock()

    def leave(self, kind: str, start: float, forward: tuple[int, bool, int] | None = None, now: float = 0.0) -> None:
        """`now`: when it ended, where more was done since than to call this."""
        if self.over:
            return
        now = now or self.clock()
        notes = None if self.notes is None else (self._gap_note, self.notes())
        self._unsettled.append((kind, start, now, notes, forward, self.resumed))
        if len(self._unsettled) >= self.batch:
            self.settle()
        self.busy = False
        if self.on_update is not None and kind == OPTIMISER:
            self.on_update(now)
        self.resumed = self.clock()

    def settle(self) -> None:
        """Attribute what was seen: many events at once, since one by one amid the script's work costs more."""
        event = self.attribution.event
        for seen in self._unsettled:
            event(*seen)
        self.events += len(self._unsettled)
        self._unsettled.clear()

    def leave_env(self, start: float, env: Any, result: Any) -> None:
        """An outermost `step` returned `result`; the recording may end here."""
        now = self.clock()
        steps, ended = read_step(result)
        self.leave(ENV, start, None, now)
        if self.over:
            return
        self.env_calls += 1
        self.env_steps += steps
        self.episodes += ended
        self.attribution.envs_at_once = steps
        if id(env) not in self.envs and len(self.envs) < 4_096:
            self.envs[id(env)] = f"{type(env).__module__}.{type(env).__qualname__}"
        if self.env_steps >= self._next_slice:
            self.slice()
        if self.on_env is not None:
            self.on_env(now)
        if now >= self.deadline or (self.limit is not None and self.env_steps >= self.limit):
            self.on_limit()
        self.resumed = self.clock()

    def try_env(self, verdict: list[str], function: Callable[..., Any], args: Any, keywords: Any) -> Any:
        """The first call of a `step`: whether it is an env's is seen from what it returns.

        Nothing is marked busy meanwhile, so that an agent's `step` keeps what it calls apart.
        """
        calls, known, start = self.env_calls, len(self.envs), self.clock()
        result = function(*args, **keywords)
        if verdict[0] == UNSURE and not looks_like_a_step(result):
            verdict[0] = NOT_AN_ENV
            return result
        verdict[0] = SURE
        while len(self.envs) > known:
            self.envs.popitem()  # an env within this one, which will not be outermost again
        if self.env_calls == calls and not self.over:
            if not self.begun:
                self.begin(start)
            self.leave_env(start, args[0] if args else None, result)
        return result

    def slice(self) -> None:
        self.settle()
        seen = self.attribution
        spent = {**seen.phases, RECORDING: seen.recording}
        self.timeline.look(seen.mark, self.env_steps, self.episodes, seen.counts["updates"], spent)
        self._next_slice = self.timeline.next_at

    def finish(self) -> None:
        """The end of the recording: from here on the hooks do nothing."""
        if self.over:
            return
        end = self.clock()
        self.busy = self.over = True
        if self.begun:
            self.settle()
            self.attribution.finish(end, None if self.notes is None else self.notes(), self.resumed)
            self.slice()
        self.ended = end
