"""Observations of any shape as arrays we own: the parts of a space in a flat list, and encoders that write them.

Plain data, without Gymnasium: a checkpoint keeps the list, so that a loaded agent takes what its env gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hotloop.core.types import Array, ArraySpec, Obs, ObsSpec
from hotloop.envs.foreign import BadValueError

NUMBER_KINDS = "fiub"
MOST_PARTS = 10_000


@dataclass(frozen=True)
class ObsPart:
    """Numbers or choices somewhere in an env's own observation."""

    path: tuple[str | int, ...]
    """Keys of Dicts and places in Tuples that lead to it; empty where it is the whole observation."""
    shape: tuple[int, ...]
    dtype: np.dtype
    counts: tuple[int, ...] = ()
    """How many states each choice has; empty where these are numbers."""
    first: tuple[int, ...] = ()
    """What each choice is counted from."""

    @property
    def name(self) -> str:
        return ".".join(map(str, self.path))

    def pick(self, raw: Any) -> Any:
        try:
            for key in self.path:
                raw = raw[key]
        except (KeyError, TypeError, IndexError) as error:
            raise BadValueError(f"without part `{self.name}`") from error
        return raw


class ObsEncoder(Protocol):
    """Writes what an env returned into rows of a fresh array, refusing what its space does not allow."""

    @property
    def spec(self) -> ObsSpec: ...

    def empty(self, num_envs: int) -> Any: ...

    def write(self, obs: Any, row: Any, raw: Any) -> None:
        """Copy one env's `raw` observation to `obs[row]`."""
        ...

    def write_all(self, obs: Any, raw: Any) -> None:
        """Copy a vector env's `raw` [N, ...] observations."""
        ...


class NumbersEncoder:
    """Numbers of one shape: uint8 stays (images), everything else becomes float32."""

    def __init__(self, part: ObsPart, keep_bytes: bool = True) -> None:
        self._bytes = part.dtype == np.uint8
        self._source = part.dtype
        self._shape = part.shape
        dtype = np.uint8 if self._bytes and keep_bytes else np.float32
        self.spec = ArraySpec(part.shape or (1,), np.dtype(dtype))

    def empty(self, num_envs: int) -> Array:
        return np.empty((num_envs, *self.spec.shape), self.spec.dtype)

    def write(self, obs: Array, row: Any, raw: Any) -> None:
        if raw.__class__ is not np.ndarray or raw.dtype is not self._source:
            raw = self._as_numbers(raw)
        if raw.shape != self._shape:
            raise BadValueError(f"of shape {raw.shape} where its space has shape {self._shape}")
        obs[row] = raw

    def write_all(self, obs: Array, raw: Any) -> None:
        raw = self._as_numbers(raw)
        if raw.shape != (len(obs), *self._shape):
            raise BadValueError(f"of shape {raw.shape} where {(len(obs), *self._shape)} was expected")
        obs[...] = raw.reshape(obs.shape)

    def _as_numbers(self, raw: Any) -> Array:
        try:
            raw = np.asarray(raw)
        except ValueError as error:
            raise BadValueError(f"that is not an array ({error})") from error
        allowed = "u" if self._bytes else NUMBER_KINDS
        if raw.dtype.kind not in allowed or (self._bytes and raw.dtype != np.uint8):
            raise BadValueError(f"of dtype {raw.dtype} where its space has {self._source}")
        return raw


class OneHotEncoder:
    """One of `n` states as a row of zeros with a single one."""

    def __init__(self, part: ObsPart) -> None:
        (self._count,), (self._start,) = part.counts, part.first
        self.spec = ArraySpec((self._count,))

    def empty(self, num_envs: int) -> Array:
        return np.empty((num_envs, self._count), np.float32)

    def write(self, obs: Array, row: Any, raw: Any) -> None:
        target = obs[row]
        target[...] = 0.0
        target[self._position(raw)] = 1.0

    def write_all(self, obs: Array, raw: Any) -> None:
        if np.shape(raw) != (len(obs),):
            raise BadValueError(f"of shape {np.shape(raw)} where {(len(obs),)} was expected")
        for row, value in enumerate(raw):
            self.write(obs, row, value)

    def _position(self, raw: Any) -> int:
        if isinstance(raw, float) or (not np.isscalar(raw) and np.shape(raw) != ()):
            raise BadValueError(f"{raw!r} where a whole number was expected")
        position = int(raw) - self._start
        if not 0 <= position < self._count:
            raise BadValueError(f"{raw} outside {self._start} .. {self._start + self._count - 1}")
        return position


class ManyOneHotEncoder:
    """Several choices, a row of zeros with a single one for each, side by side."""

    def __init__(self, part: ObsPart) -> None:
        self._shape = part.shape
        self._counts, self._first = np.array(part.counts), np.array(part.first)
        self._starts = np.cumsum(self._counts) - self._counts  # of each choice in the row
        self.spec = ArraySpec((int(self._counts.sum()),))

    def empty(self, num_envs: int) -> Array:
        return np.empty((num_envs, *self.spec.shape), np.float32)

    def write(self, obs: Array, row: Any, raw: Any) -> None:
        self.write_all(obs[row][None], np.asarray(raw)[None])

    def write_all(self, obs: Array, raw: Any) -> None:
        raw = np.asarray(raw)
        if raw.shape != (len(obs), *self._shape) or raw.dtype.kind not in "iu":
            expected = f"whole numbers of shape {(len(obs), *self._shape)}"
            raise BadValueError(f"{raw.dtype}{raw.shape} where {expected} was expected")
        chosen = raw.reshape(len(obs), -1)
        places = chosen - self._first
        wrong = (places < 0) | (places >= self._counts)
        if wrong.any():
            index = int(np.argmax(wrong.any(axis=0)))
            bounds = f"{self._first[index]} .. {self._first[index] + self._counts[index] - 1}"
            raise BadValueError(f"{chosen[wrong][0]} outside {bounds} (choice {index})")
        obs[...] = 0.0
        np.put_along_axis(obs, places + self._starts, 1.0, axis=1)


class DictEncoder:
    """Parts by name, each with an encoder of its own."""

    def __init__(self, parts: Sequence[ObsPart]) -> None:
        self._parts = [(part.name, part, part_encoder(part)) for part in parts]
        self.spec = {name: encoder.spec for name, _, encoder in self._parts}

    def empty(self, num_envs: int) -> dict[str, Array]:
        return {name: encoder.empty(num_envs) for name, _, encoder in self._parts}

    def write(self, obs: dict[str, Array], row: Any, raw: Any) -> None:
        for name, part, encoder in self._parts:
            _write_part(part, encoder.write, obs[name], row, part.pick(raw))

    def write_all(self, obs: dict[str, Array], raw: Any) -> None:
        for name, part, encoder in self._parts:
            _write_part(part, encoder.write_all, obs[name], part.pick(raw))


class FlatEncoder:
    """All parts one after the other in a single float32 vector (bytes keep their 0 .. 255)."""

    def __init__(self, parts: Sequence[ObsPart]) -> None:
        self._parts: list[tuple[ObsPart, Any, slice]] = []
        width = 0
        for part in parts:
            encoder = part_encoder(part, keep_bytes=False)
            self._parts.append((part, encoder, slice(width, width + encoder.spec.size)))
            width += encoder.spec.size
        self.spec = ArraySpec((width,))

    def empty(self, num_envs: int) -> Array:
        return np.empty((num_envs, *self.spec.shape), np.float32)

    def write(self, obs: Array, row: Any, raw: Any) -> None:
        for part, encoder, columns in self._parts:
            target = obs[row, columns].reshape(encoder.spec.shape)
            _write_part(part, encoder.write, target, ..., part.pick(raw))

    def write_all(self, obs: Array, raw: Any) -> None:
        for part, encoder, columns in self._parts:
            joined = encoder.empty(len(obs))
            _write_part(part, encoder.write_all, joined, part.pick(raw))
            obs[:, columns] = joined.reshape(len(obs), -1)


def part_encoder(part: ObsPart, keep_bytes: bool = True) -> Any:
    if not part.counts:
        return NumbersEncoder(part, keep_bytes)
    return ManyOneHotEncoder(part) if part.shape else OneHotEncoder(part)


def make_encoder(parts: Sequence[ObsPart], joined: bool) -> ObsEncoder:
    """Of a whole observation; `joined` says whether several parts become one vector."""
    if len(parts) == 1 and not parts[0].path:
        return part_encoder(parts[0])
    return FlatEncoder(parts) if joined else DictEncoder(parts)


def _write_part(part: ObsPart, write: Any, *arguments: Any) -> None:
    try:
        write(*arguments)
    except BadValueError as error:
        raise BadValueError(f"with part `{part.name}` {error}") from error


class RawObs:
    """Tells an env's own observations from encoded ones, and encodes them: one, or a batch as vector envs give it."""

    def __init__(self, parts: Sequence[ObsPart], joined: bool) -> None:
        self.parts = tuple(parts)
        self._joined = joined
        self.encoder = make_encoder(parts, joined)

    def as_data(self) -> dict[str, Any]:
        return {
            "joined": self._joined,
            "parts": [
                {"path": list(part.path), "shape": list(part.shape), "dtype": part.dtype.name}
                | ({"counts": list(part.counts), "first": list(part.first)} if part.counts else {})
                for part in self.parts
            ],
        }

    def is_raw(self, obs: Any) -> bool:
        """Whole numbers are raw where the space has choices: encoded, those are floats."""
        spec = self.encoder.spec
        if isinstance(spec, dict):
            if not isinstance(obs, dict) or obs.keys() != spec.keys():
                return True
            return any(_is_raw_part(obs[part.name], part) for part in self.parts)
        if self.parts[0].path:
            return isinstance(obs, dict | tuple)
        return _is_raw_part(obs, self.parts[0])

    def encode(self, raw: Any) -> tuple[Obs, bool]:
        """The encoded batch, and whether it was a single observation. Raises BadValueError."""
        first = self.parts[0]
        given = np.shape(first.pick(raw))
        single = len(given) == len(first.shape)
        obs = self.encoder.empty(1 if single else given[0])
        if single:
            self.encoder.write(obs, 0, raw)
        else:
            self.encoder.write_all(obs, raw)
        return obs, single


def _is_raw_part(obs: Any, part: ObsPart) -> bool:
    if part.counts:
        return not isinstance(obs, dict) and np.asarray(obs).dtype.kind in "iu"
    return not part.shape and np.ndim(obs) == 0  # encoded, a number is a vector of one


def raw_obs_from_data(data: Any, spec: ObsSpec) -> RawObs:
    """Of a checkpoint. Raises ValueError, TypeError or KeyError where it does not lead to such observations."""
    if not isinstance(data["parts"], list) or not 0 < len(data["parts"]) <= MOST_PARTS:
        raise ValueError("a list of the observation's parts was expected")
    raw = RawObs([_part_from_data(part) for part in data["parts"]], bool(data["joined"]))
    if raw.encoder.spec != spec:
        raise ValueError("the observation's parts do not make up the observation")
    return raw


def _part_from_data(data: Any) -> ObsPart:
    path, shape, counts, first = (data.get(name, []) for name in ("path", "shape", "counts", "first"))
    whole = [*shape, *counts, *first]
    if any(isinstance(number, bool) or not isinstance(number, int) or abs(number) > 2**40 for number in whole):
        raise ValueError("the shape of a part is made of whole numbers")
    if min([0, *shape, *counts]) < 0 or len(counts) != len(first) or (counts and len(counts) != _size(shape)):
        raise ValueError("a part has as many choices as its shape has room for")
    if not all(isinstance(key, str | int) for key in path):
        raise ValueError("the path to a part is made of names and places")
    return ObsPart(tuple(path), tuple(shape), np.dtype(str(data["dtype"])), tuple(counts), tuple(first))


def _size(shape: Sequence[int]) -> int:
    return int(np.prod(shape, dtype=np.int64))
