"""Where two programs part, in words: what differs, which line made it, and what was still the same just before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hotloop.proof.difference import Difference
from hotloop.proof.program_judgement import Judgement, same_for
from hotloop.proof.program_rounding import EPS
from hotloop.proof.programs import EnvCall, Fingerprint, ProgramRecording, Update
from hotloop.proof.scales import are_marks
from hotloop.proof.values import shown_value

SLACK = 10.0
"""An answer may be so many tolerances away and still be called the same: it was computed from parameters that may."""
VANISHING = 1e-2
"""Share of the largest gradient."""


def closer(judgement: Judgement, plain: Mapping[str, Any], fast: Mapping[str, Any]) -> Difference:
    """The difference with the values themselves, where a second look kept them."""
    found = judgement.difference
    assert found is not None
    if plain.get("value") is None or fast.get("value") is None or found.kind == "keys":
        return found
    mine, theirs = np.array(plain["value"]), np.array(fast["value"])
    if mine.shape != theirs.shape:
        return replace(found, kind="shape", plain=f"{mine.size} numbers", fast=f"{theirs.size} numbers")
    wrong = ~((mine == theirs) | (np.isnan(mine) & np.isnan(theirs)))
    if not wrong.any() or mine.size < 2:
        return replace(found, largest_error=float(np.abs(mine - theirs).max(initial=0.0)))
    with np.errstate(invalid="ignore"):
        errors = np.where(wrong, np.abs(mine - theirs), 0.0)
    worst = int(np.nanargmax(errors)) if not np.isnan(errors).all() else int(np.argmax(wrong))
    shape = tuple(plain.get("shape") or mine.shape)
    return replace(
        found,
        plain=shown_value(mine[worst].item()),
        fast=shown_value(theirs[worst].item()),
        index=tuple(int(place) for place in np.unravel_index(worst, shape)),
        largest_error=float(errors[worst]),
        differing=int(wrong.sum()),
        total=mine.size,
    )


def sentence(judgement: Judgement, difference: Difference, names: tuple[str, str], clues: Sequence[str]) -> str:
    """`the same until update 412: then ...`"""
    event, other = judgement.event, judgement.other
    if event is None or other is None:
        until = same_for(judgement.env_steps, judgement.updates)
        counted = difference.what.removeprefix("number of ")
        return f"{until}, but {difference.plain} {counted} in {names[0]}, {difference.fast} in {names[1]}"
    parts = [f"{_until(event)}: {_differs(difference, names)}"]
    lines = list(dict.fromkeys([event.line, other.line]))
    if event.line and other.line and names[0] != names[1] and len(lines) > 1:
        parts.append(f"made by {event.line} and {other.line}")
    elif event.line:
        parts.append(f"made by {event.line}")
    return "; ".join([*parts, *clues])


def _until(event: EnvCall | Update) -> str:
    if isinstance(event, EnvCall):
        env = f" of env {event.env}" if event.env else ""
        if not event.is_reset:
            return f"the same until env step {event.step:,}{env}"
        return f"the same until the reset after env step {event.step:,}{env}" if event.step else f"another start{env}"
    if not event.number:
        return "another start"
    return f"the same until update {event.number:,}" + (f" of optimizer {event.optimizer}" if event.optimizer else "")


def _differs(difference: Difference, names: tuple[str, str]) -> str:
    what = f"then `{difference.what}` differs"
    if difference.kind == "keys":
        return f"then only {names[difference.plain == 'none']} has `{difference.what}`"
    if difference.total > 1 and difference.largest_error is not None:
        return f"{what} by {difference.largest_error:.2g}"
    if difference.plain.startswith("#"):  # of arrays only hashes are known
        return what
    return f"{what}: {difference.plain} in {names[0]}, {difference.fast} in {names[1]}"


OTHER_BATCH = "the batch before it was not the same"


class Before:
    """What two close-ups of one event say about what led to it; values that are within `tolerance` are the same."""

    def __init__(
        self, plain: Mapping[str, Any], fast: Mapping[str, Any], tolerance: float, names: tuple[str, str]
    ) -> None:
        self.plain, self.fast, self.tolerance, self.names = plain, fast, tolerance, names

    def clues(self, judgement: Judgement, recordings: tuple[ProgramRecording, ProgramRecording]) -> list[str]:
        event, other = judgement.event, judgement.other
        if isinstance(event, Update) and isinstance(other, Update):
            return [*self._of_update(event, other), *_of_counts(event, other, recordings, self.names)]
        if isinstance(event, EnvCall) and judgement.difference and judgement.difference.what == "action":
            return self._of_action()
        return []

    def _of_update(self, event: Update, other: Update) -> list[str]:
        if not event.number:
            return ["no update was made before"]
        found = [self._of_batch()]
        if found[0] == OTHER_BATCH:
            return found
        settings = self._of_settings()
        if settings:
            found.append(settings)
        losses = self.plain.get("losses"), self.fast.get("losses")
        if losses[0] and losses[1]:
            same = self._near(losses[0][-1], losses[1][-1])
            said = f"{losses[0][-1]:.6g} in {self.names[0]}, {losses[1][-1]:.6g} in {self.names[1]}"
            found.append("the loss was the same" if same else f"the loss was {said}")
        mine, theirs = self.plain.get("gradients", ()), self.fast.get("gradients", ())
        if mine and len(mine) == len(theirs):
            same = all(self._same(one, two) for one, two in zip(mine, theirs, strict=True))
            found.append(f"the gradient was {'the same' if same else 'not the same'}")
        return [clue for clue in found if clue]

    def gradients_differ(self) -> bool:
        """By more than rounding, which may be all that there is of one that vanishes beside the others."""
        mine, theirs = (
            [Fingerprint.read(one) for one in side.get("gradients", ())] for side in (self.plain, self.fast)
        )
        if len(mine) != len(theirs):
            return False
        largest = max((abs(one.norm) for one in (*mine, *theirs)), default=0.0)
        pairs = zip(mine, theirs, strict=True)
        return any(
            one.distance(two) > SLACK * self.tolerance * max(abs(one.norm), VANISHING * largest) for one, two in pairs
        )

    def _of_batch(self) -> str:
        """Of what went into networks since the event before."""
        given = [[one for one in side.get("forwards", ()) if one["parameters"]] for side in (self.plain, self.fast)]
        if not given[0] or not given[1]:
            return ""
        if len(given[0]) != len(given[1]):
            inputs = [{one["given"] for one in side} for side in given]
            return "the batch before it was the same" if inputs[0] == inputs[1] else ""
        for one, two in zip(*given, strict=True):
            if not self._same(one["given"], two["given"]):
                return OTHER_BATCH
        for one, two in zip(*given, strict=True):
            if not self._same(one["answer"], two["answer"]):
                why = "" if self._same(one["parameters"], two["parameters"]) else ": it has other parameters"
                return f"the batch before it was the same, the answer of `{one['module']}` to it was not{why}"
        return "the batch before it was the same"

    def _of_settings(self) -> str:
        mine, theirs = self.plain.get("settings", {}), self.fast.get("settings", {})
        if not mine or not theirs:
            return ""
        other = [name for name in mine if name in theirs and mine[name] != theirs[name]]
        if not other:
            return ""
        name = other[0]
        return f"`{name}` is {mine[name]} in {self.names[0]}, {theirs[name]} in {self.names[1]}"

    def _of_action(self) -> list[str]:
        found = []
        mine, theirs = (
            [one for one in side.get("forwards", ()) if one["parameters"]] for side in (self.plain, self.fast)
        )
        if mine and theirs:
            same = self._same(mine[-1]["answer"], theirs[-1]["answer"])
            found.append(f"the network's answer before it was {'the same' if same else 'not the same'}")
            if not same and not self._same(mine[-1]["parameters"], theirs[-1]["parameters"]):
                found.append("its parameters differ")
        elif mine or theirs:
            asked, not_asked = self.names if mine else self.names[::-1]
            found.append(f"{asked} asked its network, {not_asked} did not")
        drawn = self._drawn_differently()
        if drawn:
            found.append(f"{' and '.join(f'`{one}`' for one in drawn)} had drawn other numbers")
        return found

    def _drawn_differently(self) -> list[str]:
        mine, theirs = self.plain.get("generators", {}), self.fast.get("generators", {})
        return [name for name in mine if name in theirs and mine[name] != theirs[name]]

    def is_near_tie(self, plain_action: int | None, fast_action: int | None) -> bool:
        """Whether rounding alone explains two actions: the networks' answers are nearly the same, no generator has
        drawn another number, and where one action is the best by its answer, the two are as good as equal."""
        if self._drawn_differently():
            return False
        mine, theirs = (
            [one for one in side.get("forwards", ()) if one["parameters"]] for side in (self.plain, self.fast)
        )
        if not mine or not theirs:
            return not mine and not theirs
        one, two = mine[-1]["numbers"], theirs[-1]["numbers"]
        if not one or not two or len(one) != len(two) or plain_action is None or fast_action is None:
            return self._same(mine[-1]["answer"], theirs[-1]["answer"])
        answers = np.array(one), np.array(two)
        legal = ~are_marks(answers[0], EPS)
        if not (legal == ~are_marks(answers[1], EPS)).all() or not legal.any():
            return False
        apart = float(np.abs(answers[0] - answers[1])[legal].max())
        size = float(np.abs(answers[0])[legal].max()) or 1.0
        if not apart <= SLACK * self.tolerance * size:
            return False
        if not 0 <= max(plain_action, fast_action) < len(one):
            return True
        greedy = int(answers[0].argmax()) == plain_action or int(answers[1].argmax()) == fast_action
        gap = abs(float(answers[0][plain_action] - answers[0][fast_action]))
        return not greedy or gap <= 2 * apart + 1e-6 * size

    def _near(self, one: float, two: float) -> bool:
        return one == two or abs(one - two) <= SLACK * self.tolerance * max(abs(one), abs(two))

    def _same(self, one: str, two: str) -> bool:
        return Fingerprint.read(one).error(Fingerprint.read(two)) <= SLACK * self.tolerance


def _of_counts(
    event: Update, other: Update, recordings: tuple[ProgramRecording, ProgramRecording], names: tuple[str, str]
) -> list[str]:
    """When it was made, and how many are made in all."""
    found = []
    if event.env_steps != other.env_steps and event.number:
        found.append(f"it came after {event.env_steps:,} env steps in {names[0]}, {other.env_steps:,} in {names[1]}")
    plain, fast = recordings
    both = min(plain.env_steps, fast.env_steps) if plain.limited or fast.limited else None
    counts = plain.num_updates(both), fast.num_updates(both)
    if counts[0] != counts[1]:
        found.append(f"{counts[0]:,} updates in {names[0]}, {counts[1]:,} in {names[1]}")
    return found
