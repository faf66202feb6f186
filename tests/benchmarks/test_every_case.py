"""Every case of `benchmarks/`, at small sizes and without a clock: fast and plain must compute the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from benchmarks.all_cases import known, small_cases
from hotloop.proof.case import Case, Programs

CASES = small_cases()


@pytest.fixture(autouse=True)
def _as_in_prove():
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    yield
    torch.set_flush_denormal(False)


def _parameters() -> list[object]:
    """Compiling takes many seconds for each case: one of them always, the rest with the slow tests."""
    quick = next((case.name for case in CASES if case.lane == "compiled" and case.family == "dqn-update"), "")
    return [
        pytest.param(
            case,
            id=case.name,
            marks=pytest.mark.slow if case.lane == "compiled" and case.name != quick else (),
        )
        for case in CASES
    ]


@pytest.mark.parametrize("case", _parameters())
def test_fast_and_plain_compute_the_same(case: Case):
    equality = case.build().check()
    if not case.changes_learning:
        assert equality.max_error <= case.tolerance, equality.where
    else:
        assert equality.max_error > 0, "a case that changes nothing should be exact"


def test_every_family_has_cases():
    assert {case.family for case in CASES} == {case.family for case in known().cases}


def test_case_names_are_unique():
    names = [case.name for case in known().cases]
    assert len(names) == len(set(names))


def notices_nothing_done(built: Programs, tolerance: float) -> bool:
    """Whether the comparison looks at what the timed call did, and not at something made beside it."""
    idle = replace(built, fast=lambda: None, further=None, tape=None)
    try:
        return idle.check().max_error > tolerance
    except (AttributeError, TypeError, ValueError):  # an answer that is none
        return True


REPEATABLE = [case for case in CASES if case.lane != "compiled" and case.family != "loop-cartpole"]


@pytest.mark.parametrize("case", REPEATABLE, ids=lambda case: case.name)
def test_a_fast_form_that_does_nothing_is_noticed_and_both_can_be_called_again_and_again(case: Case):
    built = case.build()
    if not case.changes_learning:
        assert notices_nothing_done(built, case.tolerance)
    for call in (built.plain, built.fast):
        for _ in range(3):
            call()
