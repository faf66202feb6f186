"""One case from start to end: equality first, and no speed for a case that fails it."""

from __future__ import annotations

import time
from typing import Any

from hotloop.prove import memory, speed
from hotloop.prove.case import Built, Case
from hotloop.prove.table import Cost, Row

GROWTH_SHARE = 0.5
"""Of the time that a case's own comparison gets."""


def prove(case: Case, seconds: float, clock: speed.Clock = time.process_time) -> Row:
    built = case.build()
    equality = built.check()
    if case.kind == "exact" and not equality.within(case.tolerance):
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
