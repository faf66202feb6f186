"""Which phase each stretch of loop time belongs to, worked out from the order of what was seen.

A stretch is either an event (an env call, a forward, a backward, ...) or the gap between two. What a forward or a gap
was for is known only later: forwards that lead to a backward learn, forwards that lead to an env call act. So stretches
wait in order until the next backward, optimizer step or env call tells, then are charged once each: the phases sum to
the time from the first env call to the end. The first update of a real program is charged to start-up: PyTorch sets
itself up in it, for a second or so that would pass for the loop's own in a short recording.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from . import order as trace
from .passes import ALWAYS
from .words import BACKWARD, ENV, FORWARD, LEARN, OPTIMISER, RESET, STORE, TELLING, Meaning, as_start_up, read_word

WAITING_AT_MOST = 4_096
LONGEST_KEPT, MOST_KEPT = 64, 4_096
"""Words that are remembered with what they mean."""
NO_FORWARD = (0, False, 0)
NO_FORWARDS: list[tuple[int, bool, int]] = []
KIND = itemgetter(0)
MOST_BEHIND = 16
COUNTED = (
    *("act_forwards", "act_forwards_with_grad", "act_rows", "update_forwards", "backwards"),
    *("updates", "optimiser_steps", "optimisers", "batch_size"),
)

if TYPE_CHECKING:
    from .passes import Fresh

    Sink = Callable[[str, float, Any], None]
    """Told (phase, end of the stretch, what the watch collected during it) in order of time."""


class Account:
    """Seconds of one phase, or of one part of the update; and those of them in which the thread did not compute."""

    __slots__ = ("lost", "part", "phase", "seconds")

    def __init__(self, phase: str, part: str) -> None:
        self.phase, self.part = phase, part
        self.seconds = self.lost = 0.0


class Known(NamedTuple):
    """A word that came before: what it means, and for each event the account of the gap before it and its own."""

    meaning: Meaning
    accounts: list[tuple[Account, Account]]


class Attribution:
    """Charges stretches to phases; counts what they were."""

    def __init__(
        self, start: float, sink: Sink | None = None, fresh: Fresh = ALWAYS, own: tuple[float, float] = (0.0, 0.0)
    ) -> None:
        """The sink is told from the first of `fresh` on, while it holds something. `own` are the seconds that a hook
        of ours adds to the gap before an event, and to the event."""
        self._start = self.mark = start
        self._accounts: dict[tuple[str, str], Account] = {}
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
        self._steps: dict[int, int] = {}
        """By optimizer: the number of the update that its last step was part of."""
        self._stepped = False
        """Whether any has in this turn."""
        self._previous = ""
        self._acts_late = self._learned = False
        """Whether forwards were ever seen between an optimizer step and the env call; whether this turn has learned."""
        self._known: dict[tuple[str, str, bool, int], Known] = {}

    @property
    def phases(self) -> dict[str, float]:
        """Seconds by phase."""
        return self._sums(lambda one: one.phase, lambda one: one.seconds)

    @property
    def parts(self) -> dict[str, float]:
        """Seconds by part of the update."""
        return self._sums(lambda one: one.part, lambda one: one.seconds)

    @property
    def recording(self) -> float:
        """Seconds that were the doctor's own: all that no phase has."""
        return max(0.0, self.mark - self._start - sum(one.seconds for one in self._accounts.values()))

    def processor(self) -> dict[str, float]:
        """Seconds in which the loop's thread computed, by phase and by part of the update."""
        computed = lambda one: one.seconds - one.lost  # noqa: E731
        return {**self._sums(lambda one: one.phase, computed), **self._sums(lambda one: one.part, computed)}

    def _sums(self, name_of: Callable[[Account], str], seconds_of: Callable[[Account], float]) -> dict[str, float]:
        sums: dict[str, float] = {}
        for one in self._accounts.values():
            name = name_of(one)
            if name:
                sums[name] = sums.get(name, 0.0) + seconds_of(one)
        return sums

    def _account(self, phase: str, part: str) -> Account:
        return self._accounts.setdefault((phase, part), Account(phase, part))

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
            self._stepped = False
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
        """There are as many updates as steps of the optimizer that steps most: an actor's that makes two steps after
        every second of the critic's makes none of its own. One that is new takes part in the turn's update, and one
        that has paused for long (networks that learn by turns) catches up."""
        counts = self.counts
        counts["backwards"] += kind != OPTIMISER
        if kind == LEARN:
            counts["updates"] += 1
        elif kind == OPTIMISER:
            counts["optimiser_steps"] += 1
            optimiser, made = detail[2] if detail else 0, counts["updates"]
            last = self._steps.get(optimiser, made - self._stepped)
            self._steps[optimiser] = number = max(last, made - MOST_BEHIND) + 1
            counts["updates"] = max(made, number)
            counts["optimisers"] = len(self._steps)
            self._stepped = True

    def finish(self, end: float, note: Any = None, resumed: float = 0.0, lost: float = 0.0) -> None:
        """The rest of the time, to `end`."""
        self._give_up_waiting()
        other = self._account(trace.OTHER, "")
        other.seconds += max(0.0, end - max(self.mark, resumed))
        other.lost += lost
        self.mark = max(end, self.mark)
        if self._sink is not None:
            self._sink(trace.OTHER, self.mark, note)

    def _resolve(self, seen: list[Any], learning: bool) -> None:
        if not seen:
            return
        word = "".join(map(KIND, seen))
        forwards = [one[3] or NO_FORWARD for one in seen if one[0] == FORWARD] if FORWARD in word else NO_FORWARDS
        meaning, accounts = self._read(word, forwards, learning)
        fresh = self._fresh
        if self._sink is not None and fresh and fresh[0][0] <= seen[-1][2]:
            self._tell(meaning, seen)
        self._charge(accounts, seen)
        if forwards:
            self._count_forwards(forwards, meaning, learning)
        self._previous = meaning.last

    def _charge(self, accounts: list[tuple[Account, Account]], seen: list[Any]) -> None:
        mark = self.mark
        outside, inside = self._own
        for (its, own), (_, start, end, _, resumed, lost, _) in zip(accounts, seen):
            gap = start - (resumed if resumed > mark else mark) - outside
            if gap > 0.0:
                its.seconds += gap
            event = end - start - inside
            if event > 0.0:
                own.seconds += event
            if lost is not None:
                its.lost += max(0.0, min(gap, lost[0]))
                own.lost += max(0.0, min(event, lost[1]))
            mark = end
        self.mark = mark

    def _tell(self, meaning: Meaning, seen: list[Any]) -> None:
        sink: Any = self._sink
        for (before, its_part, phase, part), one in zip(meaning.stretches, seen):
            notes = one[6] or (None, None)
            self.part = its_part
            sink(before, one[1], notes[0])
            self.part = part or ("forward" if one[0] == FORWARD else "")
            sink(phase, one[2], notes[1])
        self.part = ""

    def _read(self, word: str, forwards: list[tuple[int, bool, int]], learning: bool) -> Known:
        acting = len(forwards)
        if learning:
            acting = 0 if self._acts_late or acting < 2 else self._leading_acts(forwards)
        key = (self._previous, word, learning, acting)
        known = self._known.get(key)
        if known is None or self.setting_up:
            meaning = as_start_up(read_word(*key)) if self.setting_up else read_word(*key)
            accounts = [(self._account(*one[:2]), self._account(*one[2:])) for one in meaning.stretches]
            known = Known(meaning, accounts)
            if not self.setting_up and len(word) <= LONGEST_KEPT and len(self._known) < MOST_KEPT:
                self._known[key] = known
        return known

    def _leading_acts(self, forwards: list[tuple[int, bool, int]]) -> int:
        """How many forwards at the head chose the next action: in loops that act, learn and then step the env, where
        none was ever seen between learning and the env's step."""
        if self.bursts < 2 or self._previous not in ("", ENV, RESET, STORE):
            return 0
        networks = [place for place, one in enumerate(forwards) if one[0] >= 0]
        if len(networks) < 2:
            return 0
        first, last = (forwards[networks[end]][0] for end in (0, -1))
        return networks[1] if first == self.envs_at_once != last else 0

    def _count_forwards(self, forwards: list[tuple[int, bool, int]], meaning: Meaning, learning: bool) -> None:
        counts, learned = self.counts, False
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
            if grad or not learned:  # a target network may be asked for fewer: for those that did not end an episode
                counts["batch_size"] = rows
            learned |= grad
            if grad:
                self.learning_modules[module] = self.learning_modules.get(module, 0) + 1
