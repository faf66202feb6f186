"""The version of everything a run writes; raised when an older reader would misunderstand a newer file."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

SCHEMA = 1


def hotloop_version() -> str:
    """Recorded beside the schema, so that a refusal can name the version that would read the file."""
    try:
        return version("hotloop")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "unknown"
