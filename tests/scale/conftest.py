"""Files of tests that look for what a cluster left on the machine take turns: two of them would see each other's."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module", autouse=True)
def one_cluster_at_a_time(request: pytest.FixtureRequest) -> Iterator[None]:
    if not hasattr(request.module, "left_behind"):
        yield
        return
    with (Path(tempfile.gettempdir()) / "clusters-of-tests.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
