"""One checkpoint folder: what is written into it and read from it.

The segments of an array as they lie in a checkpoint.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.core.errors import RunError
from hotloop.core.types import Array
from hotloop.runs.files import (
    MAX_JSON_BYTES,
    FileRecord,
    canonical_json,
    explained,
    is_real_folder,
    parse_json,
    require_real_folder,
    write_chunks,
)
from hotloop.runs.manifest import (
    Manifest,
    Verified,
    check_sizes,
    damage_named,
    read_manifest,
    read_verified,
    segment_name,
)
from hotloop.runs.tensors import Segmented, Split, decode, encode, join, plain_array


class SavedPieces:
    """Pieces in the files of a checkpoint, read and checked when asked for: all of them may not fit into memory."""

    def __init__(self, folder: Path, path: str, files: Sequence[tuple[str, FileRecord]]) -> None:
        self._folder = folder
        self._path = path
        self._files = files

    def __iter__(self) -> Iterator[Array]:
        for name, record in self._files:
            yield self._read(name, record)

    def _read(self, name: str, record: FileRecord) -> Array:
        with damage_named(self._folder / name):
            arrays = decode(read_verified(self._folder, name, record))
            if list(arrays) != [self._path] or arrays[self._path].ndim == 0:
                raise ValueError(f"it should hold rows of `{self._path}` and nothing else")
        return arrays[self._path]


@dataclass(frozen=True, slots=True)
class SavedArray:
    pieces: SavedPieces
    versions: list[object]


def saved_arrays(folder: Path, part: str, manifest: Manifest) -> dict[str, SavedArray]:
    """The segmented arrays of a part by their path."""
    arrays = {}
    for path, names in manifest.segments.get(part, {}).items():
        files = [(name, manifest.files[name]) for name in names]
        arrays[path] = SavedArray(SavedPieces(folder, path, files), [object() for _ in names])
    return arrays


_NAME = re.compile(r"(?P<env_steps>[0-9]{15,19})(-(?P<again>[1-9][0-9]{0,8}))?")
State = dict[str, dict[str, Any]]
Source = Callable[[object], tuple[Path, FileRecord] | None]
"""The file of another checkpoint that holds a version of a segment, if there is one to link to."""


class FolderWriter:
    """Writes parts into a new folder; `manifest` and `versions` say what is in it."""

    def __init__(self, folder: Path, source: Source) -> None:
        self.folder = folder
        self.manifest = Manifest({}, {}, {})
        self.versions: dict[object, FileRecord] = {}
        self._source = source

    def write_part(self, part: str, pieces: Split) -> None:
        files = self.manifest.files
        number = 0
        for path, array in pieces.segmented.items():
            names = self._write_segments(part, path, array, number)
            self.manifest.segments.setdefault(part, {})[path] = names
            number += len(names)
        files[f"{part}.safetensors"] = write_chunks(self.folder / f"{part}.safetensors", encode(pieces.arrays))
        files[f"{part}.json"] = write_chunks(self.folder / f"{part}.json", [_encoded_values(part, pieces.tree)])

    def _write_segments(self, part: str, path: str, array: Segmented, number: int) -> list[str]:
        names: list[str] = []
        for version, piece in zip(array.versions, array.pieces, strict=True):
            name = segment_name(part, number + len(names))
            record = self._linked(self.folder / name, version)
            if record is None:
                record = write_chunks(self.folder / name, encode({path: plain_array(piece, path)}))
            self.manifest.files[name] = self.versions[version] = record
            names.append(name)
        return names

    def _linked(self, target: Path, version: object) -> FileRecord | None:
        """Where a link cannot be made (another file system, too many of them) the segment is written."""
        found = self._source(version)
        if found is not None:
            with suppress(OSError):
                os.link(found[0], target, follow_symlinks=False)
                return found[1]
        return None


def _encoded_values(part: str, tree: dict[str, Any]) -> bytes:
    encoded = canonical_json(tree)
    if len(encoded) > MAX_JSON_BYTES:  # `load` would refuse it
        raise RunError(f"part `{part}` has {len(encoded)} bytes outside arrays", "save long lists as numpy arrays")
    return encoded


def load_folder(path: Path, verified: Verified) -> tuple[State, Manifest, dict[object, FileRecord]]:
    """State and manifest, every byte checked, and what each version of a segment is; segments are read once more
    when somebody wants their rows."""
    manifest = read_manifest(path)
    check_sizes(path, manifest)
    for name, record in manifest.segment_files.items():
        verified.check(path / name, record)
    state: State = {}
    versions: dict[object, FileRecord] = {}
    for part in manifest.parts:
        arrays = saved_arrays(path, part, manifest)
        state[part] = _load_part(path, part, manifest, arrays)
        for place, array in arrays.items():
            names = manifest.segments[part][place]
            versions |= {version: manifest.files[name] for version, name in zip(array.versions, names, strict=True)}
    return state, manifest, versions


def _load_part(folder: Path, part: str, manifest: Manifest, segmented: Mapping[str, SavedArray]) -> dict[str, Any]:
    values, tensors = f"{part}.json", f"{part}.safetensors"
    with damage_named(folder / values):
        if manifest.files[values].size > MAX_JSON_BYTES:
            raise ValueError(f"more than {MAX_JSON_BYTES} bytes of JSON")
        tree = parse_json(read_verified(folder, values, manifest.files[values]), folder / values)
        if not isinstance(tree, dict):
            raise ValueError("an object was expected")
    with damage_named(folder / tensors):
        return join(segmented, join(decode(read_verified(folder, tensors, manifest.files[tensors])), tree))


def verify_folder(path: Path, verified: Verified) -> Manifest:
    """Raise CheckpointError unless every file is what was saved; holds none of them in memory."""
    manifest = read_manifest(path)
    check_sizes(path, manifest)
    for name, record in manifest.files.items():
        verified.check(path / name, record)
    return manifest


def checkpoint_name(env_steps: int) -> str:
    """Names that sort by env steps."""
    return f"{env_steps:015d}"


def is_checkpoint_name(name: str) -> bool:
    """Whether `Checkpoints.save` can have made it; everything else in the folder is somebody else's."""
    return _NAME.fullmatch(name) is not None


def newest_first(folder: Path) -> list[Path]:
    """The checkpoints there are, damaged ones too. Refuses a folder that is a link."""
    require_real_folder(folder)
    if not is_real_folder(folder):
        return []
    with explained("read", folder), os.scandir(folder) as entries:
        names = [
            entry.name for entry in entries if entry.is_dir(follow_symlinks=False) and is_checkpoint_name(entry.name)
        ]
    return [folder / name for name in sorted(names, key=_order, reverse=True)]


def _order(name: str) -> tuple[int, int]:
    """By env steps, then the latest save."""
    env_steps, _, again = name.partition("-")
    return int(env_steps), int(again or 0)


def free_name(folder: Path, name: str) -> Path:
    """`name`, or `name-K` with K above all that exist, so that the latest save sorts last."""
    again = re.compile(re.escape(name) + r"-([1-9][0-9]{0,8})")
    with explained("read", folder):
        there = os.listdir(folder)
    taken = [int(found[1]) for found in map(again.fullmatch, there) if found] + ([0] if name in there else [])
    return folder / (f"{name}-{max(taken) + 1}" if taken else name)
