"""Arrays in segments for the tests of checkpoints, and what a disk that fails looks like."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

PIECES = 5


@dataclass
class Rows:
    """Five pieces of three rows of two numbers; the last is shorter."""

    pieces: list[np.ndarray] = field(default_factory=lambda: [piece(number, 3) for number in range(PIECES - 1)])
    versions: list[object] = field(default_factory=lambda: [object() for _ in range(PIECES)])

    def __post_init__(self) -> None:
        self.pieces.append(piece(PIECES - 1, 2))

    def change(self, *numbers: int) -> None:
        for number in numbers:
            self.pieces[number] = self.pieces[number] + np.float32(1)
            self.versions[number] = object()

    @property
    def state(self) -> dict[str, Any]:
        return {"replay": {"ring": {"rows": self, "num_added": 14}}, "learner": {"w": np.arange(3)}}

    @property
    def plain_state(self) -> dict[str, Any]:
        """The same with the rows as one array."""
        whole = np.concatenate(self.pieces)
        return {"replay": {"ring": {"rows": whole, "num_added": 14}}, "learner": {"w": np.arange(3)}}


def piece(number: int, rows: int) -> np.ndarray:
    return np.arange(100 * number, 100 * number + 2 * rows, dtype=np.float32).reshape(rows, 2)


def inodes(checkpoint: Path) -> list[int]:
    return [path.stat().st_ino for path in sorted(checkpoint.glob("*.segment"))]


class FailingDisk:
    """Fails the `fail_at`-th operation that writes to a disk, and all after it, as a full or a read-only one does."""

    WRITES = ("open", "write", "fsync", "mkdir", "rename", "link")

    def __init__(self, monkeypatch: Any, code: int, fail_at: int) -> None:
        self.code, self.fail_at, self.done = code, fail_at, 0
        for name in self.WRITES:
            monkeypatch.setattr(os, name, self._wrapped(name, getattr(os, name)))

    def _wrapped(self, name: str, real: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            if name == "open" and not arguments[1] & os.O_CREAT:  # reading still works
                return real(*arguments, **options)
            self.done += 1
            if self.done > self.fail_at:
                raise OSError(self.code, os.strerror(self.code))
            return real(*arguments, **options)

        return call


FULL_OR_READ_ONLY = (errno.ENOSPC, errno.EROFS)
