"""Two programs as sequences of fingerprints: aligned, and where they first part.

What a program did is noted as env calls (by env and env step, so that single and batched envs compare) and as
parameters after each optimiser step, every value as a fingerprint. Nothing here runs a program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from hotloop.proof.difference import Difference

FIELDS = ("observation", "action", "terminated", "truncated", "reward", "action_mask")
"""Of an env call, in the order in which they are compared."""


@dataclass(frozen=True)
class Fingerprint:
    """A value in short: equal digests mean equal bits; the norm and fixed projections say how far apart others are."""

    digest: str
    norm: float = 0.0
    projections: tuple[float, ...] = ()
    shown: str = ""
    """The value itself, where a second run kept it."""

    def error(self, other: Fingerprint) -> float:
        """Largest difference of norm or projection, as a share of the norm; infinite where there are digests alone."""
        if self.digest == other.digest:
            return 0.0
        mine, theirs = (self.norm, *self.projections), (other.norm, *other.projections)
        if not self.projections or len(mine) != len(theirs):
            return float("inf")
        largest = max(abs(one - two) for one, two in zip(mine, theirs, strict=True))
        return largest / (abs(self.norm) or 1.0) if largest == largest else float("inf")  # not for NaN

    def text(self) -> str:
        return self.shown or (f"norm {self.norm:.6g}" if self.projections else f"#{self.digest[:8]}")


Values = Mapping[str, Fingerprint]


@dataclass(frozen=True)
class EnvCall:
    """What one env was given and said at one of its env steps; step 0 is its first reset."""

    env: int
    step: int
    values: Values
    moment: int
    """Its place among everything that the program did."""
    is_reset: bool = False


@dataclass(frozen=True)
class Update:
    """All parameters after one optimiser step, by name, and the line that made it."""

    number: int
    values: Values
    moment: int
    line: str = ""


@dataclass(frozen=True)
class Recording:
    env_calls: Sequence[EnvCall] = ()
    updates: Sequence[Update] = ()


Ending = Literal["same", "rounding", "different"]


@dataclass(frozen=True)
class Judgement:
    """`rounding`: near-equal values led to another action, from which on nothing can be compared; not a fault."""

    ending: Ending
    env_steps: int
    """Compared and the same, over all envs."""
    updates: int
    """Compared and the same."""
    difference: Difference | None = None
    largest_error: float = 0.0
    """Of all that was let pass."""
    notes: tuple[str, ...] = field(default=())


def judge(plain: Recording, fast: Recording, tolerance: float = 0.0) -> Judgement:
    """The first place, in the order of the plain program, at which the two are not the same within `tolerance`."""
    calls = {(call.env, call.step, call.is_reset): call for call in fast.env_calls}
    updates = {update.number: update for update in fast.updates}
    env_steps = made = 0
    largest = 0.0
    for event in in_order(plain):
        other: EnvCall | Update | None
        if isinstance(event, EnvCall):
            other = calls.get((event.env, event.step, event.is_reset))
        else:
            other = updates.get(event.number)
        if other is None:
            break  # told by the counts
        error, name = worst_value(event.values, other.values, tolerance)
        if name is not None:
            found = _difference(event, name, event.values.get(name), other.values.get(name))
            by_rounding = largest > 0 and isinstance(event, EnvCall) and name == "action"
            return Judgement("rounding" if by_rounding else "different", env_steps, made, found, largest)
        largest = max(largest, error)
        env_steps += isinstance(event, EnvCall) and not event.is_reset
        made += isinstance(event, Update)
    return _by_counts(plain, fast, env_steps, made, largest)


def in_order(recording: Recording) -> Iterator[EnvCall | Update]:
    events: list[EnvCall | Update] = [*recording.env_calls, *recording.updates]
    return iter(sorted(events, key=lambda event: event.moment))


def worst_value(plain: Values, fast: Values, tolerance: float) -> tuple[float, str | None]:
    """The largest error of all values, and the name of the first whose error is not allowed."""
    names = [*[name for name in FIELDS if name in plain], *[name for name in plain if name not in FIELDS]]
    names += [name for name in fast if name not in plain]
    largest = 0.0
    for name in names:
        mine, theirs = plain.get(name), fast.get(name)
        error = float("inf") if mine is None or theirs is None else mine.error(theirs)
        if error > tolerance:
            return largest, name
        largest = max(largest, error)
    return largest, None


def _difference(event: EnvCall | Update, name: str, plain: Fingerprint | None, fast: Fingerprint | None) -> Difference:
    if isinstance(event, EnvCall):
        when = f"at {'the reset after ' * event.is_reset}env step {event.step} of env {event.env}"
    else:
        when = f"after update {event.number}" + (f", made by {event.line}" if event.line else "")
    said = ["none" if one is None else one.text() for one in (plain, fast)]
    return Difference(name, "keys" if plain is None or fast is None else "value", said[0], said[1], when=when)


def _by_counts(plain: Recording, fast: Recording, env_steps: int, updates: int, largest: float) -> Judgement:
    """The same as far as both go; one that goes on further, or makes more updates, is another program."""
    counted = [
        {"env steps": sum(not call.is_reset for call in one.env_calls), "updates": len(one.updates)}
        for one in (plain, fast)
    ]
    for name in ("updates", "env steps"):
        mine, theirs = counted[0][name], counted[1][name]
        if mine != theirs:
            until = f"the same for {env_steps:,} env steps and {updates:,} updates"
            found = Difference(f"number of {name}", "count", f"{mine:,}", f"{theirs:,}", when=f"({until})")
            return Judgement("different", env_steps, updates, found, largest)
    return Judgement("same", env_steps, updates, None, largest)
