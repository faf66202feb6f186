"""`hotloop.prove`: pairs and cases from start to end, equality first, and no speed for what fails it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, overload

from hotloop.core.errors import ArgumentError
from hotloop.loop.machine import arithmetic_on
from hotloop.proof import case_files, memory, speed
from hotloop.proof.case import Case, Programs
from hotloop.proof.case_rows import CaseRow, Cost
from hotloop.proof.function_pairs import SIZES, Pair, prove_pair
from hotloop.proof.verdict import Proof

GROWTH_SHARE = 0.5
"""Of the time that a case's own comparison gets."""


@overload
def prove(*what: str, quick: bool = False, seconds: float = 1.0) -> list[CaseRow | Proof]: ...
@overload
def prove(
    plain: Callable[..., Any],
    fast: Callable[..., Any],
    inputs: Any,
    /,
    *,
    tolerance: float = 1e-6,
    gradients: bool = True,
    made: bool = True,
    sizes: tuple[int, ...] = SIZES,
    seconds: float = 1.0,
) -> Proof: ...
def prove(
    *what: Any,
    quick: bool = False,
    tolerance: float = 1e-6,
    gradients: bool = True,
    made: bool = True,
    sizes: tuple[int, ...] = SIZES,
    seconds: float = 1.0,
    **inputs: Any,
) -> list[CaseRow | Proof] | Proof:
    """Hold a fast program equal to a plain one, then time both by turns on one thread: two functions, or files of them.

        proof = hotloop.prove(plain_returns, fast_returns, [(rewards, 0.99)])
        print(proof.headline())  # identical for ..., or the first difference and the smallest input that shows it

        for found in hotloop.prove("my_pairs.py", "benchmarks::dqn-update/native"):
            print(found.name, found.verdict, found.cost.speed.ratio if found.cost else "not timed")

    **Two functions and their inputs.** An input is a tuple of arguments, a dict of named ones, or the only argument; a
    list holds several inputs; a function makes one of each of `sizes`. Compared are values, gradients (unless
    `gradients` is false), dtypes, shapes, containers, what raises and what becomes of the inputs, on these inputs and
    (unless `made` is false) on ones made from them: rows permuted, repeated, removed, ties. A number may differ by
    `tolerance` times its size, or that of its row or column; with 0 not at all. Where nothing differs,
    both are timed for `seconds`.

    **Files** have pairs (`@hotloop.pair`), cases (`@hotloop.cases`) or both, and all of them are proved, in a folder
    those of all its files; `FILE.py::NAME` chooses some, and `quick` the small set of the cases. `as_data()` of an
    answer is what `hotloop prove --json` prints of it.
    """
    if inputs.keys() - {"inputs"}:
        raise ArgumentError(f"`prove` has no argument `{next(iter(inputs))}`", "`help(hotloop.prove)` explains")
    what = (*what, *inputs.values())
    if what and not all(isinstance(one, str) for one in what):
        if len(what) != 3:
            raise ArgumentError(
                f"`prove` was given {len(what)} things", "give two functions and their inputs, or files"
            )
        return prove_pair(Pair(what[0], what[1], what[2], tolerance, gradients, made, sizes), seconds)
    if not what:
        raise ArgumentError("nothing was named to prove", "give two functions and their inputs, or files")
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
