"""One hash over a whole state: equal digests mean bit-identical runs."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any

from hotloop.runs.files import canonical_json
from hotloop.runs.tensors import Segmented, dtype_and_shape, plain_array, raw_bytes, split


def digest(state: Mapping[str, Any]) -> str:
    """SHA-256 over names, dtypes, shapes and bytes of all arrays and over all other values.

    Independent of the order of keys and of memory layout. Each piece is preceded by its length, so that no two
    states spell the same stream of bytes.
    """
    arrays, segmented, tree = split(state)
    result = hashlib.sha256()
    _add(result, canonical_json(tree))
    for name in sorted({*arrays, *segmented}):
        if name in arrays:
            array = arrays[name]
            _add(result, canonical_json([name, array.dtype.name, list(array.shape)]))
            _add(result, raw_bytes(array))
        else:
            _add_segments(result, name, segmented[name])
    return result.hexdigest()


def _add_segments(result: Any, name: str, array: Segmented) -> None:
    """As if the array were whole: how it is cut is no part of a state."""
    dtype, shape = dtype_and_shape(array)
    _add(result, canonical_json([name, dtype.name, shape]))
    result.update((dtype.itemsize * math.prod(shape)).to_bytes(8, "little"))
    for piece in array.pieces:
        result.update(raw_bytes(plain_array(piece, name)))


def _add(result: Any, data: bytes | memoryview) -> None:
    result.update(len(data).to_bytes(8, "little"))
    result.update(data)
