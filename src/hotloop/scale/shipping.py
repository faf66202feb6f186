"""A run directory on its way between two machines, while it is being trained: packets of plain data.

What was sent is not sent again. Files of a checkpoint are known by the hashes in its manifest, so that the segments
which checkpoints have in common cross once; event rows cross as they are appended. Whoever receives writes a checkpoint
as whoever trains does: under a temporary name, every byte hashed, the manifest last, then renamed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hotloop.core.errors import CheckpointError, HotloopError, RunError
from hotloop.runs.checkpoint_files import is_checkpoint_name, newest_first, verify_folder
from hotloop.runs.directory import EVENTS, LOCK, RESULT, SETTINGS, Run
from hotloop.runs.files import (
    explained,
    fsync_folder,
    is_plain_file,
    is_temporary,
    make_folder,
    opened,
    remove_folder,
    require_real_folder,
    temporary_beside,
    write_chunks,
    write_file,
)
from hotloop.runs.manifest import MANIFEST, Manifest, Verified, read_manifest
from hotloop.scale.specs import inner_path

PIECE_BYTES = 4 * 2**20
CHECKPOINTS = "checkpoints"
_LAST = (RESULT, "trace.json")
"""What makes a run, or a script's, a finished one: sent after everything else."""
_MEMORY = 256
Packet = dict[str, Any]


class Outbox:
    """What has changed in a run directory since it was asked last."""

    def __init__(self, run: Path, newest_only: bool = False) -> None:
        self._run, self._newest_only = run, newest_only
        self._pieces: set[str] = set()  # hashes of what the other side has
        self._checkpoints: set[str] = set()
        self._files: dict[str, tuple[int, int]] = {}
        self._offset, self._before = 0, b""  # of event rows
        self.bytes = 0

    def packets(self, last: bool = False) -> Iterator[Packet]:
        """`last`: the run has ended, and what makes it finished may follow."""
        yield from self._other_files(lambda name: name not in _LAST)
        yield from self._events()
        found = newest_first(self._run / CHECKPOINTS)
        for path in reversed(found[:1] if self._newest_only else found):
            if path.name not in self._checkpoints:
                yield from self._checkpoint(path, [one.name for one in found])
        if last:
            yield from self._other_files(lambda name: name in _LAST)

    def note_sent(self) -> None:
        """Both sides have what is here now."""
        for _ in self.packets(last=True):
            pass
        self.bytes = 0

    def _counted(self, packet: Packet) -> Packet:
        self.bytes += len(packet.get("data", b""))
        return packet

    def _events(self) -> Iterator[Packet]:
        path = self._run / EVENTS
        if not path.exists():
            return
        with explained("read", path), opened(path) as (descriptor, size):
            # a resumed run cuts its rows back to its checkpoint and appends others
            if (
                size < self._offset
                or os.pread(descriptor, len(self._before), self._offset - len(self._before)) != self._before
            ):
                self._offset, self._before = 0, b""
            while data := os.pread(descriptor, PIECE_BYTES, self._offset):
                yield self._counted({"kind": "events", "at": self._offset, "data": data})
                self._offset += len(data)
                self._before = (self._before + data)[-_MEMORY:]

    def _checkpoint(self, path: Path, there: list[str]) -> Iterator[Packet]:
        """Nothing of one that is removed while we read it counts."""
        with suppress(CheckpointError, FileNotFoundError):
            manifest = read_manifest(path)
            text = (path / MANIFEST).read_bytes()
            for name, record in manifest.files.items():
                if record.sha256 not in self._pieces:
                    yield from self._piece(path / name, record.sha256)
                    self._pieces.add(record.sha256)
            self._checkpoints.add(path.name)
            yield self._counted({"kind": "checkpoint", "name": path.name, "data": text, "keep": there})

    def _piece(self, path: Path, sha256: str) -> Iterator[Packet]:
        with opened(path) as (descriptor, size):
            offset = 0
            while offset < size or size == 0:
                data = os.pread(descriptor, PIECE_BYTES, offset)
                yield self._counted({"kind": "piece", "sha256": sha256, "at": offset, "size": size, "data": data})
                offset += len(data)
                if not data:
                    return

    def _other_files(self, wanted: Any) -> Iterator[Packet]:
        for path in self._outside_checkpoints():
            name = path.relative_to(self._run).as_posix()
            if name in (LOCK, EVENTS) or is_temporary(path.name) or not wanted(name):
                continue
            with suppress(FileNotFoundError):
                about = os.lstat(path)
                mark = (about.st_mtime_ns, about.st_size)
                if is_plain_file(path) and self._files.get(name) != mark:
                    yield self._counted({"kind": "file", "name": name, "data": path.read_bytes()})
                    self._files[name] = mark

    def _outside_checkpoints(self) -> Iterator[Path]:
        """Checkpoints come and go while we look, and have a way of their own."""
        for folder, names, files in os.walk(self._run):
            names[:] = sorted(name for name in names if name != CHECKPOINTS)
            # the settings first: a folder that holds anything else, and not them, is no run and none can be begun there
            yield from (Path(folder) / name for name in sorted(files, key=lambda name: (name != SETTINGS, name)))


class Inbox:
    """Puts packets into a run directory. What is damaged or leads elsewhere is a RunError."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._arriving = run.with_name(f"{run.name}.arriving")
        self._verified = Verified()
        self.checkpoints = 0
        self.close()  # what a receiver that was killed has left

    def close(self) -> None:
        require_real_folder(self._arriving)
        shutil.rmtree(self._arriving, ignore_errors=True)

    def take(self, packet: Mapping[str, Any]) -> None:
        make_folder(self._run)
        try:
            match packet:
                case {"kind": "file", "name": str(name), "data": bytes(data)}:
                    self._file(name, data)
                case {"kind": "events", "at": int(at), "data": bytes(data)}:
                    self._append(at, data)
                case {"kind": "piece", "sha256": str(sha256), "at": int(at), "data": bytes(data)}:
                    self._piece(sha256, at, data)
                case {"kind": "checkpoint", "name": str(name), "data": bytes(data), "keep": list(keep)}:
                    self._checkpoint(name, data, keep)
                case _:
                    raise ValueError("no such packet")
        except ValueError as error:
            raise RunError(f"{self._run}: what arrived for it cannot be used: {error}") from error

    def finish(self) -> None:
        """The result names the directory it lies in."""
        self.close()
        run = Run(self._run)
        if run.finished:
            with suppress(HotloopError):
                run.write_json(RESULT, run.read_json(RESULT) | {"run": str(self._run)})

    def _file(self, name: str, data: bytes) -> None:
        path = self._run / inner_path(name)
        if name.startswith(CHECKPOINTS) or name in (LOCK, EVENTS):
            raise ValueError(f"`{name}` is not sent as a file")
        require_real_folder(path.parent)
        make_folder(path.parent)
        write_file(path, data)

    def _append(self, at: int, data: bytes) -> None:
        path = self._run / EVENTS
        with explained("write", path):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
            try:
                if not 0 <= at <= os.fstat(descriptor).st_size:
                    raise ValueError("event rows arrived out of order")
                os.ftruncate(descriptor, at)
                os.pwrite(descriptor, data, at)
            finally:
                os.close(descriptor)

    def _piece(self, sha256: str, at: int, data: bytes) -> None:
        if len(sha256) != 64 or not set(sha256) <= set("0123456789abcdef"):
            raise ValueError("a piece without a hash")
        make_folder(self._arriving)
        path = self._arriving / sha256
        with explained("write", path), open(path, "r+b" if at else "wb") as file:
            file.seek(at)
            file.write(data)

    def _checkpoint(self, name: str, manifest: bytes, keep: list[Any]) -> None:
        if not is_checkpoint_name(name):
            raise ValueError(f"`{name}` is no checkpoint")
        folder = self._run / CHECKPOINTS
        require_real_folder(folder)
        make_folder(folder)
        self.checkpoints += 1
        if (folder / name).exists():
            return
        temporary = temporary_beside(folder / name)
        with explained("write checkpoint", folder / name):
            try:
                temporary.mkdir()
                (temporary / MANIFEST).write_bytes(manifest)
                found = read_manifest(temporary)
                self._fill(temporary, found)
                with open(temporary / MANIFEST, "rb") as written:
                    os.fsync(written.fileno())
                fsync_folder(temporary)
                os.rename(temporary, folder / name)
                fsync_folder(folder)
            except BaseException:
                shutil.rmtree(temporary, ignore_errors=True)
                raise
        for path in newest_first(folder):
            if path.name not in keep and path.name != name:
                with suppress(RunError):
                    remove_folder(path)

    def _fill(self, folder: Path, manifest: Manifest) -> None:
        """From what has arrived, or from another checkpoint that is here; each a copy of its own, hashed again."""
        there = self._by_hash()
        for name, record in manifest.files.items():
            source = self._arriving / record.sha256
            source = source if source.exists() else there.get(record.sha256, source)
            if not source.exists():
                raise ValueError(f"{name} of {folder.name} has not arrived")
            written = write_chunks(folder / name, _chunks(source))
            if written != record:
                raise ValueError(f"{name} of {folder.name} arrived damaged")

    def _by_hash(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for path in newest_first(self._run / CHECKPOINTS):
            with suppress(CheckpointError):
                found |= {
                    record.sha256: path / name for name, record in verify_folder(path, self._verified).files.items()
                }
        return found


def _chunks(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while data := file.read(PIECE_BYTES):
            yield data
