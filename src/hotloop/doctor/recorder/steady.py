"""Where the steady state begins: everything is counted from the start, and what came before the mark is taken off.

The first updates are slow (PyTorch sets itself up, caches are cold), and a warm-up without updates is another loop. A
program that ends too soon after the mark is told whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .attribution import Attribution
    from .timeline import Slice

LEAST_ENV_STEPS, LEAST_UPDATES = 200, 50
"""After the mark: with fewer, the whole is told."""
NOT_SUMS = ("batch_size", "optimisers", "envs")


class Mark(NamedTuple):
    """All totals at the moment when the steady state began."""

    at: float
    totals: dict[str, Any]
    phases: dict[str, float]
    parts: dict[str, float]
    processor: dict[str, float]
    recording: float
    modules: dict[int, int]
    slices: list[Slice]
    """Of the loop before."""

    def leaves_enough(self, totals: Mapping[str, Any]) -> bool:
        """Whether enough came after it to be told without what came before."""
        since = after(totals, self.totals)
        learned = since["updates"] >= LEAST_UPDATES or not self.totals["updates"]
        return bool(since["env_steps"] >= LEAST_ENV_STEPS and learned)


class Told(NamedTuple):
    """What is told of a recording: all of it, or what came after the mark."""

    began: float
    totals: dict[str, Any]
    phases: dict[str, float]
    parts: dict[str, float]
    processor: dict[str, float]
    modules: dict[int, int]
    slices: list[Slice]
    before: list[Slice]


def mark_of(at: float, totals: Mapping[str, Any], seen: Attribution, slices: list[Slice]) -> Mark:
    return Mark(
        at,
        dict(totals),
        dict(seen.phases),
        dict(seen.parts),
        dict(seen.processor),
        seen.recording,
        dict(seen.learning_modules),
        slices,
    )


def after(totals: Mapping[Any, Any], before: Mapping[Any, Any]) -> dict[Any, Any]:
    """What came since; what is no sum stays as it is."""
    return {name: value if name in NOT_SUMS else max(0, value - before.get(name, 0)) for name, value in totals.items()}
