"""The segments of an array as they lie in a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hotloop.core.types import Array
from hotloop.runs.files import FileRecord
from hotloop.runs.manifest import Manifest, damage_named, read_verified
from hotloop.runs.tensors import decode


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
