"""A run's `events.jsonl` as columns, read on from where the last look ended: a live file costs what was added to it.

A resume cuts the file back to a checkpoint and writes on. So the last bytes that were read are remembered by their
hash: where they are gone or other ones stand there, the file is read again from its beginning.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hotloop.core.timer import NOT_TRAINING
from hotloop.dashboard.columns import Columns
from hotloop.runs.files import opened

LONGEST_LINE = 64 * 2**10
MOST_BYTES = 2**31
"""Of a file, in one look; what is beyond it is read by the next ones."""
KINDS = ("progress", "evaluation")
TRAINING_SECONDS, PHASE = "training_seconds", "phase/"
_TAIL, _LARGEST = 256, 1e150
_BLOCK = 4 * 2**20


@dataclass(frozen=True)
class Bookmark:
    """Where reading ended: bytes, the lines before, and a hash of the last bytes."""

    inode: int = 0
    offset: int = 0
    tail: str = ""
    damaged: int = 0  # lines that are no rows
    start: dict[str, Any] = field(default_factory=dict)  # of the first row: time and machine
    notes: tuple[dict[str, Any], ...] = ()  # rows of other kinds: `extended`, `rows_lost`, ...

    def as_data(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Read:
    """What was added since a bookmark, or all of it where `anew`."""

    bookmark: Bookmark
    anew: bool
    columns: dict[str, Columns]


def bookmark_from(data: dict[str, Any]) -> Bookmark:
    return Bookmark(**{**data, "notes": tuple(data.get("notes", ()))})


def read_on(path: Path, bookmark: Bookmark) -> Read:
    """Raises OSError where the file cannot be read."""
    with opened(path) as (descriptor, size):
        inode = os.fstat(descriptor).st_ino
        anew = bookmark.inode != inode or size < bookmark.offset or _tail(descriptor, bookmark.offset) != bookmark.tail
        at = Bookmark(inode=inode) if anew else bookmark
        columns = {kind: Columns() for kind in KINDS}
        offset, damaged, start, notes = at.offset, at.damaged, at.start, list(at.notes)
        for line in _lines(descriptor, at.offset, min(size, at.offset + MOST_BYTES)):
            offset += len(line)
            row = parse_row(line)
            kind = None if row is None else row.get("event")
            if row is None:
                damaged += 1
            elif kind in KINDS:
                columns[str(kind)].add(_numbers(row))
            elif kind == "start":
                start = start or {name: row.get(name) for name in ("time", "machine")}
            elif len(notes) < 50:
                notes.append({name: value for name, value in row.items() if name != "phases"})
        return Read(Bookmark(inode, offset, _tail(descriptor, offset), damaged, start, tuple(notes)), anew, columns)


def _tail(descriptor: int, offset: int) -> str:
    length = min(_TAIL, offset)
    return hashlib.sha256(os.pread(descriptor, length, offset - length)).hexdigest()[:16] if offset else ""


def _lines(descriptor: int, start: int, end: int) -> Iterator[bytes]:
    """Whole lines; a last one without its end is one that is being written."""
    rest = b""
    while start < end:
        block = os.pread(descriptor, min(_BLOCK, end - start), start)
        if not block:
            return
        start += len(block)
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            yield line + b"\n"
        if len(rest) > _BLOCK:  # no row of ours: a file without ends of line would be held whole
            return


def parse_row(line: bytes) -> dict[str, Any] | None:
    """Only numbers are taken from it, each looked at by `_finite`; so the quick parser will do."""
    if len(line) > LONGEST_LINE:
        return None
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _numbers(row: dict[str, Any]) -> list[tuple[str, float]]:
    """All numbers of a row; the seconds of its phases, and of training alone, among them. Plain loops: a folder of
    a thousand runs has a million rows."""
    found = _finite(row)
    phases = row.get("phases")
    if isinstance(phases, dict):
        parts = _finite(phases)
        outside = sum(value for name, value in parts if name in NOT_TRAINING)
        found += [(TRAINING_SECONDS, value - outside) for name, value in found if name == "seconds"]
        found += [(PHASE + name[:60], value) for name, value in parts]
    return found


def _finite(table: dict[str, Any]) -> list[tuple[str, float]]:
    return [
        (name, value)
        for name, value in table.items()
        if (type(value) is float or type(value) is int) and -_LARGEST <= value <= _LARGEST  # NaN is not between them
    ]
