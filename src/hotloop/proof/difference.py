"""The first difference between two answers: what differs, where, both values, how much and how often.

One type for functions, envs, networks and whole programs, as plain data. Types and structure are looked at first, then
dtypes, shapes, values.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from hotloop.proof.values import as_array, dtype_of, is_number, parts_of, shown_value

Kind = Literal["value", "dtype", "shape", "type", "keys", "length", "raised", "count"]
ROUNDINGS = 8
"""Of the values an entry stands with: so far sums may differ that are added up in another order."""
MOST_ROOM = 0.01
"""Of the same, however coarse the dtype."""


@dataclass(frozen=True)
class Difference:
    """`what` differs, at `when`; texts are complete in themselves, numbers are there where values were compared."""

    what: str
    """`result[0]`, `reward`, `gradient of x`, `q_net.2.weight`."""
    kind: Kind
    plain: str
    fast: str
    index: tuple[int, ...] = ()
    """Of the first entry that differs; empty for a number, or where whole values differ."""
    largest_error: float | None = None
    """The largest |fast - plain| of all entries; None where they are no numbers."""
    differing: int = 1
    total: int = 1
    when: str = ""
    """The input, or env and env step, or update."""
    reproduction: str = ""
    """What shows it again: the smallest input, or the actions that led there."""

    def sentence(self) -> str:
        place = f"[{', '.join(map(str, self.index))}]" if self.index else ""
        kind = "" if self.kind in ("value", "raised") else f" ({self.kind})"
        when = f" {self.when}" if self.when else ""
        text = f"`{self.what}{place}`{kind} differs{when}: plain {self.plain}, fast {self.fast}"
        if self.total > 1:
            text += f"; {self.differing:,} of {self.total:,} entries differ"
            text += "" if self.largest_error is None else f", by {self.largest_error:.3g} at most"
        return text

    def as_data(self) -> dict[str, Any]:
        data = dataclasses.asdict(self) | {"index": list(self.index)}
        error = self.largest_error
        return data | {"largest_error": error if error is not None and np.isfinite(error) else None}

    def at(self, when: str, reproduction: str = "") -> Difference:
        return dataclasses.replace(self, when=when, reproduction=reproduction or self.reproduction)


@dataclass(frozen=True)
class Tolerance:
    """An entry may differ by `value` times its own size or the root mean square of the entries it stands with,
    whichever is larger, and by a few roundings of the latter; where `value` is 0, not at all.

    Whole numbers, flags and text may not differ.
    """

    value: float = 1e-6
    scales: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """By path, what to take for the root mean square: that of an observation's entry over a whole play, say."""
    floor: float = 0.0
    """The root mean square of all that is compared: rounding of large parts reaches small ones (gradients)."""

    def allowed(self, path: str, plain: np.ndarray, eps: float) -> Any:
        if self.value == 0 or plain.dtype.kind not in "fc":
            return 0.0
        size = np.abs(plain)
        scale = self.scales.get(path)
        scale = root_mean_square(size) if scale is None else scale
        return self.value * np.maximum(size, scale) + min(ROUNDINGS * eps, MOST_ROOM) * np.maximum(scale, self.floor)


EXACT = Tolerance(0.0)


def root_mean_square(values: np.ndarray) -> float:
    """Of those that are finite; measured by the largest, whose square may be too large for a number."""
    sizes = np.abs(values[np.isfinite(values)]).astype(np.float64)
    largest = sizes.max(initial=0.0)
    return float(largest * np.sqrt(np.mean((sizes / largest) ** 2))) if largest > 0 else 0.0


def first_difference(
    what: str, plain: Any, fast: Any, tolerance: Tolerance = EXACT, seen: tuple[int, ...] = ()
) -> Difference | None:
    """The first part in which two values differ, in the order of the plain one's parts."""
    if type(plain) is type(fast) and isinstance(plain, bool | int | float | str) and plain == fast:
        return None
    if is_number(plain) and is_number(fast):
        return _of_arrays(what, plain, fast, tolerance)
    if type(plain).__name__ != type(fast).__name__:
        return Difference(what, "type", type(plain).__name__, type(fast).__name__)
    if isinstance(plain, np.ndarray | torch.Tensor):
        return _of_arrays(what, plain, fast, tolerance)
    mine, theirs = parts_of(plain), parts_of(fast)
    if mine is None or theirs is None:
        return None if _are_same(plain, fast) else Difference(what, "value", shown_value(plain), shown_value(fast))
    if id(plain) in seen:
        return None
    return _of_parts(what, dict(mine), dict(theirs), tolerance, (*seen, id(plain)))


def _of_parts(
    what: str, plain: dict[str, Any], fast: dict[str, Any], tolerance: Tolerance, seen: tuple[int, ...]
) -> Difference | None:
    if plain.keys() != fast.keys():
        only = [", ".join(name for name in one if name not in other) for one, other in ((plain, fast), (fast, plain))]
        if all(name.startswith("[") and name[1:-1].isdigit() for name in (*plain, *fast)):
            return Difference(what, "length", str(len(plain)), str(len(fast)))
        return Difference(what, "keys", f"has {only[0] or 'no more'}", f"has {only[1] or 'no more'}")
    found = (first_difference(what + name, plain[name], fast[name], tolerance, seen) for name in plain)
    return next((one for one in found if one is not None), None)


def _of_arrays(what: str, plain: Any, fast: Any, tolerance: Tolerance) -> Difference | None:
    if isinstance(plain, np.ndarray) and plain.dtype == fast.dtype and np.array_equal(plain, fast):
        return None
    dtypes = dtype_of(plain), dtype_of(fast)
    if dtypes[0] != dtypes[1]:
        return Difference(what, "dtype", *dtypes)
    mine, theirs = as_array(plain), as_array(fast)
    if mine.shape != theirs.shape:
        return Difference(what, "shape", str(list(mine.shape)), str(list(theirs.shape)))
    wrong = _differing(mine, theirs, tolerance.allowed(what, mine, _eps(plain, mine)))
    if not wrong.any():
        return None
    place = tuple(int(number) for number in np.argwhere(wrong)[0]) if wrong.ndim else ()
    count = int(wrong.sum())
    largest = _largest_error(mine, theirs)
    return Difference(what, "value", _entry(mine, place), _entry(theirs, place), place, largest, count, wrong.size)


def _entry(array: np.ndarray, place: tuple[int, ...]) -> str:
    return shown_value(array[place].item() if array.dtype.kind in "fiub" else array[place])


def _differing(plain: np.ndarray, fast: np.ndarray, allowed: Any) -> np.ndarray:
    """Entry by entry; NaN is equal to NaN, and an infinity to itself alone."""
    same = np.asarray(plain == fast)
    if plain.dtype.kind not in "fc":
        return ~same
    same = same | (np.isnan(plain) & np.isnan(fast))
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(fast - plain) <= allowed
    return ~(same | (near & np.isfinite(plain) & np.isfinite(fast)))


def _largest_error(plain: np.ndarray, fast: np.ndarray) -> float | None:
    if plain.dtype.kind not in "fciub":
        return None
    kind = np.complex128 if plain.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.abs(fast.astype(kind) - plain.astype(kind))
    return float(np.max(np.where(np.isnan(errors), np.inf, errors)[_differing(plain, fast, 0.0)]))


def _eps(value: Any, array: np.ndarray) -> float:
    if isinstance(value, torch.Tensor) and value.dtype.is_floating_point:
        return torch.finfo(value.dtype).eps
    return float(np.finfo(array.dtype).eps) if array.dtype.kind in "fc" else 0.0


def _are_same(plain: Any, fast: Any) -> bool:
    if plain is fast or callable(plain):
        return True
    try:
        return bool(plain == fast)
    except Exception:  # an `==` of somebody's own
        return False
