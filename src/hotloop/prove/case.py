"""The noun of this package: one optimisation under proof."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from hotloop.prove.equivalence import Equality

Kind = Literal["exact", "changes-learning"]
Call = Callable[[], Any]


@dataclass(frozen=True)
class Growth:
    """The fast form at two sizes. Cost per unit is flat where `large` takes `units` times as long as `small`."""

    small: Call
    large: Call
    units: float
    start: str
    end: str


@dataclass(frozen=True)
class Built:
    """A case made ready: `check` compares from the same start; `reference` and `fast` do the same work per call."""

    check: Callable[[], Equality]
    reference: Call
    fast: Call
    growth: Callable[[], Growth] | None = None
    brief: tuple[Call, Call] | None = None
    """Shorter forms of both, where a whole call is too long to watch every allocation of."""


@dataclass(frozen=True)
class Case:
    """Family, variant, lane and size make its name; parts a family does not have are empty."""

    family: str
    size: str
    build: Callable[[], Built]
    variant: str = ""
    lane: str = ""
    kind: Kind = "exact"
    tolerance: float = 0.0
    """Largest allowed |fast - reference| / |reference|, per step made; 0: not a bit may differ."""
    is_default: bool = False
    """In the small set that runs when nothing is named."""

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(part for part in (self.family, self.variant, self.lane, self.size) if part)

    @property
    def name(self) -> str:
        return "/".join(self.parts)
