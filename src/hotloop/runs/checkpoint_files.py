"""One checkpoint folder: what is written into it and read from it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hotloop.core.errors import RunError
from hotloop.runs.files import FileRecord, explained, write_chunks
from hotloop.runs.flatten import Split, join, plain_array
from hotloop.runs.manifest import (
    Manifest,
    check_sizes,
    damage_named,
    is_part_name,
    read_manifest,
    read_verified,
    segment_name,
)
from hotloop.runs.plain import MAX_JSON_BYTES, canonical_json, parse_json
from hotloop.runs.segmented import Segmented
from hotloop.runs.segments import SavedArray, saved_arrays
from hotloop.runs.tensors import decode, encode
from hotloop.runs.verified import Verified

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


def newest_first(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    with explained("read", folder), os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False) and is_part_name(entry.name)]
    return [folder / name for name in sorted(names, key=_order, reverse=True)]


def _order(name: str) -> tuple[int, str, int]:
    """By env steps, also where they outgrow the digits that names are filled up to; then the latest save."""
    base, _, again = name.partition("-")
    return len(base), base, int(again) if again.isdecimal() else 0


def free_name(folder: Path, name: str) -> Path:
    """`name`, or `name-K` with K above all that exist, so that the latest save sorts last."""
    taken = [_order(path.name)[2] for path in newest_first(folder) if path.name.partition("-")[0] == name]
    return folder / (f"{name}-{max(taken) + 1}" if taken else name)
