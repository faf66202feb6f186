"""What a learner is handed, read into arrays: kept exactly or refused, with one sentence that names the argument.

Floats are kept as float32, which is what networks compute with; whole numbers stand for themselves where they fit
exactly; nothing else is converted. An array that is right already is taken as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hotloop.core.errors import ArgumentError
from hotloop.core.types import Array, ArraySpec, Obs, ObsSpec

FLOAT, INT, BOOL = np.dtype(np.float32), np.dtype(np.int64), np.dtype(np.bool_)
TORCH = {FLOAT: torch.float32, INT: torch.int64, BOOL: torch.bool}
EXACT_IN_FLOAT32 = 2**24
"""Up to here every whole number is a float32 too."""


def read_array(name: str, value: Any, dtype: np.dtype[Any]) -> Any:
    """`value` as a contiguous array of `dtype`; a tensor on another device than a CPU stays a tensor."""
    if value.__class__ is np.ndarray and value.dtype is dtype and value.flags.c_contiguous:
        return value
    if isinstance(value, Tensor) and value.device.type != "cpu":
        if value.dtype is not TORCH[dtype]:
            raise ArgumentError(f"`{name}` is {value.dtype}; expected {TORCH[dtype]}", f"`.to({TORCH[dtype]})`")
        return value.detach().contiguous()
    return np.ascontiguousarray(_converted(name, as_array(name, value), dtype))


def as_array(name: str, value: Any) -> Array:
    """Numbers, lists, arrays and tensors as an array."""
    if isinstance(value, Tensor):
        value = value.detach().cpu().numpy()
    if value is None:
        raise ArgumentError(f"`{name}` is missing", "give an array or a tensor")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ArgumentError(f"`{name}` is no array: {error}", "its rows must be of one length") from error
    if array.dtype.kind not in "fiub":
        raise ArgumentError(f"`{name}` is {_kind_of(value)}; expected numbers", "give an array or a tensor")
    return array


def _kind_of(value: Any) -> str:
    return f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"


def _converted(name: str, array: Array, dtype: np.dtype[Any]) -> Array:
    kind, wanted = array.dtype.kind, dtype.kind
    if array.dtype == dtype or (kind == wanted == "f"):
        return array.astype(dtype, copy=False)
    if kind == "f" or (kind == "b") != (wanted == "b") and wanted == "b":
        raise ArgumentError(f"`{name}` is {array.dtype}; expected {dtype}", f"`.astype(np.{dtype})` if that is meant")
    if wanted == "f" and kind != "b" and (np.abs(array.astype(np.float64)) > EXACT_IN_FLOAT32).any():
        raise ArgumentError(f"`{name}` is {array.dtype} with numbers above 2^24, which are no float32", "scale them")
    if wanted == "i" and kind == "u" and (array > np.iinfo(np.int64).max).any():
        raise ArgumentError(f"`{name}` is {array.dtype} with numbers above those of int64", "choices count from 0")
    return array.astype(dtype)


def read_obs(name: str, value: Any, as_floats: bool) -> Obs:
    """An observation, or the parts of one. Whole numbers (bytes of an image, indices) stay what they are unless
    `as_floats`, since what they mean is the network's to say."""
    if value.__class__ is np.ndarray and value.dtype is FLOAT and value.flags.c_contiguous:
        return value
    if isinstance(value, Mapping):
        return {str(part): read_obs(f"{name}[{part!r}]", one, as_floats) for part, one in value.items()}  # type: ignore
    if isinstance(value, Tensor) and value.device.type != "cpu":
        return value.detach().contiguous()  # type: ignore[return-value]
    array = as_array(name, value)
    return read_array(name, array, FLOAT if as_floats or array.dtype.kind == "f" else array.dtype)


def spec_of(obs: Obs, leading: int) -> ObsSpec:
    """Of one observation, of which `obs` has several after `leading` axes."""
    if isinstance(obs, dict):
        return {name: ArraySpec(tuple(part.shape[leading:]), part.dtype) for name, part in obs.items()}
    return ArraySpec(tuple(obs.shape[leading:]), obs.dtype)


def shape_of(spec: ObsSpec) -> Any:
    return {name: part.shape for name, part in spec.items()} if isinstance(spec, dict) else spec.shape


def read_spec(given: Any) -> ObsSpec | None:
    """`obs=`: a shape (of float32), a Gymnasium space, or a dict of either; None: not known yet."""
    if given is None:
        return None
    parts = getattr(given, "spaces", given)
    if isinstance(parts, Mapping):
        return {str(name): _array_spec(part) for name, part in parts.items()}
    return _array_spec(given)


def _array_spec(given: Any) -> ArraySpec:
    if isinstance(given, int):
        return ArraySpec((given,))
    if isinstance(given, tuple | list) and all(isinstance(size, int) and size > 0 for size in given):
        return ArraySpec(tuple(given))
    shape, dtype = getattr(given, "shape", None), getattr(given, "dtype", None)
    if not isinstance(shape, tuple) or dtype is None:
        raise ArgumentError(f"`obs` is {given!r}; expected a shape or a Gymnasium space", "e.g. `obs=(4,)`")
    return ArraySpec(shape, FLOAT if np.dtype(dtype).kind == "f" else np.dtype(dtype))


def require_number(name: str, value: Any, low: float, high: float, hint: str, open_below: bool = False) -> float:
    """A finite number between `low` and `high`."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not (low < value if open_below else low <= value) or not value <= high or value == np.inf:
        raise ArgumentError(f"`{name}` is {value!r}; expected {hint}", f"e.g. `{name}={hint.rpartition(' ')[2]}`")
    return float(value)


def require_count(name: str, value: Any, lowest: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < lowest:
        raise ArgumentError(f"`{name}` is {value!r}; expected a whole number of {lowest} or more", f"e.g. {lowest}")
    return int(value)


def require_one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ArgumentError(f"`{name}` is {value!r}; expected one of {', '.join(allowed)}", f"`{name}={allowed[0]!r}`")
