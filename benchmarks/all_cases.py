"""All our cases: as they are measured, and at sizes for tests."""

from __future__ import annotations

import functools
from pathlib import Path

from hotloop.proof.case import Case, makers_of
from hotloop.proof.case_files import PairsAndCases, found_in, has_marks

FOLDER = Path(__file__).parent


@functools.cache
def known() -> PairsAndCases:
    """Whether they can run here or not."""
    return found_in(FOLDER)


def small_cases() -> list[Case]:
    """Those that can run here."""
    known()
    modules = [f"benchmarks.{path.stem}" for path in sorted(FOLDER.glob("*.py")) if has_marks(path)]
    makers = [maker for module in modules for maker in makers_of(module)]
    return [case for maker in makers for case in maker.make(small=True) if not case.unavailable]
