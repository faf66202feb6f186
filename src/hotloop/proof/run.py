"""Our own cases from start to end, equality first, and no speed for a case that fails it.

What came of each case: rows of plain data, and the table a person reads.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from rich.table import Table

from hotloop.core.arithmetic import arithmetic_on
from hotloop.core.verdicts import CHANGES_LEARNING, IDENTICAL, TO_ROUNDING, Keeps
from hotloop.proof import memory, registry, speed
from hotloop.proof.case import Built, Case
from hotloop.proof.equivalence import Equality
from hotloop.proof.memory import Memory
from hotloop.proof.speed import Speed
from hotloop.proof.verdict import Verdict
from hotloop.render.tables import as_rich


@dataclass(frozen=True)
class Cost:
    """What only a case that is equal has."""

    speed: Speed
    reference_memory: Memory
    fast_memory: Memory
    growth: dict[str, Any] | None


@dataclass(frozen=True)
class Row:
    case: Case
    equality: Equality
    cost: Cost | None

    @property
    def equal(self) -> bool | None:
        """None where equality is not promised."""
        return None if self.case.changes_learning else self.equality.within(self.case.tolerance)

    @property
    def verdict(self) -> Keeps | Verdict:
        if self.equal is None:
            return CHANGES_LEARNING
        if not self.equal:
            return "different"
        return TO_ROUNDING if self.equality.max_error else IDENTICAL

    def as_data(self) -> dict[str, Any]:
        """One row of `hotloop prove --json`; what was not measured is null."""
        cost = self.cost
        return {
            "case": self.case.name,
            "kind": self.case.kind,
            "equal": self.equal,
            "verdict": self.verdict,
            "max_error": self.equality.max_error if isfinite(self.equality.max_error) else None,
            "tolerance": self.case.tolerance,
            "speedup": cost and cost.speed.ratio,
            "low": cost and cost.speed.low,
            "high": cost and cost.speed.high,
            "seconds": cost and {"fast": cost.speed.second_seconds, "reference": cost.speed.first_seconds},
            "peak_bytes": cost and _both(cost, "peak_bytes"),
            "allocations": cost and _both(cost, "allocations"),
            "growth": cost and cost.growth,
        }


def _both(cost: Cost, name: str) -> dict[str, int]:
    return {"fast": getattr(cost.fast_memory, name), "reference": getattr(cost.reference_memory, name)}


HEADINGS = ["case", "verdict", "error", "allowed", "plain µs", "fast µs", "speed-up", "95 %"]
HEADINGS += ["peak kB plain | fast", "allocations", "growth"]


def draw(rows: Sequence[Row]) -> Table:
    """For a terminal, cases that are not equal in red."""
    unequal = [number for number, row in enumerate(rows) if row.equal is False]
    return as_rich([HEADINGS, *map(_cells, rows)], left=("verdict", "growth"), red=unequal)


def _cells(row: Row) -> list[str]:
    cells = [row.case.name, row.verdict, f"{row.equality.max_error:.1e}", f"{row.case.tolerance:.0e}"]
    if row.cost is None:
        return [*cells, *["-"] * (len(HEADINGS) - len(cells))]
    speed, growth = row.cost.speed, row.cost.growth
    plain, fast = row.cost.reference_memory, row.cost.fast_memory
    return [
        *cells,
        f"{speed.first_seconds * 1e6:,.1f}",
        f"{speed.second_seconds * 1e6:,.1f}",
        f"{speed.ratio:.2f}x",
        f"{speed.low:.2f}-{speed.high:.2f}",
        f"{plain.peak_bytes / 1000:,.1f} | {fast.peak_bytes / 1000:,.1f}",
        f"{plain.allocations:,} | {fast.allocations:,}",
        f"x{growth['factor']:.2f} from {growth['from']} to {growth['to']}" if growth else "-",
    ]


GROWTH_SHARE = 0.5
"""Of the time that a case's own comparison gets."""


def prove_cases(*names: str, full: bool = False, seconds: float = 1.0) -> list[Row]:
    """Our own cases, family/variant/lane/size, where parts may be left out; without names a small set, or all."""
    chosen = registry.build_registry().select(names, full)
    with arithmetic_on(threads=1):
        return [prove_case(case, seconds) for case in chosen]


def prove_case(case: Case, seconds: float, clock: speed.Clock = time.process_time) -> Row:
    """Equality first; what is not equal is not timed."""
    built = case.build()
    equality = built.check()
    if not case.changes_learning and not equality.within(case.tolerance):
        return Row(case, equality, None)
    return Row(case, equality, _cost(built, seconds, clock))


def _cost(built: Built, seconds: float, clock: speed.Clock) -> Cost:
    plain, fast = built.brief or (built.reference, built.fast)
    return Cost(
        speed=speed.measure(built.reference, built.fast, seconds, clock),
        reference_memory=memory.measure(plain),
        fast_memory=memory.measure(fast),
        growth=_growth(built, seconds * GROWTH_SHARE, clock),
    )


def _growth(built: Built, seconds: float, clock: speed.Clock) -> dict[str, Any] | None:
    """Time per unit at the larger size over that at the smaller: 1 is flat."""
    if built.growth is None:
        return None
    growth = built.growth()
    measured = speed.measure(growth.large, growth.small, seconds, clock)
    return {"factor": measured.ratio / growth.units, "from": growth.start, "to": growth.end}
