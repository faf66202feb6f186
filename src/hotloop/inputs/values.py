"""What users hand to a part, read into arrays: kept exactly or refused, with one sentence that names the argument.

The rule: floats are kept as float32, which is what networks compute with; whole numbers and bools stand for
themselves wherever they fit exactly; nothing else is converted. NaN and infinity are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hotloop.core.errors import ArgumentError
from hotloop.core.types import Array, ArraySpec, ObsSpec
from hotloop.inputs.values_kernels import count_outside

FLOAT, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
LARGEST_FLOAT = float(np.finfo(np.float32).max)
EXACT_IN_FLOAT32 = 2**24
"""Up to here every whole number is a float32 too."""
SCALARS: dict[str, frozenset[type]] = {
    "f": frozenset({float, np.float32, np.float64}),
    "i": frozenset({int, np.int64}),
    "b": frozenset({bool, np.bool_}),
}
KINDS = "fiub"
LONGEST_SHOWN = 40
Bounds = tuple[Any, Any]
"""The lowest and the highest value allowed; arrays of a row's shape where each entry has its own."""


class Values:
    """Reads one argument: one row of `spec` per env, or a single row without the leading 1 where there is one env.

    What it returns may be the array that was given, or one that its next call overwrites: copy it at once. Single rows
    go through an array of its own, which is quicker than asking each whether it is contiguous.
    """

    def __init__(self, name: str, spec: ArraySpec, num_envs: int, bounds: Bounds | None = None) -> None:
        self._name, self._dtype = name, spec.dtype
        self._shape = (num_envs, *spec.shape)
        self._one_row = spec.shape if num_envs == 1 else None
        if bounds is None and spec.dtype.kind == "f":
            bounds = (-LARGEST_FLOAT, LARGEST_FLOAT)
        self._bounds = bounds
        limits: Bounds = (0, 1) if bounds is None else bounds
        self._low, self._high = limits
        self._each = isinstance(self._high, np.ndarray)
        self._scalars = SCALARS.get(spec.dtype.kind, frozenset()) if self._one_row == () else frozenset()
        self._own = np.zeros(self._shape if num_envs == 1 else 0, spec.dtype)
        self._row, self._flat = self._own[:1].reshape(spec.shape if num_envs == 1 else 0), self._own.reshape(-1)

    def __call__(self, value: Any) -> Array:
        """`value` as a contiguous array [N, ...]."""
        if value.__class__ in self._scalars and self._low <= value <= self._high:
            self._flat[0] = value
            return self._own
        if value.__class__ is not np.ndarray:
            value = as_dtype(self._name, value, self._dtype)
        elif value.dtype is not self._dtype:
            is_double = value.dtype is DOUBLE and self._dtype is FLOAT
            value = (_rounded if is_double else as_dtype)(self._name, value, self._dtype)
        if value.shape == self._one_row:
            self._row[...] = value
            value, flat = self._own, self._flat
        elif value.shape == self._shape:
            if not value.flags.carray:  # kernels would be compiled anew for what is read-only or strided
                value = value.copy()
            flat = value.reshape(-1)
        else:
            raise self._wrong_shape(value.shape)
        if self._bounds is not None and (self._each or count_outside(flat, self._low, self._high)):
            self._require_within(value)
        return value

    def _require_within(self, value: Array) -> None:
        bad = ~((value >= self._low) & (value <= self._high))
        if bad.any() and self._dtype.kind == "f":
            raise _not_finite(self._name, value[bad][0])
        if bad.any():
            low, high = (np.broadcast_to(bound, value.shape)[bad][0] for bound in (self._low, self._high))
            raise ArgumentError(
                f"`{self._name}` holds {value[bad][0]}; expected {low} to {high}", "choices are counted from 0"
            )

    def _wrong_shape(self, found: tuple[int, ...]) -> ArgumentError:
        expected = f"{self._shape}" if self._one_row is None else f"{self._one_row}, or {self._shape}"
        hint = f"one row for each of {self._shape[0]} envs"
        if self._one_row is not None:
            several = found[1:] == self._one_row and found[:1] > (1,)
            hint = f"`num_envs={found[0]}` takes in several envs at once" if several else "as said to the constructor"
        return ArgumentError(f"`{self._name}` has shape {found}; expected {expected}", hint)


class DictValues:
    """Reads a dict of arrays, part by part."""

    def __init__(self, name: str, specs: Mapping[str, ArraySpec], num_envs: int) -> None:
        self._name = name
        self._parts = {part: Values(f"{name}[{part!r}]", spec, num_envs) for part, spec in specs.items()}

    def __call__(self, value: Any) -> dict[str, Array]:
        if not isinstance(value, Mapping) or value.keys() != self._parts.keys():
            found = f"has parts {sorted(map(str, value))}" if isinstance(value, Mapping) else f"is {_kind_of(value)}"
            hint = _reset_hint(self._name, value) or "as in `obs=`"
            raise ArgumentError(f"`{self._name}` {found}; expected a dict of {sorted(self._parts)}", hint)
        return {part: read(value[part]) for part, read in self._parts.items()}


def read_obs(name: str, spec: ObsSpec, num_envs: int) -> Values | DictValues:
    """The reader of observations of `spec`."""
    return DictValues(name, spec, num_envs) if isinstance(spec, dict) else Values(name, spec, num_envs)


def as_array(name: str, value: Any) -> Array:
    """Numbers, lists, arrays and tensors (of any device, with or without gradient) as an array."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = value.float().numpy() if str(value.dtype) == "torch.bfloat16" else value.numpy()
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        if hint := _reset_hint(name, value):
            raise ArgumentError(f"`{name}` is a tuple of an observation and a dict; expected numbers", hint) from None
        raise ArgumentError(f"`{name}` is no array: {error}", "its rows must be of one length") from error
    if array.dtype.kind not in KINDS:
        hint = _reset_hint(name, value) or "give numbers, an array or a tensor"
        raise ArgumentError(f"`{name}` is {_kind_of(value)}; expected numbers", hint)
    return array


def _reset_hint(name: str, value: Any) -> str:
    """Where the whole answer of an env's `reset` was given for an observation; empty elsewhere."""
    is_answer = isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], Mapping)
    return f"`{name}, info = env.reset()`: give the first of the two" if is_answer else ""


def as_dtype(name: str, value: Any, dtype: np.dtype) -> Array:
    """`value` as an array of `dtype`, by the rule above."""
    array = as_array(name, value)
    kind, wanted = array.dtype.kind, dtype.kind
    if array.dtype == dtype:
        return array
    if kind == wanted == "f":
        return _rounded(name, array, dtype)
    if kind == "f":
        raise _wrong_dtype(name, array, dtype, _conversion(name, value, array.ndim, "bool" if wanted == "b" else "int"))
    kept = array.astype(dtype)
    if wanted != "f" and (kept != array).any():
        raise _wrong_dtype(name, array, dtype, f"some of its values are no {dtype}")
    if wanted == "f" and kind != "b" and ((array > EXACT_IN_FLOAT32) | (array < -EXACT_IN_FLOAT32)).any():
        raise _wrong_dtype(name, array, dtype, "whole numbers above 2^24 are no float32; scale them, or give floats")
    return kept


def _rounded(name: str, array: Array, dtype: np.dtype) -> Array:
    """Looked at before it is rounded, since what is too large would become infinite with a warning."""
    if array.dtype is not DOUBLE:
        array = array.astype(DOUBLE)
    if dtype is FLOAT and count_outside(array.ravel(), -LARGEST_FLOAT, LARGEST_FLOAT):
        raise _not_finite(name, array[~(np.abs(array) <= LARGEST_FLOAT)][0])
    return array.astype(dtype)


def require_finite(name: str, array: Array) -> None:
    """Of a contiguous array."""
    if array.dtype.kind == "f":
        limits = np.finfo(array.dtype)
        if count_outside(array.reshape(-1), float(limits.min), float(limits.max)):
            raise _not_finite(name, array[~np.isfinite(array)][0])


def _wrong_dtype(name: str, array: Array, dtype: np.dtype, hint: str) -> ArgumentError:
    return ArgumentError(f"`{name}` is {array.dtype}; it is kept as {dtype}", hint)


def _conversion(name: str, value: Any, axes: int, kind: str) -> str:
    """How a user would write it, where that is what was meant."""
    if hasattr(value, "detach"):
        return f"e.g. `{name}.{'bool' if kind == 'bool' else 'long'}()`"
    return f"e.g. `{name}.astype({kind})`" if axes else f"e.g. `{kind}({name})`"


def _not_finite(name: str, value: Any) -> ArgumentError:
    return ArgumentError(f"`{name}` holds {value}; expected finite numbers", "look for where it arises")


def _kind_of(value: Any) -> str:
    if value is None:
        return "None"
    return f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"of type {type(value).__name__}"


def require_count(name: str, value: Any, lowest: int = 1) -> int:
    """A whole number of `lowest` or more."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < lowest:
        whole = isinstance(value, float) and value.is_integer() and value >= lowest
        hint = f"`{name}=int({value:g})`".replace("e+0", "e").replace("e+", "e") if whole else f"e.g. {lowest}"
        raise ArgumentError(f"`{name}` is {shown(value)}; expected a whole number of {lowest} or more", hint)
    return int(value)


def require_share(name: str, value: Any) -> float:
    """A number between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0.0 <= value <= 1.0:
        raise ArgumentError(f"`{name}` is {shown(value)}; expected a number between 0 and 1", "e.g. 0.99")
    return float(value)


def shown(value: Any) -> str:
    """For an error: a short value as it is, another by its type."""
    is_short = value is None or isinstance(value, bool | int | float | str | np.number)
    return repr(value) if is_short and len(repr(value)) <= LONGEST_SHOWN else f"of type {type(value).__name__}"
