"""What lies below a folder that can be shown: runs of ours, and logs that other programs left.

Symbolic links are not followed and nothing is opened here: names decide. Whoever reads a file finds out whether it is
what its name says. Pages call a thing by its `id`, a hash of where it lies, so that no request ever holds a path.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from hotloop.runs.directory import SETTINGS
from hotloop.runs.logs import kind_by_name
from hotloop.runs.tensorboard import PREFIX

Kind = Literal["run", "tensorboard", "monitor", "progress", "csv", "doctor"]
DEEPEST = 6
MOST_ENTRIES = 200_000
"""Of all folders together: somebody may open `/`."""
MOST_SOURCES = 20_000
_NOT_OURS = frozenset({"node_modules", "__pycache__", "site-packages", "checkpoints"})


class Source(NamedTuple):
    """`place` is the path below the folder: of a run and of TensorBoard's files their folder, of others the file."""

    place: str
    kind: Kind

    @property
    def id(self) -> str:
        return hashlib.sha256(os.fsencode(f"{self.kind}:{self.place}")).hexdigest()[:16]


class Found(NamedTuple):
    sources: list[Source]
    complete: bool  # whether no bound was met


def find_sources(folder: Path) -> Found:
    """Everything that can be shown, by place."""
    walk = _Walk()
    sources = []
    for source in walk.through(os.fspath(folder), "", 0):
        sources.append(source)
        if len(sources) >= MOST_SOURCES:
            return Found(sorted(sources), False)
    return Found(sorted(sources), walk.left > 0)


class _Walk:
    def __init__(self) -> None:
        self.left = MOST_ENTRIES

    def through(self, path: str, place: str, depth: int) -> Iterator[Source]:
        files, folders = self._entries(path)
        if SETTINGS in files:
            yield Source(place or ".", "run")
            return
        if any(name.startswith(PREFIX) for name in files):
            yield Source(place or ".", "tensorboard")
        for name in files:
            kind = _kind_of(name)
            if kind is not None:
                yield Source(f"{place}/{name}" if place else name, kind)
        if depth < DEEPEST:
            for name in folders:
                yield from self.through(f"{path}/{name}", f"{place}/{name}" if place else name, depth + 1)

    def _entries(self, path: str) -> tuple[list[str], list[str]]:
        files: list[str] = []
        folders: list[str] = []
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    self.left -= 1
                    if self.left <= 0:
                        break
                    if entry.is_file(follow_symlinks=False):
                        files.append(entry.name)
                    elif entry.is_dir(follow_symlinks=False) and not _is_hidden(entry.name):
                        folders.append(entry.name)
        except OSError:  # gone in the meantime, or not ours to read
            pass
        return sorted(files), sorted(folders)


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name in _NOT_OURS


def _kind_of(name: str) -> Kind | None:
    """By its name alone. JSON lines are left out: too many programs leave such files that are no logs of training."""
    if name.endswith(".json") and ("doctor" in name or "diagnosis" in name):
        return "doctor"
    kind = kind_by_name(name)
    return None if kind == "tensorboard" or kind == "jsonl" else kind
