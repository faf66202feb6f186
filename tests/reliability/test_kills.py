"""Killed at any point, also while a checkpoint is being written, a run that is resumed ends as if nothing had been.

Three kills for each algorithm and kind of env on every `make test`, a hundred in `make slow`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reliability.killing import FAMILIES, Nursery, kill_and_compare, nursery_in


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    with nursery_in(tmp_path_factory.mktemp("nursery")) as started:
        yield started


@pytest.mark.parametrize("family", FAMILIES)
def test_three_kills_leave_no_trace(nursery: Nursery, family: str, tmp_path: Path) -> None:
    done = kill_and_compare(nursery, family, tmp_path, 3)
    print(done)
    assert done["kills"] == 3


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_a_hundred_kills_leave_no_trace(nursery: Nursery, family: str, tmp_path: Path) -> None:
    done = kill_and_compare(nursery, family, tmp_path, 100)
    print(done)
    assert min(done["call"], done["seconds"]) >= 20
