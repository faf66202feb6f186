"""Values in short: equal fingerprints mean equal numbers, whatever type and width holds them.

A number is its own fingerprint; an array's is a hash of its shape and its values as 64-bit numbers. With `near`, arrays
of floats have their norm and four projections on fixed directions too, by which two that differ can be held apart.
Numbers of `LARGE` and more, infinite ones and NaN have a norm and projections of their own: a mask of -1e9 would drown
everything that stands beside it.
"""

from __future__ import annotations

import math
import random
import sys
from array import array
from hashlib import blake2b
from typing import Any

NOTHING = "-"
UNREADABLE = "?"
PROJECTIONS = 4
WIDTH = 4096
"""Numbers that one row of signs covers; longer arrays are folded to it, each row with a sign of its own."""
DEEPEST = 8
LARGE = 1e5
INFINITE, NOT_A_NUMBER = 800.0, 1600.0
"""What stands for them among the logarithms of large numbers, all of which are smaller."""

_signs: dict[tuple[int, int], Any] = {}


def fingerprint(value: Any, near: bool = False) -> str:
    """One word: no blanks in it."""
    try:
        return _of(value, near)
    except Exception:  # somebody's own type: it is compared by what it is called
        return UNREADABLE + type(value).__name__


def _of(value: Any, near: bool) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, (bool, int)):
        return str(int(value))
    if isinstance(value, float):
        return repr(float(value) + 0.0)
    leaves: list[tuple[str, str, tuple[int, ...], bytes, Any]] = []
    _flatten(value, "", leaves, 0)
    if len(leaves) == 1 and leaves[0][0] == "":
        _, kind, shape, data, _numbers = leaves[0]
        if kind in "dq" and math.prod(shape) == 1:
            number = array(kind, data)[0]
            return repr(number) if kind == "d" else str(number)
    digest = blake2b(digest_size=8)
    for path, kind, shape, data, _ in leaves:
        digest.update(f"{path}|{kind}{shape}|".encode())
        digest.update(data)
    floats = [numbers for _, kind, _, _, numbers in leaves if kind == "d"]
    if not near or not floats or len(floats) < len(leaves):
        return "#" + digest.hexdigest()
    return "#" + "~".join([digest.hexdigest(), *[f"{number:.17g}" for number in measures(floats)]])


def _flatten(value: Any, path: str, leaves: list[Any], depth: int) -> None:
    """(path, d or q or other, shape, bytes, numbers) of everything inside, in order."""
    if depth > DEEPEST:
        raise ValueError("nested too deeply")
    found = as_numbers(value)
    if found is not None:
        leaves.append((path, *found))
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            _flatten(value[key], f"{path}/{key}", leaves, depth + 1)
    elif isinstance(value, (list, tuple)):
        for place, part in enumerate(value):
            _flatten(part, f"{path}/{place}", leaves, depth + 1)
    elif value is None or isinstance(value, (str, bytes)):
        leaves.append((path, "s", (), repr(value).encode(), None))
    else:
        leaves.append((path, "?", (), type(value).__name__.encode(), None))


def as_numbers(value: Any) -> tuple[str, tuple[int, ...], bytes, Any] | None:
    """d for floats, q for whole numbers and flags, with shape, bytes and what can be computed with; None for others."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        value = _from_torch(torch, value)
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)) and value.dtype.kind in "fiub":
        is_float = value.dtype.kind == "f"
        wide = numpy.ascontiguousarray(value, dtype=numpy.float64 if is_float else numpy.int64)
        if is_float:
            wide = wide + 0.0  # minus zero is zero
        return "d" if is_float else "q", tuple(int(size) for size in numpy.shape(value)), wide.tobytes(), wide
    if isinstance(value, (bool, int, float)):
        value = [value]
        shape: tuple[int, ...] = ()
    elif isinstance(value, (list, tuple)) and value and all(isinstance(one, (bool, int, float)) for one in value):
        shape = (len(value),)
    else:
        return None
    kind = "d" if any(isinstance(one, float) for one in value) else "q"
    packed = array(kind, [one + 0.0 for one in value] if kind == "d" else [int(one) for one in value])
    return kind, shape, packed.tobytes(), packed


def _from_torch(torch: Any, value: Any) -> Any:
    value = value.detach()
    if value.is_sparse:
        value = value.to_dense()
    if value.is_complex():
        value = torch.view_as_real(value.resolve_conj())
    if value.is_floating_point():
        value = value.to("cpu", torch.float64)
    elif value.is_quantized:
        value = value.dequantize().to("cpu", torch.float64)
    return value.cpu().numpy()


def measures(arrays: list[Any]) -> list[float]:
    """Norm and projections of all numbers below `LARGE` together, and where there are larger ones of those."""
    parts = [_split(numbers) for numbers in arrays]
    found = _together([small for small, _ in parts])
    if any(large is not None for _, large in parts):
        found += _together([[] if large is None else large for _, large in parts])
    return found


def _together(arrays: list[Any]) -> list[float]:
    square, projected = 0.0, [0.0] * PROJECTIONS
    for place, numbers in enumerate(arrays):
        part = _measures(numbers, place)
        square += part[0]
        projected = [one + two for one, two in zip(projected, part[1])]
    return [math.sqrt(square), *projected]


def _split(numbers: Any) -> tuple[Any, Any]:
    """The same numbers without the large ones, and these alone, as logarithms; zeros in the place of the others."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        if all(abs(number) < LARGE for number in numbers):
            return numbers, None
        return [one if abs(one) < LARGE else 0.0 for one in numbers], [_large(one) for one in numbers]
    flat = numpy.asarray(numbers, dtype=numpy.float64).reshape(-1)
    is_large = ~(numpy.abs(flat) < LARGE)  # NaN too
    if not is_large.any():
        return flat, None
    with numpy.errstate(all="ignore"):
        size = numpy.minimum(1.0 + numpy.log(numpy.abs(flat) / LARGE), INFINITE)
        large = numpy.where(numpy.isnan(flat), NOT_A_NUMBER, numpy.sign(flat) * size)
    return numpy.where(is_large, 0.0, flat), numpy.where(is_large, large, 0.0)


def _large(number: float) -> float:
    if number != number:
        return NOT_A_NUMBER
    if abs(number) < LARGE:
        return 0.0
    return math.copysign(INFINITE if math.isinf(number) else 1.0 + math.log(abs(number) / LARGE), number)


def _measures(numbers: Any, place: int) -> tuple[float, list[float]]:
    numpy = sys.modules.get("numpy")
    if numpy is None:
        square = sum(number * number for number in numbers)
        signs = [_python_signs(len(numbers), place * PROJECTIONS + one) for one in range(PROJECTIONS)]
        return square, [sum(sign * number for sign, number in zip(row, numbers)) for row in signs]
    flat = numpy.asarray(numbers, dtype=numpy.float64).reshape(-1)
    square = float(flat @ flat)
    rows = -(-flat.size // WIDTH)
    if rows > 1:
        flat = numpy.concatenate([flat, numpy.zeros(rows * WIDTH - flat.size)]).reshape(rows, WIDTH)
    found = []
    for one in range(PROJECTIONS):
        seed = place * PROJECTIONS + one
        folded = flat if rows <= 1 else _numpy_signs(numpy, rows, -1 - seed) @ flat
        found.append(float(folded @ _numpy_signs(numpy, folded.size, seed)))
    return square, found


def _python_signs(size: int, seed: int) -> list[float]:
    bits = random.Random(seed).getrandbits(8 * size or 8).to_bytes(size or 1, "little")
    return [1.0 if byte & 1 else -1.0 for byte in bits[:size]]


def _numpy_signs(numpy: Any, size: int, seed: int) -> Any:
    signs = _signs.get((size, seed))
    if signs is None:
        signs = _signs[size, seed] = numpy.array(_python_signs(size, seed))
    return signs


def row_of(value: Any, place: int, rows: int) -> Any:
    """Of what is given for `rows` envs at once, that of one; the whole where it has no such rows."""
    if isinstance(value, dict):
        return {key: row_of(part, place, rows) for key, part in value.items()}
    if isinstance(value, tuple) and value and all(hasattr(part, "__len__") and len(part) == rows for part in value):
        return tuple(row_of(part, place, rows) for part in value)
    try:
        return value[place] if len(value) == rows else value
    except TypeError:
        return value
