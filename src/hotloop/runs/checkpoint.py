"""Checkpoints: one folder of safetensors and JSON files each, complete under its final name or not there at all.

    checkpoints/000000000200000/learner.safetensors learner.json ... replay.000000.segment ... manifest.json

A folder is written under a temporary name, every file fsynced, the manifest last; then renamed, and the parent
fsynced. A crash at any point leaves a temporary folder, which is never read, or a complete checkpoint.

Segments are never changed once written. A checkpoint links to those that the last but one has too: two neighbors
share no file, so that damage to one leaves the other whole, and still only what changed is written.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from hotloop.core.errors import CheckpointError, RunError
from hotloop.runs.checkpoint_files import FolderWriter, State, free_name, load_folder, newest_first, verify_folder
from hotloop.runs.checkpoint_files import checkpoint_name as checkpoint_name
from hotloop.runs.files import (
    FileRecord,
    explained,
    fsync_folder,
    is_real_folder,
    is_temporary,
    json_safe,
    make_folder,
    remove_folder,
    require_real_folder,
    temporary_beside,
    write_chunks,
)
from hotloop.runs.manifest import MANIFEST, Manifest, Verified, encode_manifest, is_part_name
from hotloop.runs.tensors import split

Warn = Callable[[str], None]


class _Good(NamedTuple):
    """A checkpoint that this process wrote or checked, and where its segments are."""

    path: Path
    segments: dict[FileRecord, str]


class Checkpoints:
    """The checkpoints of one run, of which the newest `keep` stay; remembers what it wrote, loaded and checked.

    What it removes beside checkpoints that newer ones replace, and what it had to leave, is told to `warn`.
    """

    def __init__(self, folder: Path, keep: int = 2, warn: Warn = lambda text: None) -> None:
        if keep < 1:
            raise ValueError(f"at least one checkpoint must be kept, not {keep}")
        self.folder = folder
        self._keep = keep
        self._warn = warn
        self._left: set[Path] = set()  # what could not be removed, told once
        self._verified = Verified()
        self._good: list[_Good] = []  # newest first
        self._versions: dict[object, FileRecord] = {}  # of the state saved or loaded last

    def save(self, name: str, state: Mapping[str, Mapping[str, Any]], meta: Mapping[str, Any]) -> Path:
        """Write a checkpoint; where `name` is taken (saved again after a resume) it becomes `name-1`."""
        if not is_part_name(name) or "-" in name or not all(map(is_part_name, state)):
            raise RunError(f"checkpoint {name!r} with parts {list(state)}: names are letters, digits and `_`")
        pieces = {part: split(content) for part, content in state.items()}
        saved_meta = json_safe(meta, "meta")
        require_real_folder(self.folder)
        make_folder(self.folder)
        final = free_name(self.folder, name)
        writer = FolderWriter(temporary_beside(final), self._source)
        with explained("write checkpoint", final):
            try:
                writer.folder.mkdir()
                for part, content in pieces.items():
                    writer.write_part(part, content)
                manifest = replace(writer.manifest, meta=saved_meta)
                write_chunks(writer.folder / MANIFEST, [encode_manifest(manifest)])
                fsync_folder(writer.folder)
                os.rename(writer.folder, final)
                fsync_folder(self.folder)
            except BaseException:
                shutil.rmtree(writer.folder, ignore_errors=True)
                raise
        self._note_saved(final, manifest, writer.versions)
        return final

    def newest(self, warn: Warn) -> tuple[Path, State, dict[str, Any]] | None:
        """The newest checkpoint that can be loaded, or None where there is none; damaged ones are told to `warn`.

        The one before it is checked too, now rather than during training: the next save links to it.
        """
        found = _newest(self.folder, warn, self._verified)
        self._good, self._versions = [], {}
        if found is None:
            return None
        path, state, manifest, self._versions = found
        self._good = [_good(path, manifest)]
        older = newest_first(self.folder)
        for other in older[older.index(path) + 1 :]:
            if len(self._good) < min(self._keep, 2) and (checked := self._checked(other)) is not None:
                self._good.append(_good(other, checked))
        return path, state, manifest.meta

    def thin(self) -> None:
        """Remove all but the newest verified ones, and what crashes left behind: folders whose names and files are
        ours, and nothing else.

        Where not a single one verifies nothing is removed: damaged is better than gone.
        """
        kept: list[_Good] = []
        surplus: list[tuple[Path, str]] = []  # why, where it is worth a word
        files: list[Path] = []
        for path in newest_first(self.folder):
            if len(kept) >= self._keep:
                surplus.append((path, ""))
                continue
            try:
                manifest = verify_folder(path, self._verified)
            except CheckpointError as error:
                surplus.append((path, error.message))
            else:
                kept.append(_good(path, manifest))
                files.extend(path / name for name in manifest.files)
        for path, why in surplus if kept else []:
            self._remove(path, why)
        for path in self._left_by_crashes():
            self._remove(path, "a save that was cut short left it")
        self._good = kept
        self._verified.forget_all_but(files)

    def _left_by_crashes(self) -> list[Path]:
        if not is_real_folder(self.folder):
            return []
        return [path for path in self.folder.iterdir() if is_temporary(path.name) and is_real_folder(path)]

    def _remove(self, path: Path, why: str) -> None:
        if path in self._left:
            return
        try:
            remove_folder(path)
        except RunError as error:
            self._left.add(path)
            self._warn(f"checkpoint {path.name} was not removed: {error.message}")
            return
        if why:
            self._warn(f"removed {path}: {why}")

    def _source(self, version: object) -> tuple[Path, FileRecord] | None:
        """Where an unchanged segment can be linked from: the last checkpoint but one, or the last if only one stays."""
        record = self._versions.get(version)
        for path, segments in self._good[1:2] if self._keep > 1 else self._good[:1]:
            if record in segments:
                with suppress(CheckpointError):  # changed behind our back: the segment is written anew
                    self._verified.check(path / segments[record], record)
                    return path / segments[record], record
        return None

    def _checked(self, path: Path) -> Manifest | None:
        try:
            return verify_folder(path, self._verified)
        except CheckpointError:
            return None

    def _note_saved(self, path: Path, manifest: Manifest, versions: dict[object, FileRecord]) -> None:
        self._versions = versions
        self._good = [_good(path, manifest), *self._good[: self._keep]]
        for name, record in manifest.files.items():
            self._verified.note(path / name, record)


def _good(path: Path, manifest: Manifest) -> _Good:
    return _Good(path, {record: name for name, record in manifest.segment_files.items()})


def save(folder: Path, name: str, state: Mapping[str, Mapping[str, Any]], meta: Mapping[str, Any]) -> Path:
    """A checkpoint that shares nothing with those before it."""
    return Checkpoints(folder).save(name, state, meta)


def load(path: Path) -> tuple[State, dict[str, Any]]:
    """State and meta of a checkpoint, every byte verified; CheckpointError names the file that is wrong."""
    state, manifest, _ = load_folder(path, Verified())
    return state, manifest.meta


def verify(path: Path) -> None:
    """Raise CheckpointError unless every file is what was saved; holds none of them in memory."""
    verify_folder(path, Verified())


def newest(folder: Path, warn: Warn) -> tuple[Path, State, dict[str, Any]] | None:
    """As `Checkpoints.newest`, for those who only look."""
    found = _newest(folder, warn, Verified())
    return None if found is None else (found[0], found[1], found[2].meta)


def keep(folder: Path, count: int = 2) -> None:
    """Remove all but the newest `count` verified checkpoints."""
    Checkpoints(folder, count).thin()


def _newest(
    folder: Path, warn: Warn, verified: Verified
) -> tuple[Path, State, Manifest, dict[object, FileRecord]] | None:
    errors: list[CheckpointError] = []
    for path in newest_first(folder):
        try:
            return path, *load_folder(path, verified)
        except CheckpointError as error:
            errors.append(error)
            warn(f"checkpoint {path.name} cannot be used: {error.message}; trying the one before it")
    if not errors:
        return None
    raise CheckpointError(
        f"none of the {len(errors)} checkpoints in {folder} can be used; the newest: {errors[0].message}",
        errors[0].hint or "restore the folder from a copy, or start the run anew in another directory",
    )
