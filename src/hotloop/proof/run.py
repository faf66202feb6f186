"""Pairs and cases of files from start to end, equality first, and no speed for what fails it."""

from __future__ import annotations

import time
from typing import Any

from hotloop.core.arithmetic import arithmetic_on
from hotloop.core.errors import ArgumentError
from hotloop.proof import case_files, memory, speed
from hotloop.proof.case import Case, Programs
from hotloop.proof.case_rows import CaseRow, Cost
from hotloop.proof.function_pairs import prove_pair
from hotloop.proof.verdict import Proof

GROWTH_SHARE = 0.5
"""Of the time that a case's own comparison gets."""


def prove_files(*what: str, quick: bool = False, seconds: float = 1.0) -> list[CaseRow | Proof]:
    """All pairs (`@hotloop.pair`) and cases (`@hotloop.cases`) of files, of a folder those of all its files;
    `FILE.py::NAME` chooses some, and `quick` the small set of the cases."""
    if not what:
        raise ArgumentError("nothing was named to prove", "give a fast version and `against=`, or files")
    found = case_files.find(what)
    proofs = [prove_pair(pair, seconds) for pair in found.pairs]
    return [*proofs, *[prove_case(case, seconds) for case in found.runnable(quick)]]


def prove_case(case: Case, seconds: float, clock: speed.Clock = time.process_time) -> CaseRow:
    """Equality first; what is not equal is not timed."""
    with arithmetic_on(threads=1):
        programs = case.build()
        equality = programs.check()
        if not case.changes_learning and not equality.within(case.tolerance):
            return CaseRow(case, equality, None)
        return CaseRow(case, equality, _cost(programs, seconds, clock))


def _cost(programs: Programs, seconds: float, clock: speed.Clock) -> Cost:
    plain, fast = programs.brief or (programs.plain, programs.fast)
    return Cost(
        speed=speed.measure(programs.plain, programs.fast, seconds, clock),
        reference_memory=memory.measure(plain),
        fast_memory=memory.measure(fast),
        growth=_growth(programs, seconds * GROWTH_SHARE, clock),
    )


def _growth(programs: Programs, seconds: float, clock: speed.Clock) -> dict[str, Any] | None:
    """Time per unit at the larger size over that at the smaller: 1 is flat."""
    if programs.growth is None:
        return None
    growth = programs.growth()
    measured = speed.measure(growth.large, growth.small, seconds, clock)
    return {"factor": measured.ratio / growth.units, "from": growth.start, "to": growth.end}
