"""What a word of events means: the phase of each event and of the gap before it, told from their order alone."""

from __future__ import annotations

from typing import Any, NamedTuple

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
TELLING = (ENV, *LEARNING)
"""After one of these it is known what the events before it were for."""


class Seen(NamedTuple):
    """One event. The watch makes plain tuples of these, which takes a tenth of the time."""

    kind: str
    start: float
    end: float
    forward: tuple[int, bool, int] | None = None
    """(rows, with gradients, module), its rows below zero where it is no forward of a network; of an optimizer's step
    its last is the optimizer."""
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


def as_start_up(meaning: Meaning) -> Meaning:
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
