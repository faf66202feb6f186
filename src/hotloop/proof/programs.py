"""Two programs as sequences of fingerprints: aligned, and where they first part.

What a program did is noted as env calls (by env and env step, so that single and batched envs compare) and as
parameters after each optimiser step, every value as a fingerprint. Nothing here runs a program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from hotloop.proof.difference import Difference

FIELDS = ("action", "observation", "terminated", "truncated", "reward", "action_mask")
"""Of an env call, in the order in which they are compared: the cause first."""


@dataclass(frozen=True)
class Fingerprint:
    """A value in short: equal digests mean equal bits; the norm and fixed projections say how far apart others are."""

    digest: str
    norm: float = 0.0
    projections: tuple[float, ...] = ()
    shown: str = ""
    """The value itself, where it is short enough to have been kept."""

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

    @classmethod
    def read(cls, word: str) -> Fingerprint:
        """As the recorder writes it: a number, or `#` with a hash and perhaps `~` with its norm and projections."""
        if word.startswith("#"):
            digest, *numbers = word[1:].split("~")
            return cls(digest, float(numbers[0]), tuple(map(float, numbers[1:]))) if numbers else cls(digest)
        try:
            number = float(word)
        except ValueError:
            return cls(word, shown=word)
        if word.lstrip("-").isdigit():
            return cls(word, shown=word)
        return cls(word, abs(number), (number,), word)


Values = Mapping[str, Fingerprint]


class Noted(Mapping[str, Fingerprint]):
    """Values as they were written down, read when they are asked for: of a million lines few ever are."""

    __slots__ = ("names", "text")

    def __init__(self, names: Sequence[str], text: str) -> None:
        self.names, self.text = names, text

    def _table(self) -> dict[str, str]:
        return {name: word for name, word in zip(self.names, self.text.split(), strict=True) if word != "-"}

    def __getitem__(self, name: str) -> Fingerprint:
        return Fingerprint.read(self._table()[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._table())

    def __len__(self) -> int:
        return len(self._table())

    def same_text(self, other: Values) -> bool:
        return isinstance(other, Noted) and self.text == other.text and self.names == other.names


@dataclass(frozen=True, slots=True)
class EnvCall:
    """What one env was given and said at one of its env steps; step 0 is its first reset."""

    env: int
    step: int
    values: Values
    moment: int
    """Its place among everything that the program did."""
    is_reset: bool = False
    ordinal: int = 0
    """Of several resets at one env step."""
    line: str = ""

    @property
    def key(self) -> str:
        """As the recorder names it."""
        return f"R {self.env} {self.step} {self.ordinal}" if self.is_reset else f"E {self.env} {self.step}"


@dataclass(frozen=True, slots=True)
class Update:
    """All parameters after one optimiser step, by name, and the line that made it; number 0: as they were at first."""

    number: int
    values: Values
    moment: int
    line: str = ""
    optimiser: int = 0
    count: int = 1
    """Steps made at once: those before the last were not seen."""
    env_steps: int = 0
    """Made before it."""

    @property
    def key(self) -> str:
        return f"U {self.optimiser} {self.number}"


Event = EnvCall | Update


@dataclass(frozen=True)
class Parameter:
    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Recording:
    env_calls: Sequence[EnvCall] = ()
    updates: Sequence[Update] = ()
    parameters: Mapping[int, Sequence[Parameter]] = field(default_factory=dict)
    """Of each optimiser."""
    limited: bool = False
    """Whether we ended it, not the program."""

    @property
    def env_steps(self) -> int:
        return sum(not call.is_reset for call in self.env_calls)

    def num_updates(self, before: int | None = None) -> int:
        """Made; of those, before that many env steps."""
        return sum(one.count for one in self.updates if one.number and (before is None or one.env_steps < before))


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
    event: Event | None = None
    """Where they part; None where only the counts differ."""
    other: Event | None = None
    """The same in the fast program."""


def judge(plain: Recording, fast: Recording, tolerance: float = 0.0) -> Judgement:
    """The first place, in the order of the plain program, at which the two are not the same within `tolerance`."""
    others = {event.key: event for event in in_order(fast)}
    unseen = set(_not_seen(fast.updates))
    env_steps = made = 0
    largest = 0.0
    for event in in_order(plain):
        other = others.get(event.key)
        if other is None and event.key not in unseen:
            break  # told by the counts
        if other is not None:
            error, name = worst_value(event.values, other.values, tolerance)
            if name is not None:
                found = _difference(event, name, event.values.get(name), other.values.get(name))
                tie = largest > 0 and isinstance(event, EnvCall) and name == "action" and _is_choice(event, other)
                ending: Ending = "rounding" if tie else "different"
                return Judgement(ending, env_steps, made, found, largest, event, other)
            largest = max(largest, error)
        env_steps += isinstance(event, EnvCall) and not event.is_reset
        made += event.count if isinstance(event, Update) and event.number else 0
    return _by_counts(plain, fast, env_steps, made, largest)


def _not_seen(updates: Iterable[Update]) -> Iterator[str]:
    """Keys of those that were made together with a later one."""
    for one in updates:
        yield from (f"U {one.optimiser} {one.number - earlier}" for earlier in range(1, one.count))


def _is_choice(event: EnvCall, other: EnvCall | Update) -> bool:
    """Whether the action is one of a few: a number that drifts does not flip."""
    return not any(one.values["action"].projections for one in (event, other) if "action" in one.values)


def in_order(recording: Recording) -> Iterator[Event]:
    events: list[Event] = [*recording.env_calls, *recording.updates]
    return iter(sorted(events, key=lambda event: event.moment))


def worst_value(plain: Values, fast: Values, tolerance: float) -> tuple[float, str | None]:
    """The largest error of all values, and the name of the first whose error is not allowed."""
    if isinstance(plain, Noted) and plain.same_text(fast):
        return 0.0, None
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


def _difference(event: Event, name: str, plain: Fingerprint | None, fast: Fingerprint | None) -> Difference:
    if isinstance(event, EnvCall):
        when = f"at {'the reset after ' * event.is_reset}env step {event.step} of env {event.env}"
    elif not event.number:
        when = "before the first update"
    else:
        when = f"after update {event.number}" + (f", made by {event.line}" if event.line else "")
    said = ["none" if one is None else one.text() for one in (plain, fast)]
    return Difference(name, "keys" if plain is None or fast is None else "value", said[0], said[1], when=when)


def _by_counts(plain: Recording, fast: Recording, env_steps: int, updates: int, largest: float) -> Judgement:
    """The same as far as both go; one that goes on further, or makes more updates, is another program.

    Of programs that we ended, what each did before the env steps that both made.
    """
    made = plain.env_steps, fast.env_steps
    both = min(made) if plain.limited or fast.limited else None
    counted = {"updates": (plain.num_updates(both), fast.num_updates(both)), "env steps": made}
    shorter = plain if made[0] < made[1] else fast
    if shorter.limited:
        counted["env steps"] = (min(made), min(made))
    for name, (mine, theirs) in counted.items():
        if mine != theirs:
            until = f"the same for {env_steps:,} env steps and {updates:,} updates"
            found = Difference(f"number of {name}", "count", f"{mine:,}", f"{theirs:,}", when=f"({until})")
            return Judgement("different", env_steps, updates, found, largest)
    return Judgement("same", env_steps, updates, None, largest)


def renamed(plain: Recording, fast: Recording) -> tuple[Recording, bool]:
    """The fast program with the plain one's names for its parameters, and whether they had to be matched by order and
    shape; as it is, where they cannot be."""
    names: dict[int, dict[str, str]] = {}
    for number, mine in plain.parameters.items():
        theirs = fast.parameters.get(number, ())
        if Counter(one.name for one in mine) == Counter(one.name for one in theirs):
            continue
        if [one.shape for one in mine] == [one.shape for one in theirs]:
            names[number] = {two.name: one.name for one, two in zip(mine, theirs, strict=True)}
    updates = [replace(one, values=_with_names(one.values, names.get(one.optimiser, {}))) for one in fast.updates]
    return (replace(fast, updates=updates) if names else fast), bool(names)


def _with_names(values: Values, names: Mapping[str, str]) -> Values:
    if isinstance(values, Noted):
        return Noted([names.get(name, name) for name in values.names], values.text)
    return {names.get(name, name): value for name, value in values.items()}
