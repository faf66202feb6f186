"""`events.jsonl`: one JSON object per line, appended as it happens."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from hotloop.core.errors import RunError
from hotloop.runs.files import (
    explained,
    finite_or_null,
    fsync_folder,
    opened,
    parse_strict,
    temporary_beside,
    write_all,
    write_chunks,
)

_MAX_LINE = 16 * 2**20
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


class EventLog:
    """Appends rows; each goes to the OS at once, so a killed process loses none. `sync` guards against power cuts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with explained("open", path):
            is_new = not path.exists()
            self._descriptor = os.open(path, _FLAGS, 0o666)
            if is_new:
                fsync_folder(path.parent)
            self._offset = _end_of_last_line(self._descriptor)
            os.ftruncate(self._descriptor, self._offset)  # a torn line would swallow the next row

    @property
    def offset(self) -> int:
        """Bytes written so far."""
        return self._offset

    def append(self, row: Mapping[str, Any]) -> None:
        """One line; NaN and infinities become null."""
        line = json.dumps(finite_or_null(row), separators=(",", ":"), allow_nan=False).encode() + b"\n"
        with explained("append to", self.path):
            try:
                write_all(self._descriptor, line)
            except OSError:
                os.ftruncate(self._descriptor, self._offset)  # a full disk may have taken half a line
                raise
        self._offset += len(line)

    def sync(self) -> int:
        """Make all rows durable and return the offset: for a checkpoint, which must not outlive the rows before it."""
        with explained("write", self.path):
            os.fsync(self._descriptor)
        return self._offset

    def truncate(self, offset: int) -> None:
        """Forget what was written after `offset`, which a checkpoint remembered."""
        with explained("truncate", self.path):
            if not 0 <= offset <= self._offset or (offset and os.pread(self._descriptor, 1, offset - 1) != b"\n"):
                raise RunError(
                    f"{self.path} has {self._offset} bytes and no row that ends at byte {offset} as saved",
                    "the file was changed by something else; restore it from a copy or start the run anew",
                )
            os.ftruncate(self._descriptor, offset)
            os.fsync(self._descriptor)
        self._offset = offset

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def damage_before(path: Path, offset: int) -> str:
    """Why the rows that a checkpoint remembered, up to byte `offset`, are not all there; empty where they are."""
    try:
        with opened(path) as (descriptor, size), os.fdopen(os.dup(descriptor), "rb") as stream:
            if size < offset:
                return f"{offset - size} of {offset} bytes are missing"
            number = place = 0
            while place < offset:
                line, number = stream.readline(_MAX_LINE), number + 1
                place += len(line)
                if place > offset or not line.endswith(b"\n"):
                    return f"line {number} does not end where it did"
                _row(line, path, number)
    except OSError as error:
        return "it is missing" if isinstance(error, FileNotFoundError) else f"it cannot be read: {error.strerror}"
    except RunError:
        return f"line {number} is no row"
    return ""


def salvage_events(path: Path, env_steps: int) -> tuple[str, int]:
    """Put a damaged file aside, and in its place one with the rows of it that can still be read, up to `env_steps`.
    The name of the damaged one (empty where there was none) and the number of rows kept."""
    lines = list(_readable_lines(path, env_steps))
    fresh = temporary_beside(path)
    aside = next(name for name in map(path.with_name, _aside_names(path)) if not os.path.lexists(name))
    there = os.path.lexists(path)
    with explained("mend", path):
        write_chunks(fresh, lines)
        if there:
            os.rename(path, aside)
        os.replace(fresh, path)
        fsync_folder(path.parent)
    return aside.name if there else "", len(lines)


def _aside_names(path: Path) -> Iterator[str]:
    return (f"{path.stem}-damaged-{number}{path.suffix}" for number in count(1))


def _readable_lines(path: Path, env_steps: int) -> Iterator[bytes]:
    try:
        with opened(path) as (descriptor, _), os.fdopen(os.dup(descriptor), "rb") as stream:
            while line := stream.readline(_MAX_LINE):
                with suppress(RunError):
                    reached = _row(line, path, None).get("env_steps", 0)
                    if line.endswith(b"\n") and isinstance(reached, int) and reached <= env_steps:
                        yield line
    except OSError:
        return


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """All rows in order; a last line without its end (a writer that died, or is writing) is left out."""
    with explained("read", path), opened(path) as (descriptor, _), os.fdopen(os.dup(descriptor), "rb") as stream:
        number = 0
        while line := stream.readline(_MAX_LINE):
            number += 1
            if not line.endswith(b"\n"):
                if len(line) == _MAX_LINE:
                    raise RunError(f"{path}: line {number} is longer than {_MAX_LINE} bytes")
                return
            yield _row(line, path, number)


def last_events(path: Path, window: int = 65536) -> list[dict[str, Any]]:
    """The rows in the last `window` bytes, oldest first: what a listing needs of a file of any length."""
    with explained("read", path), opened(path) as (descriptor, size):
        start = max(0, size - window)
        data = os.pread(descriptor, window, start)
    lines = data.split(b"\n")[1 if start else 0 : -1]
    return [_row(line, path, None) for line in lines]


def _row(line: bytes, path: Path, number: int | None) -> dict[str, Any]:
    where = f"{path}: line {number}" if number else f"{path}: a line near the end"
    try:
        row = parse_strict(line)
    except (ValueError, RecursionError) as error:
        raise RunError(f"{where} is not valid JSON: {error}") from error
    if not isinstance(row, dict):
        raise RunError(f"{where} is not a JSON object")
    return row


def _end_of_last_line(descriptor: int) -> int:
    end = os.fstat(descriptor).st_size
    while end > 0:
        start = max(0, end - 65536)
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0
