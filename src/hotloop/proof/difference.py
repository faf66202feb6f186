"""The first difference between two answers: what differs, where, both values, how much and how often.

One type for functions, envs, networks and whole programs, as plain data. Types and structure are looked at first, then
dtypes, shapes, values.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hotloop.core.extras import torch_if_loaded
from hotloop.proof.scales import Scales, are_marks, scales_in, typical_size
from hotloop.proof.values import as_array, dtype_of, is_array, is_number, is_tensor, parts_of, shown_value

Kind = Literal["value", "dtype", "shape", "type", "keys", "length", "raised", "count"]
ROUNDINGS = 16
"""Of the values an entry stands with: so far sums may differ that are added up in another order."""
BFLOAT16_EPS = 2.0**-7
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


@dataclass
class LetPass:
    """The largest error that a tolerance let pass, over all that was compared with it."""

    error: float = 0.0
    any: bool = False
    """Whether a bit differed somewhere."""

    def note(self, error: float | None) -> None:
        self.any, self.error = True, max(self.error, error or 0.0)

    def as_data(self) -> dict[str, Any]:
        """For the evidence of a proof: empty where there is nothing to tell."""
        return {"largest error": f"{self.error:.2g}"} if self.any else {}


@dataclass(frozen=True)
class Tolerance:
    """An entry may differ by `value` times its own size or that of the row or column it stands in, and by a few
    roundings of what it may have been computed from (`scales.py`); where `value` is 0, not at all.

    Whole numbers, flags and text may not differ.
    """

    value: float = 1e-6
    scales: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """By path, how large each entry is over a whole play, say, where one array does not tell."""
    floor: float = 0.0
    """The size of all that is compared: rounding of large parts reaches small ones (gradients)."""
    let_pass: LetPass = dataclasses.field(default_factory=LetPass)

    def allowed(self, path: str, plain: np.ndarray, eps: float) -> Any:
        if self.value == 0 or plain.dtype.kind not in "fc":
            return 0.0
        if path in self.scales:
            found = Scales(np.maximum(np.abs(plain), self.scales[path]), self.scales[path])
        else:
            found = scales_in(plain, eps, self.floor)
        with np.errstate(invalid="ignore", over="ignore"):
            return self.value * found.local + min(ROUNDINGS * eps, MOST_ROOM) * found.rounded


EXACT = Tolerance(0.0)


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
    if is_array(plain) and is_array(fast):
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
    if not _differing(mine, theirs, 0.0).any():
        return None
    wrong = _differing(mine, theirs, tolerance.allowed(what, mine, eps_of(plain, mine)))
    if not wrong.any():
        tolerance.let_pass.note(_largest_error(mine, theirs))
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


def eps_of(value: Any, array: np.ndarray) -> float:
    if is_tensor(value) and value.dtype.is_floating_point:
        return float(torch_if_loaded().finfo(value.dtype).eps)
    if dtype_of(value) == "bfloat16":
        return BFLOAT16_EPS
    return float(np.finfo(array.dtype).eps) if array.dtype.kind in "fc" else 0.0


def size_of_all(values: Iterable[Any]) -> float:
    """Of the floats in some arrays and tensors, without marks, and without those that are far larger than most."""
    sizes = [np.zeros(0)]
    for value in values:
        array = as_array(value)
        if array.dtype.kind in "fc":
            sizes.append(np.abs(array[~are_marks(array, eps_of(value, array))]).reshape(-1).astype(np.float64))
    return typical_size(np.concatenate(sizes))


def _are_same(plain: Any, fast: Any) -> bool:
    if plain is fast or callable(plain):
        return True
    try:
        return bool(plain == fast)
    except Exception:  # an `==` of somebody's own
        return False
