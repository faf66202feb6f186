"""Named arrays as a safetensors file: an 8-byte length, a JSON header, then the bytes of each array.

Written here, piece by piece, because the library's `save` first builds the whole file in memory: a replay of a few
gigabytes would need twice its size at every checkpoint. Read by the library, which checks the header.

A nested state as flat named arrays plus a tree of everything else, and back.

An array that is saved in segments, one file each, so that a checkpoint writes only what has changed.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from hotloop.core.errors import RunError
from hotloop.core.types import Array
from hotloop.runs.files import explained, json_safe, opened, parse_strict


@runtime_checkable
class Segmented(Protocol):
    """An array cut along its first axis, at least one piece. Where two versions are one object, so are the bytes of
    their pieces: whoever changes a piece gives it a new version, `object()`."""

    @property
    def pieces(self) -> Iterable[Array]: ...

    @property
    def versions(self) -> Sequence[object]: ...


def dtype_and_shape(array: Segmented) -> tuple[np.dtype, list[int]]:
    """Those of the whole array. Raises ValueError where pieces do not fit together."""
    kinds = [(piece.dtype, piece.shape) for piece in array.pieces]
    dtype, shape = kinds[0]
    if any(other != dtype or each[1:] != shape[1:] for other, each in kinds):
        raise ValueError("the segments of an array differ in dtype or in the shape of a row")
    return dtype, [sum(each[0] for _, each in kinds), *shape[1:]]


SEPARATOR = "/"


DTYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
}
"""Numpy's name and safetensors' name of what can be saved."""


class Split(NamedTuple):
    """A state taken apart: arrays by path ("optimizer/step"), those in segments, and the tree without either."""

    arrays: dict[str, Array]
    segmented: dict[str, Segmented]
    tree: dict[str, Any]


def split(state: Mapping[str, Any]) -> Split:
    """Arrays come C-ordered and little-endian."""
    taken = Split({}, {}, {})
    return taken._replace(tree=_take_arrays(state, "", taken))


def join(arrays: Mapping[str, Any], tree: dict[str, Any]) -> dict[str, Any]:
    """The inverse of `split`; fills `tree`. Raises ValueError where a path runs through something not a dict."""
    for path, array in arrays.items():
        *parents, name = path.split(SEPARATOR)
        place = tree
        for parent in parents:
            place = place.setdefault(parent, {})
            if not isinstance(place, dict):
                raise ValueError(f"array {path!r} lies inside a value")
        if name in place:
            raise ValueError(f"array {path!r} is also a value")
        place[name] = array
    return tree


def raw_bytes(array: Array) -> memoryview:
    """The bytes of a C-ordered array without copying (`memoryview.cast` refuses empty ones)."""
    return array.reshape(-1).view(np.uint8).data


def _take_arrays(state: Mapping[str, Any], prefix: str, taken: Split) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in state.items():
        path = prefix + _checked(key, prefix)
        if isinstance(value, np.ndarray):
            taken.arrays[path] = plain_array(value, path)
        elif isinstance(value, Segmented):
            taken.segmented[path] = value
        elif isinstance(value, Mapping):
            tree[key] = _take_arrays(value, path + SEPARATOR, taken)
        else:
            tree[key] = json_safe(value, path)
    return tree


def _checked(key: Any, prefix: str) -> str:
    if not isinstance(key, str) or not key or SEPARATOR in key or key == "__metadata__":
        raise RunError(
            f"state `{prefix}` has the key {key!r}, which cannot be saved",
            f"keys are non-empty strings without {SEPARATOR!r}, and not `__metadata__`",
        )
    return key


def plain_array(array: Array, path: str) -> Array:
    if array.dtype.name not in DTYPES:
        raise RunError(
            f"state `{path}` has dtype {array.dtype}, which cannot be saved", f"use one of {', '.join(DTYPES)}"
        )
    # np.ascontiguousarray would turn a 0-d array into a 1-d one
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")


_CHUNK = 16 * 2**20
_MAX_HEADER = 2**20


def encode(arrays: Mapping[str, Array]) -> Iterator[bytes | memoryview]:
    """The file in pieces. Wide elements come first, so that every array starts aligned."""
    names = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    yield _header(arrays, names)
    for name in names:
        data = raw_bytes(arrays[name])
        for start in range(0, len(data), _CHUNK):
            yield data[start : start + _CHUNK]


def decode(data: bytes) -> dict[str, Array]:
    """Arrays that own their memory and can be written to. Raises ValueError where the header is wrong."""
    try:
        return load(data)
    except (SafetensorError, KeyError, TypeError, OverflowError) as error:  # KeyError: a dtype numpy has not
        raise ValueError(f"not a safetensors file we can read: {error}") from error


def read_shapes(path: Path) -> dict[str, list[int]]:
    """The shape of each array, from the header alone. Raises ValueError, TypeError or KeyError where it is none."""
    with explained("read", path), opened(path) as (descriptor, _):
        (length,) = struct.unpack("<Q", os.pread(descriptor, 8, 0).ljust(8, b"\0"))
        if length > _MAX_HEADER:
            raise ValueError(f"a header of {length} bytes")
        entries = parse_strict(os.pread(descriptor, length, 8))
    return {name: list(entry["shape"]) for name, entry in entries.items() if name != "__metadata__"}


def _header(arrays: Mapping[str, Array], names: list[str]) -> bytes:
    entries, start = {}, 0
    for name in names:
        array = arrays[name]
        end = start + array.nbytes
        entries[name] = {"dtype": DTYPES[array.dtype.name], "shape": list(array.shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text
