"""One optimization under proof that is more than a function of its inputs: two programs with state, timed call by call.

    @hotloop.cases("loss, gradient and Adam")
    def update_cases():
        return [hotloop.Case("my-update", f"b{rows}", partial(build, rows), tolerance=1e-5) for rows in (32, 256)]

    def build(rows):
        plain, fast = PlainAgent(rows), FastAgent(rows)
        return hotloop.Programs(plain=plain.update, fast=fast.update)

`hotloop prove my_cases.py` builds each case, holds the two programs equal, then times them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from hotloop.core.verdicts import CHANGES_LEARNING, IDENTICAL, TO_ROUNDING, Keeps
from hotloop.proof.equivalence import Equality, compare_answers, worst

Call = Callable[[], Any]


class Playback(Protocol):
    """Our draws, played to a plain program until they end; from then on it draws for itself, at its own cost."""

    def end(self) -> None: ...


@dataclass(frozen=True)
class TwoSizes:
    """The fast form at two sizes. Cost per unit is flat where `large` takes `units` times as long as `small`."""

    small: Call
    large: Call
    units: float
    start: str
    end: str


@dataclass(frozen=True)
class Programs:
    """A case made ready: `plain` and `fast` do the same work per call, from the same start.

    What is timed is what was compared: the first `calls` calls of each of the two callables that the clock gets.
    `compare` is given what `fast` and `plain` answered, and may also look at what has become of the two programs;
    without it the answers are compared, numbers and arrays by their place in dicts and lists. `further` compares the
    same two programs from other starts, or for longer. `tape` ends with the comparison. `growth` makes the fast form at
    two sizes. `brief` are shorter forms of both, where a whole call is too long to watch its every allocation.
    """

    plain: Call
    fast: Call
    compare: Callable[[Any, Any], Equality] = compare_answers
    calls: int = 1
    further: Callable[[], Equality] | None = None
    tape: Playback | None = None
    growth: Callable[[], TwoSizes] | None = None
    brief: tuple[Call, Call] | None = None

    def check(self) -> Equality:
        found = [self.compare(self.fast(), self.plain()) for _ in range(self.calls)]
        if self.tape is not None:
            self.tape.end()
        if self.further is not None:
            found.append(self.further())
        return worst(found)


@dataclass(frozen=True)
class Case:
    """One optimization at one size, for `@hotloop.cases`: how its two programs are built, and what is promised.

    `family`, `variant`, `lane` and `size` make its name; parts that a family does not have are empty. `build` makes the
    two programs. |fast - plain| / |plain| per step made is at most `tolerance`; with 0 not a bit may differ. Where the
    fast one `changes_learning` it is another program, and equality is not promised. `quick` puts it into the small set
    (`hotloop prove --quick`), and `unavailable` says why it cannot run on this machine.
    """

    family: str
    size: str
    build: Callable[[], Programs]
    variant: str = ""
    lane: str = ""
    changes_learning: bool = False
    tolerance: float = 0.0
    quick: bool = False
    unavailable: str = ""

    @property
    def kind(self) -> Keeps:
        """What is promised."""
        if self.changes_learning:
            return CHANGES_LEARNING
        return TO_ROUNDING if self.tolerance else IDENTICAL

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(part for part in (self.family, self.variant, self.lane, self.size) if part)

    @property
    def name(self) -> str:
        return "/".join(self.parts)


class CaseMaker(NamedTuple):
    """A function that makes cases, and what they are about."""

    make: Callable[..., list[Case]]
    about: str


Make = TypeVar("Make", bound=Callable[..., list[Case]])
_makers: dict[str, list[CaseMaker]] = {}
"""By the name of the module that they stand in."""


def cases(about: str) -> Callable[[Make], Make]:
    """Mark a function that makes cases, for `hotloop prove FILE.py`; the function itself is unchanged.

        @hotloop.cases("loss, gradient and Adam")
        def update_cases():
            return [hotloop.Case("my-update", f"b{rows}", partial(build, rows)) for rows in (32, 256)]

    It is called without arguments. `about` stands beside the family's name in `hotloop prove FILE.py --list`.
    """

    def mark(make: Make) -> Make:
        _makers.setdefault(make.__module__, []).append(CaseMaker(make, about))
        return make

    return mark


def makers_of(module: str) -> list[CaseMaker]:
    return _makers.get(module, [])
