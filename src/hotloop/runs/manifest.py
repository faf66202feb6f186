"""What a checkpoint consists of: sizes and hashes of its files, and a hash of the manifest itself.

A part is two files, `learner.safetensors` and `learner.json`. Since schema 2 an array of it may lie in segments,
`replay.000000.segment` and on, each a safetensors file with some of its rows; `segments` names them in order.

Which files this process has hashed or written, so that gigabytes that nobody touched are not read again.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hotloop.core.errors import CheckpointError, RunError
from hotloop.core.program import hotloop_version
from hotloop.runs.files import (
    CHECKPOINT_SCHEMA,
    READABLE_CHECKPOINTS,
    FileRecord,
    canonical_json,
    opened,
    parse_json,
    read_exactly,
    read_file,
)

MANIFEST = "manifest.json"
SEGMENT = ".segment"
_MAX_BYTES = 16 * 2**20  # about 140 bytes a segment: nearly two terabytes of replay
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SUFFIXES = (".safetensors", ".json")


Segments = dict[str, dict[str, list[str]]]
"""Part -> path of an array within it -> its files in order."""


@dataclass(frozen=True, slots=True)
class Manifest:
    files: dict[str, FileRecord]
    meta: dict[str, Any]
    segments: Segments

    @property
    def parts(self) -> list[str]:
        return sorted(name.removesuffix(".json") for name in self.files if name.endswith(".json"))

    @property
    def segment_files(self) -> dict[str, FileRecord]:
        return {name: record for name, record in self.files.items() if name.endswith(SEGMENT)}


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Whatever goes wrong while one file of a checkpoint is read becomes a CheckpointError that names it."""
    try:
        yield
    except CheckpointError:
        raise
    except FileNotFoundError as error:
        raise CheckpointError(f"checkpoint file {path} is missing") from error
    except RunError as error:
        raise CheckpointError(error.message, error.hint) from error
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise CheckpointError(f"checkpoint file {path} cannot be read: {error or type(error).__name__}") from error


def is_part_name(name: Any) -> bool:
    return isinstance(name, str) and _PART.fullmatch(name) is not None and name != "manifest"


def segment_name(part: str, number: int) -> str:
    return f"{part}.{number:06d}{SEGMENT}"


def encode_manifest(manifest: Manifest) -> bytes:
    body = {
        "schema": CHECKPOINT_SCHEMA,
        "hotloop": hotloop_version(),
        "files": {name: asdict(record) for name, record in manifest.files.items()},
        "segments": manifest.segments,
        "meta": manifest.meta,
    }
    encoded = canonical_json({**body, "sha256": _hash_of(body)})
    if len(encoded) > _MAX_BYTES:
        raise RunError(f"the meta data of a checkpoint may have {_MAX_BYTES} bytes, not {len(encoded)}")
    return encoded


def read_manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    with damage_named(path):
        raw = read_file(path, _MAX_BYTES)
        body = parse_json(raw, path)
        if not isinstance(body, dict):
            raise ValueError("an object was expected")
        _check_schema(body, path)
        # The exact bytes, not only their meaning: a flipped byte that happens to parse is damage all the same.
        if canonical_json(body) != raw or body.pop("sha256", None) != _hash_of(body):
            raise ValueError("its content does not match its own hash")
        segments = _checked_segments(body.get("segments", {}))
        return Manifest(_checked_files(body.get("files"), segments), _checked_meta(body.get("meta")), segments)


def check_sizes(folder: Path, manifest: Manifest) -> None:
    """Before anything is read: every file is there, has its size, and all of them fit into this machine."""
    for name, record in manifest.files.items():
        with damage_named(folder / name), opened(folder / name) as (_, size):
            if size != record.size:
                raise CheckpointError(
                    f"checkpoint file {folder / name} has {size} bytes where {record.size} were saved"
                )
    segments = [record.size for record in manifest.segment_files.values()]  # read one at a time
    total = sum(record.size for record in manifest.files.values()) - sum(segments) + max(segments, default=0)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if total > memory:
        raise CheckpointError(f"checkpoint {folder} needs {total} bytes; this machine has {memory} bytes of memory")


def read_verified(folder: Path, name: str, record: FileRecord) -> bytes:
    """The content of one file, read once: what was hashed is what is used."""
    path = folder / name
    with damage_named(path), opened(path) as (descriptor, _):
        data = read_exactly(descriptor, record.size)
        compare_hash(hashlib.sha256(data).hexdigest(), record, path)
    return data


def compare_hash(found: str, record: FileRecord, path: Path) -> None:
    if found != record.sha256:
        raise CheckpointError(
            f"checkpoint file {path} is damaged: its content does not match the hash it was saved with"
        )


def _hash_of(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical_json(body)).hexdigest()


def _check_schema(body: Mapping[str, Any], path: Path) -> None:
    if body.get("schema") not in READABLE_CHECKPOINTS:
        raise CheckpointError(
            f"{path} has schema version {body.get('schema')!r}; this hotloop reads {READABLE_CHECKPOINTS}",
            f"use the hotloop that wrote it (version {body.get('hotloop', 'unknown')!s:.40})",
        )


def _checked_files(files: Any, segments: Segments) -> dict[str, FileRecord]:
    if not isinstance(files, dict):
        raise ValueError("`files` must be an object")
    listed = [name for arrays in segments.values() for names in arrays.values() for name in names]
    parts = {name.rpartition(".")[0] for name in files if not name.endswith(SEGMENT)}
    expected = {part + suffix for part in parts for suffix in _SUFFIXES} | set(listed)
    named_well = all(map(is_part_name, parts)) and parts >= segments.keys()
    if not named_well or set(files) != expected or len(listed) != len(set(listed)):
        raise ValueError("it names files that are not parts of a checkpoint")
    return {name: _checked_record(name, record) for name, record in files.items()}


def _checked_segments(segments: Any) -> Segments:
    """Files of each part, numbered from 0 over all its arrays."""
    if not isinstance(segments, dict) or not all(isinstance(arrays, dict) for arrays in segments.values()):
        raise ValueError("`segments` must be an object of objects")
    for part, arrays in segments.items():
        if not all(isinstance(names, list) and names for names in arrays.values()):
            raise ValueError("an array in `segments` must have a list of files")
        listed = [name for names in arrays.values() for name in names]
        if sorted(listed, key=str) != [segment_name(part, number) for number in range(len(listed))]:
            raise ValueError("`segments` names files that are not segments of a checkpoint")
    return segments


def _checked_record(name: str, record: Any) -> FileRecord:
    match record:
        case {"size": int(size), "sha256": str(sha256)} if size >= 0 and _SHA256.fullmatch(sha256):
            return FileRecord(size, sha256)
    raise ValueError(f"it has no valid size and hash for {name}")


def _checked_meta(meta: Any) -> dict[str, Any]:
    if not isinstance(meta, dict):
        raise ValueError("`meta` must be an object")
    return meta


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
