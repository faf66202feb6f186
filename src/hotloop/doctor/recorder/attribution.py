"""Which phase each stretch of loop time belongs to, worked out from the order of what was seen.

A stretch is either an event (an env call, a forward, a backward, ...) or the gap between two. What a forward or a gap
was for is known only later: forwards that lead to a backward learn, forwards that lead to an env call act. So stretches
wait in order until the next backward, optimiser step or env call tells, then are charged once each: the phases sum to
the time from the first env call to the end. The first update of a real program is charged to start-up: PyTorch sets
itself up in it, for a second or so that would pass for the loop's own in a short recording.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import TYPE_CHECKING, Any, NamedTuple

from . import order as trace

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

if TYPE_CHECKING:
    Sink = Callable[[str, float, Any], None]
    """Told (phase, end of the stretch, what the watch collected during it) in order of time."""


COUNTED = (
    *("act_forwards", "act_forwards_with_grad", "act_rows", "update_forwards", "backwards"),
    *("updates", "optimiser_steps", "optimisers", "batch_size"),
)


class Meaning(NamedTuple):
    """What a word of events means: for each gap and event in turn its phase and its part of the update."""

    phases: list[tuple[str, str]]
    acting: int
    """How many of its forwards act, from the first."""
    last: str
    """The event that the next gap follows."""


class Attribution:
    """Charges stretches to phases; counts what they were."""

    def __init__(self, start: float, sink: Sink | None = None, fresh: Sized = (True,)) -> None:
        self.mark = start
        self.phases: dict[str, float] = {}
        self.parts: dict[str, float] = {}
        self.recording = 0.0
        """Seconds that were the doctor's own."""
        self.processor: dict[str, float] = {}
        """Processor seconds by phase, where events come with them."""
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
        self._sink, self._fresh = sink, fresh
        """The sink is told only while `fresh` holds something."""
        self._word = ""
        self._starts: list[float] = []
        self._ends: list[float] = []
        self._notes: list[Any] = []
        self._forwards: list[tuple[int, bool, int]] = []
        self._spent: list[float] = []
        self._round: set[int] = set()
        """Optimisers that have stepped in the present update."""
        self._optimisers: set[int] = set()
        self._previous = ""
        self._acts_late = self._learned = False
        """Whether forwards were ever seen between an optimiser step and the env call; whether this turn has learned."""
        self._meanings: dict[tuple[str, str, bool, int], Meaning] = {}

    def event(
        self,
        kind: str,
        start: float,
        end: float,
        notes: tuple[Any, Any] | None = None,
        forward: tuple[int, bool, int] | None = None,
        resumed: float | None = None,
        spent: tuple[float, float] | None = None,
    ) -> None:
        """Something seen from `start` to `end`; the time since the last event is a gap.

        `forward` is (rows, with gradients, module), its rows below zero where it is no forward of a network; of an
        optimiser's step its last is the optimiser. `resumed` is when the script ran on after the last event: what lies
        between was the recording's own. `spent` are processor seconds of the gap and of the event.
        """
        ends = self._ends
        if resumed is None or resumed < self.mark:
            resumed = self.mark
        self.recording += resumed - self.mark
        start = start if start > resumed else resumed
        self._starts += (resumed, start)
        ends += (start, end)
        self.mark = end
        self._word += kind
        if kind == FORWARD:
            self._forwards.append(forward or (0, False, 0))
        if notes is not None:
            self._notes += notes
        if spent is not None:
            self._spent += spent
        if kind in LEARNING:
            self._learned = True
            self._resolve(True)
            self._count_learning(kind, forward)
            self.setting_up = self.setting_up and kind == BACKWARD
        elif kind == ENV:
            self._resolve(False)
            self._round.clear()
            self.bursts += self._learned
            self._learned = False
        elif len(ends) > WAITING_AT_MOST:
            self._resolve(False)

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

    def finish(self, end: float, note: Any = None, resumed: float = 0.0) -> None:
        """The rest of the time, to `end`."""
        self._resolve(False)
        resumed = max(self.mark, resumed)
        self.recording += resumed - self.mark
        self.phases[trace.OTHER] = self.phases.get(trace.OTHER, 0.0) + max(0.0, end - resumed)
        self.mark = max(end, self.mark)
        if self._sink is not None:
            self._sink(trace.OTHER, self.mark, note)

    def _resolve(self, learning: bool) -> None:
        meaning = self._meaning(learning)
        phases, parts = self.phases, self.parts
        for (phase, part), start, end in zip(meaning.phases, self._starts, self._ends):
            phases[phase] += end - start
            if part and phase == trace.UPDATE:
                parts[part] += end - start
        if self._spent:
            self._charge_processor(meaning)
        if self._sink is not None and self._fresh:
            self._tell(meaning)
        if self._forwards:
            self._count_forwards(meaning, learning)
            self._forwards.clear()
        self._previous, self._word = meaning.last, ""
        self._starts.clear()
        self._ends.clear()
        self._notes.clear()
        self._spent.clear()

    def _charge_processor(self, meaning: Meaning) -> None:
        processor = self.processor
        for (phase, _), seconds in zip(meaning.phases, self._spent):
            processor[phase] = processor.get(phase, 0.0) + seconds

    def _tell(self, meaning: Meaning) -> None:
        notes = self._notes or [None] * len(self._ends)
        for (phase, part), end, note in zip(meaning.phases, self._ends, notes):
            self.part = part
            self._sink(phase, end, note)  # type: ignore[misc]
        self.part = ""

    def _meaning(self, learning: bool) -> Meaning:
        acting = self._leading_acts() if learning else len(self._forwards)
        key = (self._previous, self._word, learning, acting)
        meaning = self._meanings.get(key)
        if meaning is None or self.setting_up:
            meaning = _as_start_up(read_word(*key)) if self.setting_up else read_word(*key)
            for phase, part in meaning.phases:
                self.phases.setdefault(phase, 0.0)
                if part and phase == trace.UPDATE:
                    self.parts.setdefault(part, 0.0)
            if not self.setting_up and len(self._word) <= LONGEST_KEPT and len(self._meanings) < MOST_KEPT:
                self._meanings[key] = meaning
        return meaning

    def _leading_acts(self) -> int:
        """How many forwards at the head chose the next action: in loops that act, learn and then step the env."""
        networks = [place for place, one in enumerate(self._forwards) if one[0] >= 0]
        if self._acts_late or self.bursts < 2 or len(networks) < 2 or self._previous not in ("", ENV, RESET, STORE):
            return 0
        first, last = (self._forwards[networks[end]][0] for end in (0, -1))
        return networks[1] if first == self.envs_at_once != last else 0

    def _count_forwards(self, meaning: Meaning, learning: bool) -> None:
        counts = self.counts
        for place, (rows, grad, module) in enumerate(self._forwards):
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
    phases: list[tuple[str, str]] = []
    acts_left = acting
    for place, kind in enumerate(word):
        following = _following(word[place:], learning)
        phases.append(_stretch(gap_phase(previous, following, learning and acts_left <= 0), ""))
        if kind == DRAW:
            if learning and previous in (*FRESH, OPTIMISER, BACKWARD):
                previous = DRAW
            phases.append(_stretch(gap_phase(previous, _following(word[place + 1 :], learning), learning), ""))
        elif kind == FORWARD:
            phases.append(_stretch(trace.ACT if acts_left > 0 else trace.UPDATE, kind))
            acts_left -= 1
            previous = kind
        else:
            phases.append(_stretch(FIXED[kind], kind))
            previous = previous if kind in SEEN_THROUGH else kind
    return Meaning(phases, acting, previous)


def _as_start_up(meaning: Meaning) -> Meaning:
    phases = [(trace.START_UP, "") if phase == trace.UPDATE else (phase, part) for phase, part in meaning.phases]
    return meaning._replace(phases=phases)


def _stretch(phase: str, kind: str) -> tuple[str, str]:
    """The parts of an update; and a forward that acts."""
    if phase == trace.UPDATE:
        return phase, PARTS.get(kind, "rest")
    return phase, PARTS[kind] if kind == FORWARD else ""


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
