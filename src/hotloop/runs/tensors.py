"""Named arrays as a safetensors file: an 8-byte length, a JSON header, then the bytes of each array.

Written here, piece by piece, because the library's `save` first builds the whole file in memory: a replay of a few
gigabytes would need twice its size at every checkpoint. Read by the library, which checks the header.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.numpy import load

from hotloop.core.types import Array
from hotloop.runs.files import explained, opened
from hotloop.runs.flatten import DTYPES, raw_bytes
from hotloop.runs.plain import parse_strict

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
