"""Gymnasium spaces as ours: specs, and encoders that write foreign observations into arrays we own."""

from __future__ import annotations

from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium import spaces

from hotloop.core.errors import EnvError
from hotloop.core.graph_kernels import count_not_finite
from hotloop.core.types import (
    ActionSpec,
    Array,
    ArraySpec,
    BoxActions,
    DiscreteActions,
    HybridActions,
    MultiDiscreteActions,
    Obs,
    ObsSpec,
)
from hotloop.envs.foreign import OWN_CLASS_HINT, BadValueError

NUMBER_KINDS = "fiub"
LARGEST_TABLE_OF_BYTES = 8
"""Rows or columns; bytes of two dimensions above are an image in grey."""


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


class BoxEncoder:
    """Numbers of one shape: uint8 stays (images), everything else becomes float32."""

    def __init__(self, space: spaces.Box, keep_bytes: bool = True) -> None:
        self._bytes = space.dtype == np.uint8
        self._source = space.dtype
        self._shape = space.shape
        dtype = np.uint8 if self._bytes and keep_bytes else np.float32
        self.spec = ArraySpec(space.shape or (1,), np.dtype(dtype))

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

    def __init__(self, space: spaces.Discrete) -> None:
        self._count, self._start = int(space.n), int(space.start)
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
        if isinstance(raw, float) or not np.isscalar(raw) and np.shape(raw) != ():
            raise BadValueError(f"{raw!r} where a whole number was expected")
        position = int(raw) - self._start
        if not 0 <= position < self._count:
            raise BadValueError(f"{raw} outside {self._start} .. {self._start + self._count - 1}")
        return position


class DictEncoder:
    """Parts by name, each with an encoder of its own."""

    def __init__(self, space: spaces.Dict) -> None:
        self.parts = {name: _part_encoder(part, True) for name, part in space.spaces.items()}
        self.spec = {name: part.spec for name, part in self.parts.items()}

    def empty(self, num_envs: int) -> dict[str, Array]:
        return {name: part.empty(num_envs) for name, part in self.parts.items()}

    def write(self, obs: dict[str, Array], row: Any, raw: Any) -> None:
        for name, part in self.parts.items():
            _write_part(name, part.write, obs[name], row, _pick(raw, name))

    def write_all(self, obs: dict[str, Array], raw: Any) -> None:
        for name, part in self.parts.items():
            _write_part(name, part.write_all, obs[name], _pick(raw, name))


class FlatEncoder:
    """The parts of a Dict, one after the other in a single float32 vector (bytes keep their 0 .. 255)."""

    def __init__(self, space: spaces.Dict) -> None:
        self.parts = {name: _part_encoder(part, False) for name, part in space.spaces.items()}
        self._slices: dict[str, slice] = {}
        width = 0
        for name, part in self.parts.items():
            self._slices[name] = slice(width, width + part.spec.size)
            width += part.spec.size
        self.spec = ArraySpec((width,))

    def empty(self, num_envs: int) -> Array:
        return np.empty((num_envs, *self.spec.shape), np.float32)

    def write(self, obs: Array, row: Any, raw: Any) -> None:
        for name, part in self.parts.items():
            target = obs[row, self._slices[name]].reshape(part.spec.shape)
            _write_part(name, part.write, target, ..., _pick(raw, name))

    def write_all(self, obs: Array, raw: Any) -> None:
        for name, part in self.parts.items():
            joined = part.empty(len(obs))
            _write_part(name, part.write_all, joined, _pick(raw, name))
            obs[:, self._slices[name]] = joined.reshape(len(obs), -1)


def encoder_for(env_id: str, space: gymnasium.Space, dict_obs: str = "flatten") -> ObsEncoder:
    """The encoder of an observation space, or an error that says how to change the space."""
    _require_supported(env_id, space)
    if isinstance(space, spaces.Dict):
        if dict_obs == "auto":
            _refuse_images(env_id, space)
        return DictEncoder(space) if dict_obs == "keep" else FlatEncoder(space)
    return _part_encoder(space, True)


def _refuse_images(env_id: str, space: spaces.Dict) -> None:
    for name, part in space.spaces.items():
        shape = part.shape or ()
        if len(shape) >= 3 or (len(shape) == 2 and part.dtype == np.uint8 and min(shape) > LARGEST_TABLE_OF_BYTES):
            raise EnvError(
                f"part `{name}` of the observation space of `{env_id}` is an image of shape {part.shape}, which would "
                "be flattened with the rest",
                "`--env.dict-obs flatten` does that; for a cnn hand on the image alone (Gymnasium's FilterObservation)",
            )


def _part_encoder(space: Any, keep_bytes: bool) -> Any:
    return BoxEncoder(space, keep_bytes) if isinstance(space, spaces.Box) else OneHotEncoder(space)


def _require_supported(env_id: str, space: gymnasium.Space) -> None:
    parts = space.spaces if isinstance(space, spaces.Dict) else {"": space}
    for name, part in parts.items():
        if isinstance(part, spaces.Box | spaces.Discrete):
            continue
        where = f"part `{name}` of the observation space" if name else "the observation space"
        flattens = isinstance(part, spaces.MultiDiscrete | spaces.MultiBinary | spaces.Tuple | spaces.Dict)
        raise EnvError(
            f"{where} of `{env_id}` is {part}; expected Box, Discrete, or a Dict of these",
            OWN_CLASS_HINT.format("FlattenObservation" if flattens else "TransformObservation"),
        )


def actions_for(env_id: str, space: gymnasium.Space) -> tuple[ActionSpec, Any]:
    """Our actions, counted from 0, and what to add for the env's own numbering."""
    if isinstance(space, spaces.Discrete):
        return DiscreteActions(int(space.n), int(space.start)), int(space.start)
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1:
        first = tuple(int(start) for start in space.start)
        return MultiDiscreteActions(tuple(int(count) for count in space.nvec), first), np.array(first, np.int64)
    if isinstance(space, spaces.Box) and space.dtype.kind == "f":
        low, high = (tuple(float(bound) for bound in np.ravel(bounds)) for bounds in (space.low, space.high))
        return BoxActions(low, high, space.shape), 0
    if isinstance(space, spaces.Tuple) and len(space.spaces) == 2:
        choices, numbers = (actions_for(env_id, part)[0] for part in space.spaces)
        if isinstance(choices, DiscreteActions):
            choices = MultiDiscreteActions((choices.count,), (choices.first,))
        if isinstance(choices, MultiDiscreteActions) and isinstance(numbers, BoxActions):
            return HybridActions(choices, numbers), np.array([*choices.first, *[0.0] * len(numbers.low)], np.float32)
    raise EnvError(
        f"`{env_id}` has action space {space}; expected Discrete, MultiDiscrete, a Box of floats, or a Tuple "
        "of choices and a Box",
        OWN_CLASS_HINT.format("TransformAction"),
    )


def split_hybrid(space: Any, row: Array) -> tuple[Any, Array]:
    """One env's row of choices and numbers, in the two parts that its space has."""
    choices, numbers = space.spaces
    count = 1 if isinstance(choices, spaces.Discrete) else len(choices.nvec)
    chosen = row[:count].astype(np.int64)
    return (chosen[0] if isinstance(choices, spaces.Discrete) else chosen), row[count:].reshape(numbers.shape)


def first_not_finite(obs: Obs) -> int:
    """The first env whose row holds NaN or infinity, or -1."""
    for part in obs.values() if isinstance(obs, dict) else (obs,):
        if part.dtype.kind == "f" and count_not_finite(part.reshape(-1)):
            rows = np.isfinite(part.reshape(len(part), -1)).all(axis=1)
            return int(np.argmin(rows))
    return -1


def _write_part(name: str, write: Any, *arguments: Any) -> None:
    try:
        write(*arguments)
    except BadValueError as error:
        raise BadValueError(f"with part `{name}` {error}") from error


def _pick(raw: Any, name: str) -> Any:
    try:
        return raw[name]
    except (KeyError, TypeError, IndexError) as error:
        raise BadValueError(f"without part `{name}`") from error
