"""Tries changes on the running program: each by turns with the program as it is, a stretch of env steps each.

First the program warms up, then it is looked at (what it prints, evaluates, stores, where it learns), then each switch
has its share of the time: as it is, changed, changed, as it is, and so on, so that neither side is always the first.
A stretch ends where learning has just been done: each holds whole turns of acting and learning.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .follow import Follower
from .order import IDENTICAL
from .passes import Pass
from .results import read_step

WARM_UPDATES = 5
LOOK_SECONDS, LOOK_BURSTS, MOST_LOOK = 1.0, 3, 0.25
"""How long the program is looked at before anything is tried: at least; turns of acting and learning at least; and at
most, of all the time there is."""
SHORTEST = 0.1
"""Seconds of a stretch: below them the clocks of processor time are too coarse."""
LEAST_PAIRS, MOST_PAIRS = 5, 60
"""Beside the first, which warms up."""
MOST_SHARES = 3.0
"""Shares of the time that a slow program may take of the others' for the least number of pairs."""
ORDER = (False, True, True, False)
WARMING, LOOKING, TRYING, DONE = "warming", "looking", "trying", "done"


class Switch:
    """One change that can be made and taken back while the program runs."""

    name, what, kind = "", "", IDENTICAL
    every = 0
    """Updates of which one is made."""
    may_come_late = False
    """Whether what it changes may be met only after the looking."""

    def __init__(self) -> None:
        self.active = False
        self.seen = 0
        """How often what it changes came: done, or left out."""

    def count(self, trial: Trial) -> int:
        """How often by now."""
        return self.seen

    def look(self, trial: Trial) -> None:
        """The looking is over: what was seen by then."""

    def reason(self, trial: Trial) -> str:
        """Why it does not apply; empty where it does."""
        return ""

    def on(self) -> None:
        self.active = True

    def off(self) -> None:
        self.active = False


class Control(Switch):
    """What the noise of the machine looks like."""

    what = "nothing is changed: how far to trust the others"

    def __init__(self, name: str = "control") -> None:
        super().__init__()
        self.name = name

    def count(self, trial: Trial) -> int:
        return trial.env_calls


class Stretch(NamedTuple):
    env_steps: int
    seconds: float
    processor: float
    seen: int


class Tried:
    """A switch with what was measured of it: pairs of stretches, as it is and changed."""

    def __init__(self, switch: Switch, reason: str = "") -> None:
        self.switch, self.reason = switch, reason
        self.pairs: list[tuple[Stretch, Stretch]] = []

    def as_data(self) -> dict[str, Any]:
        switch = self.switch
        told: dict[str, Any] = {"name": switch.name, "what": switch.what, "kind": switch.kind, "reason": self.reason}
        return {**told, "stretches": [[list(stretch) for stretch in pair] for pair in self.pairs]}


class Trial(Follower):
    """A watch that follows the program and tries switches on it, one after another, in `seconds` of the loop."""

    def __init__(
        self,
        switches: Sequence[Switch],
        passes: Sequence[Pass],
        *,
        lead: float,
        seconds: float,
        learns: bool = True,
        at_limit: Callable[[], None],
        tell: Callable[[str], None] = lambda name: None,
        clock: Callable[[], float] = time.perf_counter,
        processor: Callable[[], float] = time.process_time,
    ) -> None:
        super().__init__(*passes, at_limit=at_limit)
        self.clock, self._process_time = clock, processor
        self._seconds = lead + seconds
        self.switches, self.learns, self._budget, self._tell = list(switches), learns, seconds, tell
        self.state = WARMING
        self.apart = 0
        """Above 0 while the program evaluates: those env steps are none of the loop's."""
        self.updates = self.bursts = 0
        """Updates begun, whether or not they were left out; turns in which there were some."""
        self.since_env = 0
        self.burst_ended = False
        self.tried: list[Tried] = []
        self.whole: Stretch | None = None
        """All that came after the looking."""
        self._began_at = Stretch(0, 0.0, 0.0, 0)
        self._look_began = (0, 0, 0, 0.0)
        """Env calls, updates, turns and time when the looking began."""
        self.updates_per_call = 0.0
        self.has_seen_turns = False
        """Whether the looking met enough turns of acting and learning to tell what learning uses."""
        self._seconds_per_call = self._calls_per_turn = 0.0
        self._calls = self._least_calls = 1
        """Env calls of a stretch: of this switch, and of any."""
        self._in_stretch = 0
        self._first: Stretch | None = None
        self._slot_ends = self._slot_must_end = 0.0
        self._stretches = 0

    def update_begins(self) -> None:
        """Told by who sees the program learn."""
        self.updates += 1
        self.since_env += 1
        self.passes.tell(self.passes.on_update, 0.0)

    def leave_env(self, start: float, args: tuple[Any, ...], result: Any) -> None:
        self.busy = False
        self.last_start = start
        if self.apart or self.over:
            return
        now = self.clock()
        try:
            self.env_calls += 1
            self.env_steps += _steps(result)
            self.burst_ended = self.since_env > 0
            self.bursts += self.burst_ended
            self._in_stretch += 1
            self._advance(now)
            self.since_env = 0
            self.passes.tell(self.passes.on_env, now)
            self.end_where_due(now)
        except Exception as error:
            self.give_up("a trial", error)

    def _advance(self, now: float) -> None:
        """The program has come to its next env call."""
        if self.state == WARMING and (self.updates >= WARM_UPDATES or not self.learns):
            if not self.learns or self.burst_ended:
                self.state, self._look_began = LOOKING, (self.env_calls, self.updates, self.bursts, now)
        elif self.state == LOOKING and self._has_seen_enough(now):
            self._end_looking(now)
        elif self.state == TRYING and self._in_stretch >= self._calls and (self.burst_ended or not self.learns):
            self._end_stretch(now)

    def _has_seen_enough(self, now: float) -> bool:
        spent = now - self._look_began[3]
        self.has_seen_turns = self.bursts - self._look_began[2] >= LOOK_BURSTS or not self.learns
        enough = spent >= LOOK_SECONDS and self.has_seen_turns and (self.burst_ended or not self.learns)
        return enough or not self.switches or spent >= max(LOOK_SECONDS, MOST_LOOK * self._budget)

    def _end_looking(self, now: float) -> None:
        calls = max(1, self.env_calls - self._look_began[0])
        self.updates_per_call = (self.updates - self._look_began[1]) / calls
        self._seconds_per_call = (now - self._look_began[3]) / calls
        self._calls_per_turn = calls / max(1, self.bursts - self._look_began[2]) if self.learns else 1.0
        self._least_calls = max(1, int(SHORTEST / max(1e-9, self._seconds_per_call)))
        self.deadline = min(self.deadline, now + self._budget)
        self._began_at = Stretch(self.env_steps, now, self._process_time(), 0)
        for switch in tuple(self.switches):
            switch.look(self)
            reason = "" if switch.may_come_late else switch.reason(self)
            if reason:  # first of all, so that their time goes to the others
                self.tried.append(Tried(switch, reason))
                self.switches.remove(switch)
        self.state = TRYING if self.tried or self.switches else DONE
        if self.state == TRYING:
            self._next(now)

    def _next(self, now: float) -> None:
        """The next switch that applies; those that do not are told with their reason."""
        while self.switches:
            switch = self.switches.pop(0)
            self._tell(switch.name)
            left = max(0.0, self.deadline - now)
            share = left / (1 + len(self.switches))
            self._calls = self._calls_for(switch)
            reason = switch.reason(self) or self._too_long(min(left, MOST_SHARES * share))
            self.tried.append(Tried(switch, reason))
            if not reason:
                self._slot_ends, self._slot_must_end = now + share, now + MOST_SHARES * share
                self._stretches, self._first = 0, None
                self._in_stretch = 0
                self._begin_stretch()
                return
        self.state = DONE
        self.deadline = 0.0  # nothing is left to try

    def _calls_for(self, switch: Switch) -> int:
        """Env calls of a stretch: long enough, and with a multiple of the updates of which one is made."""
        if switch.every < 2 or not self.updates_per_call:
            return self._least_calls
        updates = max(2 * switch.every, self._least_calls * self.updates_per_call)
        return max(1, round(switch.every * math.ceil(updates / switch.every) / self.updates_per_call))

    def _too_long(self, seconds: float) -> str:
        pair = 2 * self._seconds_per_call * max(self._calls, self._calls_per_turn)
        if (1 + LEAST_PAIRS) * pair <= seconds:
            return ""
        if seconds <= 0.0:
            return "not tried: the time for experiments was over"
        return f"not tried: a pair of stretches takes {pair:.2g} s, and {1 + LEAST_PAIRS} are too long for its time"

    def _begin_stretch(self) -> None:
        switch = self.tried[-1].switch
        (switch.on if ORDER[self._stretches % 4] else switch.off)()
        self._in_stretch = 0
        self._start = (self.clock(), self._process_time(), self.env_steps, switch.count(self))

    def spoil(self) -> None:
        """Something was met that the looking had missed: the stretch is begun anew."""
        if self.state == TRYING and self.tried and not self.tried[-1].reason:
            self._begin_stretch()

    def _end_stretch(self, now: float) -> None:
        tried = self.tried[-1]
        start, processor, env_steps, seen = self._start
        stretch = Stretch(
            self.env_steps - env_steps, now - start, self._process_time() - processor, tried.switch.count(self) - seen
        )
        changed = ORDER[self._stretches % 4]
        self._stretches += 1
        if self._first is None:
            self._first = stretch
        else:
            as_it_is, other = (self._first, stretch) if changed else (stretch, self._first)
            if self._stretches > 2:  # the first pair warms up
                tried.pairs.append((as_it_is, other))
            self._first = None
            self.passes.ask("now_and_then", now)  # before the next stretch's clock starts
            if self._is_enough(tried, now):
                tried.switch.off()
                self._next(self.clock())
                return
        self._begin_stretch()

    def _is_enough(self, tried: Tried, now: float) -> bool:
        if len(tried.pairs) >= MOST_PAIRS or now >= self._slot_must_end:
            return True
        return now >= self._slot_ends and len(tried.pairs) >= LEAST_PAIRS

    def finish(self) -> None:
        if not self.over and self.state in (TRYING, DONE):
            start = self._began_at
            now, processor = self.clock(), self._process_time()
            env_steps = self.env_steps - start.env_steps
            self.whole = Stretch(env_steps, now - start.seconds, processor - start.processor, 0)
        for tried in self.tried[-1:]:
            tried.switch.off()
        super().finish()


class Experiments(Pass):
    """Puts what was tried into the trace."""

    early = True
    watch: Trial

    def add_to(self, trace: dict[str, Any]) -> None:
        watch = self.watch
        untried = [Tried(switch, self._why_untried()) for switch in watch.switches] if watch.begun else []
        trace["trials"] = [one.as_data() for one in [*watch.tried, *untried]]
        trace["whole"] = list(watch.whole) if watch.whole is not None else None

    def _why_untried(self) -> str:
        if self.watch.state == WARMING and self.watch.learns:
            return "not tried: no update was seen in the time for it"
        return "not tried: the program ended before, or the time for experiments was over"


def _steps(result: Any) -> int:
    try:
        return read_step(result)[0]
    except Exception:
        return 1
