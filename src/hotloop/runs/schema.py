"""The version of everything a run writes; raised when an older reader would misunderstand a newer file."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

SCHEMA = 1

CHECKPOINT_SCHEMA = 2
"""Of a checkpoint's manifest. 2: the replay lies in segments that checkpoints share (1: in one file of its own)."""
READABLE_CHECKPOINTS = (1, 2)


def hotloop_version() -> str:
    """Recorded beside the schema, so that a refusal can name the version that would read the file."""
    try:
        return version("hotloop")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "unknown"
