"""All that is shown of one folder: kept in step with its files by one thread, whoever looks on.

What the index holds is there at once; a first scan then finds what is new. From then on runs that are being trained
are looked at every second, all others as often as a hundredth of a core allows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.core.errors import HotloopError
from hotloop.core.types import Array
from hotloop.dashboard.index import Entry, Index, open_index
from hotloop.dashboard.logs import look_at_log, look_at_report
from hotloop.dashboard.reading import RunLook, look_at_run
from hotloop.dashboard.sources import Found, Source, find_sources
from hotloop.runs import lock
from hotloop.runs.directory import LOCK

Looker = Callable[[Path, Entry | None], RunLook | None]
LOOKERS: dict[str, Looker] = {
    "run": look_at_run,
    "tensorboard": look_at_log,
    "monitor": look_at_log,
    "progress": look_at_log,
    "csv": look_at_log,
    "doctor": look_at_report,
}
"""Who reads what; the first argument is where it lies."""
HOT_SECONDS, COLD_SECONDS, COLD_SHARE = 1.0, 5.0, 0.01


@dataclass(frozen=True)
class Item:
    """A run or a log as it stands."""

    id: str
    kind: str
    place: str
    about: dict[str, Any]
    status: str  # of a run "finished", "running" or "stopped"; of a log "log"


class Library:
    """`folder` is never left: whatever is opened lies below it, and is found by its id."""

    def __init__(self, folder: Path, index: Index | None = None) -> None:
        self.folder = folder
        self.index, self.problem = (index, "") if index is not None else open_index(folder)
        self.version = 0
        self.scanned = 0, 0  # how many of how many, while a scan goes on
        self.complete = True
        self.ready = False
        self._lock = threading.Lock()
        self._entries = self.index.entries()  # the watcher's alone
        self._items: dict[str, Item] = {
            id: Item(id, entry.kind, entry.path, entry.about, _settled(entry.about, entry.kind))
            for id, entry in self._entries.items()
        }
        self._changed: dict[str, int] = {}  # id -> version of its last change

    def items(self) -> list[Item]:
        with self._lock:
            return list(self._items.values())

    def get(self, id: str) -> Item | None:
        with self._lock:
            return self._items.get(id)

    def path_of(self, item: Item) -> Path:
        return self.folder / item.place

    def changed_since(self, version: int) -> tuple[int, list[str]]:
        """What changed after `version`, gone ones included; and the version now."""
        with self._lock:
            return self.version, [id for id, at in self._changed.items() if at > version]

    def column(self, id: str, event: str, name: str) -> Array | None:
        return self.index.column(id, event, name)

    def scan(self, tell: Callable[[int, int], None] = lambda done, of: None) -> None:
        """Look at everything below the folder."""
        found: Found = find_sources(self.folder)
        self.complete = found.complete
        with self._lock:
            gone = self._items.keys() - {source.id for source in found.sources}
        for id in gone:
            self._remove(id)
        for done, source in enumerate(found.sources):
            self.scanned = done, len(found.sources)
            tell(done, len(found.sources))
            self.look(source)
        self.scanned, self.ready = (len(found.sources), len(found.sources)), True
        tell(*self.scanned)

    def look(self, source: Source) -> bool:
        """Bring one of them up to date; whether anything about it changed."""
        looker = LOOKERS.get(source.kind)
        if looker is None:
            return False
        with suppress(HotloopError, OSError):  # damage is what `hotloop report` explains
            seen = looker(self.folder / source.place, self._entries.get(source.id))
            if seen is not None:
                self._take(source, looker, seen)
        entry = self._entries.get(source.id)
        return entry is not None and self._show(source.id, entry)

    def _take(self, source: Source, looker: Looker, seen: RunLook | None) -> None:
        with self.index.writing():
            now = self.index.entry(source.id)
            if now != self._entries.get(source.id):  # a second dashboard was faster: look from where it came to
                seen = looker(self.folder / source.place, now)
            if seen is not None:
                now = self._write(source, seen)
        assert now is not None
        self._entries[source.id] = now

    def _write(self, source: Source, seen: RunLook) -> Entry:
        if seen.anew:
            self.index.forget(source.id)
        for event, columns in seen.columns.items():
            self.index.append(source.id, event, columns)
        self.index.put(source.id, Entry(source.place, source.kind, seen.stamp, seen.about))
        entry = self.index.entry(source.id)  # as it will be read again: JSON knows no tuples
        assert entry is not None
        return entry

    def _show(self, id: str, entry: Entry) -> bool:
        status = _status(self.folder / entry.path, entry)
        item = Item(id, entry.kind, entry.path, entry.about, status)
        with self._lock:
            if self._items.get(id) == item and self.ready:
                return False
            fresh = self._items.get(id) != item
            self._items[id] = item
            if fresh:
                self._note(id)
        return fresh

    def _remove(self, id: str) -> None:
        with self.index.writing():
            self.index.forget(id)
        self._entries.pop(id, None)
        with self._lock:
            self._items.pop(id, None)
            self._note(id)

    def _note(self, id: str) -> None:
        self.version += 1
        self._changed[id] = self.version

    def hot(self) -> Iterator[Source]:
        """Runs that somebody trains, and logs that changed of late."""
        recent = self.version - 50
        for item in self.items():
            if item.status == "running" or (item.status == "log" and self._changed.get(item.id, 0) > max(0, recent)):
                yield Source(item.place, item.kind)  # type: ignore[arg-type]


class Watcher:
    """One thread that keeps a library in step, and tells `on_change` when something is new."""

    def __init__(self, library: Library, on_change: Callable[[], None] = lambda: None) -> None:
        self.library = library
        self._on_change = on_change
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dashboard watcher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def _run(self) -> None:
        next_full = 0.0
        while not self._stop.is_set():
            begun, spent = time.monotonic(), time.thread_time()
            before = self.library.version
            if begun >= next_full:
                self.library.scan(self._progress)
                spent = time.thread_time() - spent  # of the processor: a busy machine is no reason to look seldom
                next_full = time.monotonic() + max(COLD_SECONDS, spent / COLD_SHARE)
                self._on_change()
            else:
                self._look(self.library.hot())
                if self.library.version != before:
                    self._on_change()
            self._stop.wait(HOT_SECONDS)

    def _look(self, sources: Iterable[Source]) -> None:
        for source in sources:
            if not self._stop.is_set():
                self.library.look(source)

    def _progress(self, done: int, of: int) -> None:
        if self._stop.is_set():
            raise SystemExit  # ends this thread: the first scan of a large folder may take minutes
        if done % 50 == 0 and not self.library.ready:
            self._on_change()


def _settled(about: dict[str, Any], kind: str) -> str:
    """As far as the index knows; whether somebody trains it is found out by the first scan."""
    if kind != "run":
        return "log"
    return "finished" if about.get("finished") else "stopped"


def _status(path: Path, entry: Entry) -> str:
    if entry.kind == "run" and lock.is_held(path / LOCK):
        return "running"
    return _settled(entry.about, entry.kind)
