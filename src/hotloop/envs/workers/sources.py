"""A file of the user's is run once more in every worker; one that was edited meanwhile must not change the envs."""

from __future__ import annotations

import hashlib
from pathlib import Path

from hotloop.core.errors import EnvError

_first_seen: dict[str, str] = {}


def first_digest(env_id: str) -> str:
    """Of the file in `path/to/file.py:Class` as this process saw it first; empty for other ids."""
    path = _file_of(env_id)
    if path is None:
        return ""
    return _first_seen.setdefault(str(path), _digest(path))


def require_unchanged(env_id: str, digest: str) -> None:
    path = _file_of(env_id)
    if path is not None and digest and _digest(path) != digest:
        raise EnvError(
            f"the file of `{env_id}` was changed since this program first made envs of it",
            "start the program anew, or take the change back",
        )


def _file_of(env_id: str) -> Path | None:
    path, _, _ = env_id.rpartition(":")
    return Path(path).expanduser().resolve() if path.endswith(".py") else None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
