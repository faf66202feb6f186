"""JSON and TOML in, JSON out: strict about types on the way out; about size, depth and numbers on the way in, since
anybody may have written the file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hotloop.core.errors import RunError
from hotloop.core.toml import DEEPEST, require_shallow
from hotloop.runs.files import read_file

MAX_JSON_BYTES = 64 * 2**20
_MOST_DIGITS = 20


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


def parse_strict(data: bytes) -> Any:
    """What we write ourselves outside checkpoints. As there, a number that is not finite is null, and so is one of more
    than 20 digits. Raises ValueError, also for what is nested beyond 16 levels and for text that cannot be written."""
    value = _STRICT.decode(data.decode())
    if data.count(b"[") + data.count(b"{") > DEEPEST:
        require_shallow(value)
    if b"\\ud" in data or b"\\uD" in data:
        json.dumps(value, ensure_ascii=False).encode()  # halves of surrogate pairs, which no terminal and no file takes
    return value


def _whole(text: str) -> int | None:
    return int(text) if len(text) <= _MOST_DIGITS else None


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


_STRICT = json.JSONDecoder(parse_int=_whole, parse_float=_finite, parse_constant=lambda name: None)


def parse_json(data: bytes, path: Path) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} is not valid JSON: {error}") from error


def read_json_table(path: Path, limit: int = MAX_JSON_BYTES) -> dict[str, Any]:
    try:
        data = parse_strict(read_file(path, limit))
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(data, dict):
        raise RunError(f"{path} holds a JSON {type(data).__name__} where an object was expected")
    return data
