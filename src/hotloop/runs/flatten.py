"""A nested state as flat named arrays plus a tree of everything else, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from hotloop.core.errors import RunError
from hotloop.core.types import Array
from hotloop.runs.plain import json_safe
from hotloop.runs.segmented import Segmented

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
    """A state taken apart: arrays by path ("optimiser/step"), those in segments, and the tree without either."""

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
