"""One hash over a whole state: equal digests mean bit-identical runs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from hotloop.runs.flatten import raw_bytes, split
from hotloop.runs.plain import canonical_json


def digest(state: Mapping[str, Any]) -> str:
    """SHA-256 over names, dtypes, shapes and bytes of all arrays and over all other values.

    Independent of the order of keys and of memory layout. Each piece is preceded by its length, so that no two
    states spell the same stream of bytes.
    """
    arrays, tree = split(state)
    result = hashlib.sha256()
    _add(result, canonical_json(tree))
    for name in sorted(arrays):
        array = arrays[name]
        _add(result, canonical_json([name, array.dtype.name, list(array.shape)]))
        _add(result, raw_bytes(array))
    return result.hexdigest()


def _add(result: Any, data: bytes | memoryview) -> None:
    result.update(len(data).to_bytes(8, "little"))
    result.update(data)
