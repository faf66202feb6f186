"""Which phase each stretch of loop time belongs to, worked out from the order of what was seen.

A stretch is either an event (an env call, a forward, a backward, ...) or the gap between two. What a forward or a gap
was for is known only later: forwards that lead to a backward learn, forwards that lead to an env call act. So stretches
wait in order until the next backward, optimiser step or env call tells, then are charged once each: the phases sum to
the time from the first env call to the end. The first update of a real program is charged to start-up: PyTorch sets
itself up in it, for a second or so that would pass for the loop's own in a short recording.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from . import order as trace
from .passes import ALWAYS

# Letters, since the order of events is looked up as one word: the same few words come again in every turn of a loop.
ENV, RESET, FORWARD, BACKWARD, OPTIMISER, LEARN = "E", "r", "f", "B", "O", "L"
STORE, SAMPLE, DRAW, LOG, SAVE, EVALUATE = "s", "m", "d", "p", "c", "v"
FIXED = {
    ENV: trace.ENV,
    RESET: trace.ENV,
    STORE: trace.STORE_AND_SAMPLE,
    SAMPLE: trace.STORE_AND_SAMPLE,
    LOG: trace.LOG,
    SAVE: trace.CHECKPOINT,
    EVALUATE: trace.EVALUATE,
    BACKWARD: trace.UPDATE,
    OPTIMISER: trace.UPDATE,
    LEARN: trace.UPDATE,
}
PARTS = {FORWARD: "forward", BACKWARD: "backward", OPTIMISER: "optimiser"}
SEEN_THROUGH = (LOG, SAVE, EVALUATE)
"""The gaps on both sides of these are judged as if they were not there."""
LEARNING = (BACKWARD, OPTIMISER, LEARN)
FRESH = (ENV, RESET, STORE, SAMPLE, DRAW, "")
"""After these, a gap that leads to learning prepares its batch."""
WAITING_AT_MOST = 4_096
LONGEST_KEPT, MOST_KEPT = 64, 4_096
"""Words that are remembered with what they mean."""

TELLING = (ENV, *LEARNING)
"""After one of these it is known what the events before it were for."""

if TYPE_CHECKING:
    from .passes import Fresh

    Sink = Callable[[str, float, Any], None]
    """Told (phase, end of the stretch, what the watch collected during it) in order of time."""


COUNTED = (
    *("act_forwards", "act_forwards_with_grad", "act_rows", "update_forwards", "backwards"),
    *("updates", "optimiser_steps", "optimisers", "batch_size"),
)
NO_FORWARD = (0, False, 0)


class Seen(NamedTuple):
    """One event. The watch makes plain tuples of these, which takes a tenth of the time."""

    kind: str
    start: float
    end: float
    forward: tuple[int, bool, int] | None = None
    """(rows, with gradients, module), its rows below zero where it is no forward of a network; of an optimiser's step
    its last is the optimiser."""
    resumed: float = 0.0
    """When the script ran on after the event before, where that was not at once: what lies between was the
    recording's own."""
    lost: tuple[float, float] | None = None
    """Of the gap before it and of the event: seconds in which the thread did not compute."""
    notes: tuple[Any, Any] | None = None
    """What passes collected in both."""


class Meaning(NamedTuple):
    """What a word of events means."""

    stretches: list[tuple[str, str, str, str]]
    """For each event in turn the phase and the part of the update of the gap before it, then its own."""
    acting: int
    """How many of its forwards act, from the first."""
    last: str
    """The event that the next gap follows."""


class Attribution:
    """Charges stretches to phases; counts what they were."""

    def __init__(
        self, start: float, sink: Sink | None = None, fresh: Fresh = ALWAYS, own: tuple[float, float] = (0.0, 0.0)
    ) -> None:
        """The sink is told from the first of `fresh` on, while it holds something. `own` are the seconds that a hook
        of ours adds to the gap before an event, and to the event."""
        self.mark = start
        self.phases: dict[str, float] = {}
        self.parts: dict[str, float] = {}
        self.recording = 0.0
        """Seconds that were the doctor's own."""
        self.lost: dict[str, float] = {}
        """Seconds in which the loop's thread did not compute, by phase and by part of the update."""
        self.counts = dict.fromkeys(COUNTED, 0)
        self.part = ""
        """Of the update: what the sink is being told of."""
        self.learning_modules: dict[int, int] = {}
        """Forwards with gradients in the update, by module."""
        self.envs_at_once = 1
        self.setting_up = False
        """Until the first update is made it counts as start-up: PyTorch sets itself up in it, for a second or so that
        would pass for the loop's own in a short recording."""
        self.bursts = 0
        """Env calls that had learning before them."""
        self._sink, self._fresh, self._own = sink, fresh, own
        self._waiting: list[Any] = []
        """Events that nothing has yet told the meaning of."""
        self._round: set[int] = set()
        """Optimisers that have stepped in the present update."""
        self._optimisers: set[int] = set()
        self._previous = ""
        self._acts_late = self._learned = False
        """Whether forwards were ever seen between an optimiser step and the env call; whether this turn has learned."""
        self._meanings: dict[tuple[str, str, bool, int], Meaning] = {}

    def events(self, seen: list[Any]) -> None:
        """Many at once, each a `Seen` or a plain tuple of its fields; the time between two is a gap."""
        waiting = self._waiting
        tells = [place for place, one in enumerate(seen, len(waiting) + 1) if one[0] in TELLING]
        waiting += seen
        begin = 0
        for end in tells:
            self._turn(waiting[begin:end])
            begin = end
        del waiting[:begin]
        if len(waiting) > WAITING_AT_MOST:
            self._give_up_waiting()

    def _turn(self, seen: list[Any]) -> None:
        """Events up to the one that tells what they were for."""
        kind = seen[-1][0]
        if kind == ENV:
            self._resolve(seen, False)
            self._round.clear()
            self.bursts += self._learned
            self._learned = False
        else:
            self._learned = True
            self._resolve(seen, True)
            self._count_learning(kind, seen[-1][3])
            self.setting_up = self.setting_up and kind == BACKWARD

    def _give_up_waiting(self) -> None:
        some, self._waiting = self._waiting, []
        self._resolve(some, False)

    def _count_learning(self, kind: str, detail: tuple[int, bool, int] | None) -> None:
        """Optimisers that step in turn make one update; one that steps again begins the next."""
        counts = self.counts
        counts["backwards"] += kind != OPTIMISER
        if kind == LEARN:
            counts["updates"] += 1
        elif kind == OPTIMISER:
            counts["optimiser_steps"] += 1
            optimiser = detail[2] if detail else 0
            if not self._round or optimiser in self._round:
                counts["updates"] += 1
                self._round.clear()
            self._round.add(optimiser)
            self._optimisers.add(optimiser)
            counts["optimisers"] = len(self._optimisers)

    def finish(self, end: float, note: Any = None, resumed: float = 0.0, lost: float = 0.0) -> None:
        """The rest of the time, to `end`."""
        self._give_up_waiting()
        resumed = max(self.mark, resumed)
        self.recording += resumed - self.mark
        self.phases[trace.OTHER] = self.phases.get(trace.OTHER, 0.0) + max(0.0, end - resumed)
        self.lost[trace.OTHER] = self.lost.get(trace.OTHER, 0.0) + lost
        self.mark = max(end, self.mark)
        if self._sink is not None:
            self._sink(trace.OTHER, self.mark, note)

    def _resolve(self, seen: list[Any], learning: bool) -> None:
        if not seen:
            return
        word = "".join([one[0] for one in seen])
        forwards = [one[3] or NO_FORWARD for one in seen if one[0] == FORWARD] if FORWARD in word else []
        meaning = self._meaning(word, forwards, learning)
        fresh = self._fresh
        if self._sink is not None and fresh and fresh[0][0] <= seen[-1][2]:
            self._tell(meaning, seen)
        self._charge(meaning, seen)
        if forwards:
            self._count_forwards(forwards, meaning, learning)
        self._previous = meaning.last

    def _charge(self, meaning: Meaning, seen: list[Any]) -> None:
        phases, parts, mark = self.phases, self.parts, self.mark
        outside, inside = self._own
        for (before, its_part, phase, part), (_, start, end, _, resumed, lost, _) in zip(meaning.stretches, seen):
            gap = start - (resumed if resumed > mark else mark) - outside
            if gap < 0.0:
                gap = 0.0
            event = end - start - inside
            if event < 0.0:
                event = 0.0
            phases[before] += gap
            phases[phase] += event
            if its_part:
                parts[its_part] += gap
            if part:
                parts[part] += event
            if lost is not None:
                self._lose(before, its_part, min(gap, lost[0]))
                self._lose(phase, part, min(event, lost[1]))
            self.recording += end - mark - gap - event
            mark = end
        self.mark = mark

    def _lose(self, phase: str, part: str, seconds: float) -> None:
        for name in (phase, part) if part else (phase,):
            self.lost[name] = self.lost.get(name, 0.0) + seconds

    def processor(self) -> dict[str, float]:
        """Seconds in which the loop's thread computed, by phase and by part of the update."""
        spent = {**self.phases, **self.parts}
        return {name: seconds - self.lost.get(name, 0.0) for name, seconds in spent.items()}

    def _tell(self, meaning: Meaning, seen: list[Any]) -> None:
        sink: Any = self._sink
        for (before, its_part, phase, part), one in zip(meaning.stretches, seen):
            notes = one[6] or (None, None)
            self.part = its_part
            sink(before, one[1], notes[0])
            self.part = part or ("forward" if one[0] == FORWARD else "")
            sink(phase, one[2], notes[1])
        self.part = ""

    def _meaning(self, word: str, forwards: list[tuple[int, bool, int]], learning: bool) -> Meaning:
        acting = self._leading_acts(forwards) if learning else len(forwards)
        key = (self._previous, word, learning, acting)
        meaning = self._meanings.get(key)
        if meaning is None or self.setting_up:
            meaning = _as_start_up(read_word(*key)) if self.setting_up else read_word(*key)
            for before, its_part, phase, part in meaning.stretches:
                for name in (before, phase):
                    self.phases.setdefault(name, 0.0)
                for name in (its_part, part):
                    if name:
                        self.parts.setdefault(name, 0.0)
            if not self.setting_up and len(word) <= LONGEST_KEPT and len(self._meanings) < MOST_KEPT:
                self._meanings[key] = meaning
        return meaning

    def _leading_acts(self, forwards: list[tuple[int, bool, int]]) -> int:
        """How many forwards at the head chose the next action: in loops that act, learn and then step the env."""
        if self._acts_late or self.bursts < 2 or len(forwards) < 2 or self._previous not in ("", ENV, RESET, STORE):
            return 0
        networks = [place for place, one in enumerate(forwards) if one[0] >= 0]
        if len(networks) < 2:
            return 0
        first, last = (forwards[networks[end]][0] for end in (0, -1))
        return networks[1] if first == self.envs_at_once != last else 0

    def _count_forwards(self, forwards: list[tuple[int, bool, int]], meaning: Meaning, learning: bool) -> None:
        counts = self.counts
        for place, (rows, grad, module) in enumerate(forwards):
            if rows < 0:
                continue
            if place < meaning.acting:
                counts["act_forwards"] += 1
                counts["act_forwards_with_grad"] += grad
                counts["act_rows"] += rows
                self._acts_late |= self._learned and not learning
                continue
            counts["update_forwards"] += 1
            counts["batch_size"] = rows
            if grad:
                self.learning_modules[module] = self.learning_modules.get(module, 0) + 1


def read_word(previous: str, word: str, learning: bool, acting: int) -> Meaning:
    """The phases of a word of events that came after `previous`; it led to a backward where `learning` says so."""
    stretches: list[tuple[str, str, str, str]] = []
    acts_left = acting
    for place, kind in enumerate(word):
        following = _following(word[place:], learning)
        before = _stretch(gap_phase(previous, following, learning and acts_left <= 0), "")
        if kind == DRAW:
            if learning and previous in (*FRESH, OPTIMISER, BACKWARD):
                previous = DRAW
            event = _stretch(gap_phase(previous, _following(word[place + 1 :], learning), learning), "")
        elif kind == FORWARD:
            event = _stretch(trace.ACT if acts_left > 0 else trace.UPDATE, kind)
            acts_left -= 1
            previous = kind
        else:
            event = _stretch(FIXED[kind], kind)
            previous = previous if kind in SEEN_THROUGH else kind
        stretches.append((*before, *event))
    return Meaning(stretches, acting, previous)


def _as_start_up(meaning: Meaning) -> Meaning:
    def moved(phase: str, part: str) -> tuple[str, str]:
        return (trace.START_UP, "") if phase == trace.UPDATE else (phase, part)

    return meaning._replace(stretches=[(*moved(*one[:2]), *moved(*one[2:])) for one in meaning.stretches])


def _stretch(phase: str, kind: str) -> tuple[str, str]:
    """With the part of the update, where it is one."""
    return phase, PARTS.get(kind, "rest") if phase == trace.UPDATE else ""


def _following(rest: str, learning: bool) -> str:
    """The next event that tells what a gap before it was for."""
    passing = SEEN_THROUGH if learning else (*SEEN_THROUGH, DRAW)
    return next((kind for kind in rest if kind not in passing), "")


def gap_phase(previous: str, following: str, learning: bool) -> str:
    """What the time between two events was for; `learning` says whether it led to a backward."""
    if learning:
        return _gap_before_learning(previous, following)
    if following == FORWARD:
        return {ENV: trace.STORE_AND_SAMPLE, OPTIMISER: trace.OTHER, BACKWARD: trace.OTHER}.get(previous, trace.ACT)
    if following in (STORE, SAMPLE):
        return trace.STORE_AND_SAMPLE if previous in FRESH else trace.OTHER
    if following == ENV:
        return trace.ACT if previous in (FORWARD, STORE, SAMPLE) else trace.OTHER
    return trace.OTHER


def _gap_before_learning(previous: str, following: str) -> str:
    if following in (BACKWARD, OPTIMISER):
        return trace.UPDATE
    return trace.STORE_AND_SAMPLE if previous in FRESH else trace.UPDATE
