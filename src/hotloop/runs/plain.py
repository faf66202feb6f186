"""JSON in and out: strict about types on the way out, about size and shape on the way in."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hotloop.core.errors import RunError
from hotloop.runs.files import read_file

MAX_JSON_BYTES = 64 * 2**20


def canonical_json(data: Any) -> bytes:
    """One spelling per value: sorted keys, no spaces, floats by repr (NaN and infinities in Python's spelling)."""
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def json_safe(value: Any, where: str) -> Any:
    """A JSON-safe copy of `value`: numpy scalars become Python's, anything that would not come back is refused."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [json_safe(item, where) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: json_safe(item, f"{where}/{key}") for key, item in value.items()}
    raise RunError(
        f"state `{where}` holds a {type(value).__name__}, which cannot be saved",
        "save numpy arrays, numbers, strings, None, or lists and dicts (with string keys) of them",
    )


def finite_or_null(value: Any) -> Any:
    """Strict JSON has no NaN or infinity: other tools read what we write, so they become null."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite_or_null(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite_or_null(item) for item in value]
    return value


def parse_json(data: bytes, path: Path) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} is not valid JSON: {error}") from error


def read_json_table(path: Path, limit: int = MAX_JSON_BYTES) -> dict[str, Any]:
    data = parse_json(read_file(path, limit), path)
    if not isinstance(data, dict):
        raise RunError(f"{path} holds a JSON {type(data).__name__} where an object was expected")
    return data
