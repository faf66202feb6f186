"""The index: what was read of every run and log, kept between two openings in a folder of the user's own.

One SQLite file for each folder that is looked at. It is a cache: where it is lost or damaged, it is made again from the
files themselves. Columns lie in pieces of up to `PIECE` rows, of which only the last one is ever rewritten.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hotloop.core.own_folders import NoFolder, cache_base, own_folder
from hotloop.core.types import Array
from hotloop.dashboard.columns import Columns

FORMAT = 1
"""In the file's name: another layout, another file."""
PIECE = 4_096
_TABLES = """
CREATE TABLE IF NOT EXISTS source (id TEXT PRIMARY KEY, path TEXT, kind TEXT, stamp TEXT, about TEXT);
CREATE TABLE IF NOT EXISTS rows (id TEXT, event TEXT, count INTEGER, PRIMARY KEY (id, event)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS piece (
  id TEXT, event TEXT, name TEXT, start INTEGER, data BLOB, PRIMARY KEY (id, event, name, start)
);
CREATE TABLE IF NOT EXISTS kept (key TEXT PRIMARY KEY, value TEXT);
"""


class Entry(NamedTuple):
    """A run or a log as it was when last read: `stamp` says of which state of its files, `about` is its summary."""

    path: str
    kind: str
    stamp: dict[str, Any]
    about: dict[str, Any]


class Index:
    """Safe to use from several threads, one at a time."""

    def __init__(self, file: Path | None) -> None:
        self._lock = threading.RLock()
        self.file = file
        self._open: sqlite3.Connection = _connected(file)
        self._depth = 0
        try:
            self.entries()
        except (ValueError, TypeError) as error:
            self._open.close()
            raise sqlite3.DatabaseError(f"an entry is damaged: {error}") from error

    def close(self) -> None:
        with self._lock:
            self._open.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """All of it or none, and nobody else in between: a second dashboard of the folder may read the same files."""
        with self._lock:
            self._depth += 1
            try:
                if self._depth == 1:
                    self._open.execute("BEGIN IMMEDIATE")
                yield
                if self._depth == 1:
                    self._open.execute("COMMIT")
            except BaseException:
                if self._depth == 1 and self._open.in_transaction:
                    self._open.execute("ROLLBACK")
                raise
            finally:
                self._depth -= 1

    def entries(self) -> dict[str, Entry]:
        with self._lock:
            rows = self._open.execute("SELECT id, path, kind, stamp, about FROM source").fetchall()
        return {row[0]: _entry(row[1:]) for row in rows}

    def entry(self, id: str) -> Entry | None:
        with self._lock:
            row = self._open.execute("SELECT path, kind, stamp, about FROM source WHERE id = ?", (id,)).fetchone()
        return None if row is None else _entry(row)

    def put(self, id: str, entry: Entry) -> None:
        values = (id, json.dumps(entry.path), entry.kind, json.dumps(entry.stamp), json.dumps(entry.about))
        with self._lock:
            self._open.execute("INSERT OR REPLACE INTO source VALUES (?, ?, ?, ?, ?)", values)

    def forget(self, id: str) -> None:
        """A run that is gone, or is read anew."""
        with self._lock:
            for table in ("source", "rows", "piece"):
                self._open.execute(f"DELETE FROM {table} WHERE id = ?", (id,))

    def count(self, id: str, event: str) -> int:
        with self._lock:
            row = self._open.execute("SELECT count FROM rows WHERE id = ? AND event = ?", (id, event)).fetchone()
        return 0 if row is None else int(row[0])

    def append(self, id: str, event: str, columns: Columns) -> None:
        """More rows of a kind; columns that are new had no number before."""
        if columns.count == 0:
            return
        with self._lock:
            before = self.count(id, event)
            for name, values in columns.arrays().items():
                self._append_column(id, event, name, before, values)
            total = (id, event, before + columns.count)
            self._open.execute("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)", total)

    def _append_column(self, id: str, event: str, name: str, start: int, values: Array) -> None:
        name = name.encode("utf-8", "replace").decode()  # halves of surrogate pairs, which JSON may hold
        last = self._open.execute(
            "SELECT start, data FROM piece WHERE id = ? AND event = ? AND name = ? ORDER BY start DESC LIMIT 1",
            (id, event, name),
        ).fetchone()
        if last is not None:
            there = np.frombuffer(last[1], dtype=np.float64)
            if last[0] + len(there) == start and len(there) < PIECE:
                start, values = last[0], np.concatenate([there, values])
        pieces = [
            (id, event, name, start + at, values[at : at + PIECE].tobytes()) for at in range(0, len(values), PIECE)
        ]
        self._open.executemany("INSERT OR REPLACE INTO piece VALUES (?, ?, ?, ?, ?)", pieces)

    def names(self, id: str) -> dict[str, list[str]]:
        """Which numbers a run has, by kind of row, in the order in which they came."""
        with self._lock:
            found = self._open.execute(
                "SELECT event, name FROM piece WHERE id = ? GROUP BY event, name ORDER BY MIN(rowid)", (id,)
            ).fetchall()
        names: dict[str, list[str]] = {}
        for event, name in found:
            names.setdefault(event, []).append(name)
        return names

    def column(self, id: str, event: str, name: str) -> Array | None:
        """All values of a column, NaN where a row has none; None where the run has no such column."""
        with self._lock:
            pieces = self._open.execute(
                "SELECT start, data FROM piece WHERE id = ? AND event = ? AND name = ? ORDER BY start",
                (id, event, name),
            ).fetchall()
            count = self.count(id, event)
        if not pieces:
            return None
        values = np.full(count, np.nan)
        for start, data in pieces:
            part = np.frombuffer(data, dtype=np.float64)
            values[start : start + len(part)] = part
        return values

    def kept(self, key: str, make: Callable[[], Any]) -> Any:
        """A value that follows from its key and takes a while to compute (an interval): made once."""
        with self._lock:
            row = self._open.execute("SELECT value FROM kept WHERE key = ?", (key,)).fetchone()
        if row is not None:
            return json.loads(row[0])
        value = make()
        with self.writing():
            self._open.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (key, json.dumps(value)))
        return value


def _entry(row: Sequence[str]) -> Entry:
    """The path stands there as JSON, since a file's name need not be text."""
    return Entry(json.loads(row[0]), row[1], json.loads(row[2]), json.loads(row[3]))


def open_index(folder: Path) -> tuple[Index, str]:
    """The index of a folder, and why it will not be there next time; empty where it will."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:32]
    try:
        own = own_folder(cache_base() / "hotloop" / "dashboard")
    except NoFolder as problem:
        return Index(None), f"the index is held in memory, since {problem}"
    file = own / f"{name}-{FORMAT}.sqlite"
    try:
        return Index(file), ""
    except sqlite3.DatabaseError:
        for path in (file, *(file.with_name(file.name + end) for end in ("-wal", "-shm"))):
            with suppress(OSError):
                path.unlink()
        try:
            return Index(file), ""
        except sqlite3.DatabaseError as error:
            return Index(None), f"the index is held in memory, since {file} cannot be used ({error})"


def _connected(file: Path | None) -> sqlite3.Connection:
    """Raises DatabaseError for a file that is no index."""
    opened = sqlite3.connect(
        ":memory:" if file is None else file, check_same_thread=False, timeout=10, isolation_level=None
    )
    try:
        opened.execute("PRAGMA journal_mode = WAL")  # two dashboards of one folder read while one writes
        opened.execute("PRAGMA synchronous = OFF")  # a cache: a power cut costs reading the files again
        opened.executescript(_TABLES)
        opened.execute("SELECT id, path, kind, stamp, about FROM source LIMIT 1").fetchall()
    except sqlite3.DatabaseError:
        opened.close()
        raise
    return opened


def fingerprint(values: Mapping[str, Any] | list[Any]) -> str:
    """A short name that follows from the content alone."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]
