"""Two programs as sequences of fingerprints, to be aligned.

What a program did is noted as env calls (by env and env step, so that single and batched envs compare) and as
parameters after each optimizer step, every value as a fingerprint. Nothing here runs a program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hotloop.doctor.recorder.fingerprints import PROJECTIONS

FIELDS = ("action", "observation", "terminated", "truncated", "reward", "action_mask")
"""Of an env call, in the order in which they are compared: the cause first."""
NUMBERS = 1 + PROJECTIONS
"""That measure a value: its norm and projections."""


@dataclass(frozen=True)
class Fingerprint:
    """A value in short: equal digests mean equal bits; the norm and fixed projections say how far apart others are."""

    digest: str
    norm: float = 0.0
    projections: tuple[float, ...] = ()
    shown: str = ""
    """The value itself, where it is short enough to have been kept."""
    large: tuple[float, ...] = ()
    """Norm and projections of its large numbers (a mask's -1e9), which the others are without."""

    def error(self, other: Fingerprint) -> float:
        """Largest difference of norm or projection, as a share of the norm; infinite where there are digests alone."""
        error = self.distance(other) / (abs(self.norm) or 1.0)
        return error if error == error else float("inf")  # not for NaN

    def distance(self, other: Fingerprint) -> float:
        """The same, in the unit of the value; of large numbers the share that they differ by, times the norm."""
        if self.digest == other.digest:
            return 0.0
        mine, theirs = (self.norm, *self.projections), (other.norm, *other.projections)
        if not self.projections or len(mine) != len(theirs) or len(self.large) != len(other.large):
            return float("inf")
        found = _farthest(mine, theirs)
        if self.large:
            found = max(found, _farthest(self.large, other.large) / abs(self.large[0]) * (abs(self.norm) or 1.0))
        return found if found == found else float("inf")  # not for NaN

    def text(self) -> str:
        return self.shown or (f"norm {self.norm:.6g}" if self.projections else f"#{self.digest[:8]}")

    @classmethod
    def read(cls, word: str) -> Fingerprint:
        """As the recorder writes it: a number, or `#` with a hash and perhaps `~` with its norm and projections."""
        if word.startswith("#"):
            digest, *words = word[1:].split("~")
            numbers = tuple(map(float, words))
            return cls(digest, numbers[0], numbers[1:NUMBERS], "", numbers[NUMBERS:]) if numbers else cls(digest)
        try:
            number = float(word)
        except ValueError:
            return cls(word, shown=word)
        if word.lstrip("-").isdigit():
            return cls(word, shown=word)
        return cls(word, abs(number), (number,), word)


def _farthest(mine: Sequence[float], theirs: Sequence[float]) -> float:
    return max(abs(one - two) for one, two in zip(mine, theirs, strict=True))


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

    def whole(self) -> dict[str, Fingerprint]:
        """All of them, read at once."""
        return {name: Fingerprint.read(word) for name, word in self._table().items()}

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
    """All parameters after one optimizer step, by name, and the line that made it; number 0: as they were at first."""

    number: int
    values: Values
    moment: int
    line: str = ""
    optimizer: int = 0
    count: int = 1
    """Steps made at once: those before the last were not seen."""
    env_steps: int = 0
    """Made before it."""

    @property
    def key(self) -> str:
        return f"U {self.optimizer} {self.number}"


Event = EnvCall | Update


@dataclass(frozen=True)
class Parameter:
    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class ProgramRecording:
    env_calls: Sequence[EnvCall] = ()
    updates: Sequence[Update] = ()
    parameters: Mapping[int, Sequence[Parameter]] = field(default_factory=dict)
    """Of each optimizer."""
    limited: bool = False
    """Whether we ended it, not the program."""

    @property
    def env_steps(self) -> int:
        return sum(not call.is_reset for call in self.env_calls)

    def num_updates(self, before: int | None = None, optimizers: Collection[int] | None = None) -> int:
        """Made; of those, before that many env steps, and by these optimizers."""
        return sum(
            one.count
            for one in self.updates
            if one.number
            and (before is None or one.env_steps < before)
            and (optimizers is None or one.optimizer in optimizers)
        )

    def steps_of_envs(self) -> Counter[int]:
        return Counter(call.env for call in self.env_calls if not call.is_reset)


def made_at_once(updates: Iterable[Update]) -> Iterator[str]:
    """Keys of those that were made together with a later one, and not seen."""
    for one in updates:
        yield from (f"U {one.optimizer} {one.number - earlier}" for earlier in range(1, one.count))


def in_order(recording: ProgramRecording) -> Iterator[Event]:
    events: list[Event] = [*recording.env_calls, *recording.updates]
    return iter(sorted(events, key=lambda event: event.moment))


def whole(values: Values) -> Values:
    return values.whole() if isinstance(values, Noted) else values


def same_bits(plain: Values, fast: Values) -> bool:
    if isinstance(plain, Noted) and plain.same_text(fast):
        return True
    mine, theirs = whole(plain), whole(fast)
    return mine.keys() == theirs.keys() and all(mine[name].digest == theirs[name].digest for name in mine)


def names_in_order(plain: Values, fast: Values) -> list[str]:
    names = [*[name for name in FIELDS if name in plain], *[name for name in plain if name not in FIELDS]]
    return names + [name for name in fast if name not in plain]


def renamed(plain: ProgramRecording, fast: ProgramRecording) -> tuple[ProgramRecording, bool]:
    """The fast program with the plain one's names for its parameters, and whether they had to be matched by order and
    shape; as it is, where they cannot be."""
    names: dict[int, dict[str, str]] = {}
    for number, mine in plain.parameters.items():
        theirs = fast.parameters.get(number, ())
        if Counter(one.name for one in mine) == Counter(one.name for one in theirs):
            continue
        if [one.shape for one in mine] == [one.shape for one in theirs]:
            names[number] = {two.name: one.name for one, two in zip(mine, theirs, strict=True)}
    updates = [replace(one, values=_with_names(one.values, names.get(one.optimizer, {}))) for one in fast.updates]
    return (replace(fast, updates=updates) if names else fast), bool(names)


def _with_names(values: Values, names: Mapping[str, str]) -> Values:
    if isinstance(values, Noted):
        return Noted([names.get(name, name) for name in values.names], values.text)
    return {names.get(name, name): value for name, value in values.items()}
