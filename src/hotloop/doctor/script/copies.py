"""The script's folder: which files a run has written, and a copy of it for the runs after the first.

Checkpoints and logs are then written once. What the script writes to places outside the folder cannot be kept apart.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from hotloop.core.temporary import TemporaryFolder

MOST_BYTES = 256 * 2**20
MOST_FILES = 20_000
LINKED = {".git", ".hg", ".svn", ".venv", "venv", "node_modules", ".tox", ".mypy_cache", ".pytest_cache", ".ruff_cache"}
"""Folders that a script reads at most: the copy has a link to them."""
CACHE = "__pycache__"
MOST_LISTED = 8


@dataclass(frozen=True)
class Workplace:
    """The folder that a script works in, and the script's place in it."""

    folder: Path
    """The current one where the script lies in it, as with `python scripts/train.py`; else the script's own."""
    script: Path

    @property
    def is_current(self) -> bool:
        return self.folder == Path.cwd()


def workplace_of(script: Path) -> Workplace:
    full, current = Path(os.path.abspath(script)), Path.cwd()
    nested = current in full.parents and current not in (Path.home(), Path(current.anchor))
    return Workplace(current if nested else full.parent, full)


State = dict[str, tuple[int, int]]
"""Size and time of the last change of each file."""


def look(folder: Path) -> State | None:
    """None where the folder has too many files to look at."""
    state: State = {}
    for path in _files(folder):
        with contextlib.suppress(OSError):
            facts = path.lstat()
            state[str(path.relative_to(folder))] = (facts.st_size, facts.st_mtime_ns)
        if len(state) > MOST_FILES:
            return None
    return state


def written(before: State | None, after: State | None) -> list[str]:
    """Files that are new or changed, in order."""
    if before is None or after is None:
        return []
    return sorted(name for name, facts in after.items() if before.get(name) != facts)


def new(before: State | None, after: State | None) -> list[str]:
    """Files that were not there."""
    return [name for name in written(before, after) if name not in (before or {})]


def written_note(names: list[str]) -> str:
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return f"the script wrote {', '.join(names[:MOST_LISTED])}{more}"


@contextlib.contextmanager
def copy_of(folder: Path, without: Collection[str] = ()) -> Iterator[Path | None]:
    """A copy that lasts as long as the block; None where the folder is too large or cannot be read."""
    state = look(folder)
    if state is None or sum(size for name, (size, _) in state.items() if name not in without) > MOST_BYTES:
        yield None
        return
    with TemporaryFolder("doctor-copy") as place:
        target = place / folder.name
        try:
            _copy(folder, target, {folder / name for name in without})
        except OSError:  # shutil.Error is one too
            yield None
            return
        yield target


@contextlib.contextmanager
def script_in_copy(script: Path, without: Collection[str] = ()) -> Iterator[tuple[Path, Path | None] | None]:
    """The script in a copy of the folder that it works in, and the folder to run it in (None: where we are).

    `without` these files: what an earlier run has written, which was not there for it either.
    """
    place = workplace_of(script)
    with copy_of(place.folder, without) as copy:
        if copy is None:
            yield None
            return
        inside = copy / place.script.relative_to(place.folder)
        here = script if place.is_current and not script.is_absolute() else inside
        yield here, copy if place.is_current else None


def _copy(folder: Path, target: Path, without: Collection[Path]) -> None:
    def left_out(where: str, names: list[str]) -> list[str]:
        paths = [Path(where, name) for name in names]
        return [path.name for path in paths if path.name == CACHE or path in without or _is_linked(path)]

    shutil.copytree(folder, target, symlinks=True, ignore=left_out, ignore_dangling_symlinks=True)
    for where, folders, _ in os.walk(folder):
        for name in [name for name in folders if name == CACHE or _is_linked(Path(where, name))]:
            folders.remove(name)
            if name != CACHE:
                (target / Path(where, name).relative_to(folder)).symlink_to(Path(where, name))


def _is_linked(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and (path.name in LINKED or (path / "pyvenv.cfg").is_file())


def _files(folder: Path) -> Iterator[Path]:
    for where, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != CACHE and not _is_linked(Path(where, name))]
        yield from (Path(where, name) for name in files)
