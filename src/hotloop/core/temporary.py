"""Folders for the time of a verb, and the removal of those whose owner was killed.

The owner holds a lock on its folder, which the kernel drops when it ends, however it ends: unlike a process number it
cannot become another's, and it means the same in every container that shares the temporary folder. Whoever gets the
lock removes the folder. `SUFFIX` marks those that are locked from their beginning; no other is touched.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX, SUFFIX = "hotloop-", "-owned"
RAYS_BASE = "/tmp"
"""Where a cluster's folder lies if the temporary folder's own name is too long for its sockets."""
_WHOLE_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class TemporaryFolder:
    """`with TemporaryFolder("doctor") as folder:`, or `path` until `close()`; for us alone (mode 0700)."""

    def __init__(self, what: str, base: str | Path | None = None) -> None:
        self._lock = -1
        while self._lock < 0:  # somebody may take an unlocked one for a leftover
            self.path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{what}-", suffix=SUFFIX, dir=base))
            self._lock = _lock_of(str(self.path))

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._lock >= 0:
            _remove(str(self.path))
            os.close(self._lock)
            self._lock = -1


def remove_leftovers() -> None:
    """Of verbs that were killed; called as a verb begins."""
    for base in dict.fromkeys((tempfile.gettempdir(), RAYS_BASE)):
        for path in _marked(base):
            lock = _lock_of(path)
            if lock >= 0:
                _remove(path)
                os.close(lock)


def _marked(base: str) -> Iterator[str]:
    with contextlib.suppress(OSError), os.scandir(base) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and entry.name.endswith(SUFFIX):
                yield entry.path


def _lock_of(path: str) -> int:
    """A descriptor of the folder that holds its lock; -1 where it is no folder, not ours, gone, or somebody's at work.
    No link is followed."""
    try:
        descriptor = os.open(path, _WHOLE_FOLDER)
    except OSError:
        return -1
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        found = os.fstat(descriptor)
        if found.st_uid == os.geteuid() and os.path.samestat(found, os.lstat(path)):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return -1


def _remove(path: str) -> None:
    """Also what was copied with a folder that its owner may not write to."""
    for above, folders, _ in os.walk(path):
        for name in folders:
            inner = os.path.join(above, name)
            if not os.path.islink(inner):
                with contextlib.suppress(OSError):
                    os.chmod(inner, 0o700)
    shutil.rmtree(path, ignore_errors=True)
