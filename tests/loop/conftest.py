"""Runs that several tests of this folder compare with."""

from __future__ import annotations

import pytest

from tests.loop.small_runs import WholeRuns


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> WholeRuns:
    return WholeRuns(tmp_path_factory.mktemp("whole"))
