"""No test of the dashboard touches the user's own cache."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str | None]:
    """Yields where caches lay before: a test that trains finds its kernels there."""
    before = os.environ.get("XDG_CACHE_HOME")
    patch = pytest.MonkeyPatch()
    patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    yield before
    patch.undo()
