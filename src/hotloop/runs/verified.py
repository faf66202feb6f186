"""Which files this process has hashed or written, so that gigabytes that nobody touched are not read again."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from hotloop.runs.files import FileRecord, opened
from hotloop.runs.manifest import compare_hash, damage_named

SETTLED_NS = 50_000_000
"""A file that changed later than this before it was hashed may change once more within one tick of the file system's
clock, and its time would not tell: such a file is hashed again."""


class Verified:
    """Hashes by device and inode, which hard links share; believed while size and time of change stay the same."""

    def __init__(self) -> None:
        self._hashes: dict[tuple[int, int], tuple[int, int, str]] = {}

    def note(self, path: Path, record: FileRecord) -> None:
        """`path` has just been written as `record` says."""
        with suppress(OSError):
            self._remember(os.lstat(path), record, time.time_ns())

    def check(self, path: Path, record: FileRecord) -> None:
        """Raise CheckpointError unless `path` is what `record` says; reads it only where that is not known."""
        with damage_named(path), opened(path) as (descriptor, _):
            status = os.fstat(descriptor)
            if self._knows(status, record):
                return
            now = time.time_ns()
            with os.fdopen(os.dup(descriptor), "rb") as stream:
                compare_hash(hashlib.file_digest(stream, "sha256").hexdigest(), record, path)
            self._remember(status, record, now)

    def forget_all_but(self, paths: Iterable[Path]) -> None:
        kept = {}
        for path in paths:
            with suppress(OSError):
                status = os.lstat(path)
                key = status.st_dev, status.st_ino
                if key in self._hashes:
                    kept[key] = self._hashes[key]
        self._hashes = kept

    def _remember(self, status: os.stat_result, record: FileRecord, now: int) -> None:
        if now - status.st_mtime_ns > SETTLED_NS:
            self._hashes[status.st_dev, status.st_ino] = status.st_size, status.st_mtime_ns, record.sha256

    def _knows(self, status: os.stat_result, record: FileRecord) -> bool:
        found = status.st_size, status.st_mtime_ns, record.sha256
        known = self._hashes.get((status.st_dev, status.st_ino))
        return status.st_size == record.size and known == found
