"""Gymnasium spaces as ours: the parts of observations, and actions."""

from __future__ import annotations

import math
from typing import Any

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
)
from hotloop.envs.foreign import OWN_CLASS_HINT
from hotloop.envs.observations import ObsPart, RawObs, part_encoder

MOST_STATES, MOST_CHOICES = 1_000_000, 100_000
"""One-hot inputs and outputs of a network. With 64 neurons beside them they have 64 and 6.4 million weights, which are
made, stepped and saved as a whole."""


def raw_obs_for(env_id: str, space: gymnasium.Space, dict_obs: str = "flatten") -> RawObs:
    """How observations of a space are encoded, or an error that says how to change the space.

    `auto` keeps parts by name where one of them is an image, so that it goes through convolutions.
    """
    parts = _parts_of(env_id, space, ())
    _require_names(env_id, parts)
    _require_size(env_id, parts)
    images = [part for part in parts if part.path and ArraySpec(part.shape, part.dtype).is_image]
    if dict_obs == "auto":
        _refuse_films(env_id, parts)
    return RawObs(parts, joined=dict_obs == "flatten" or (dict_obs == "auto" and not images))


def _parts_of(env_id: str, space: Any, path: tuple[str | int, ...]) -> list[ObsPart]:
    """The parts of nested Dicts and Tuples in their order."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        pairs = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        return [part for key, inner in pairs for part in _parts_of(env_id, inner, (*path, key))]
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        return [ObsPart(path, tuple(space.shape), np.dtype(space.dtype))]
    if isinstance(space, spaces.Discrete):
        return [ObsPart(path, (), np.dtype(np.int64), (int(space.n),), (int(space.start),))]
    if isinstance(space, spaces.MultiDiscrete):
        counts, first = (tuple(int(number) for number in np.ravel(array)) for array in (space.nvec, space.start))
        return [ObsPart(path, tuple(space.shape), np.dtype(np.int64), counts, first)]
    name = ".".join(map(str, path))
    where = f"part `{name}` of the observation space" if path else "the observation space"
    raise EnvError(
        f"{where} of `{env_id}` is {space}; expected Box, Discrete, MultiDiscrete, MultiBinary, or a Dict or Tuple of "
        "these",
        OWN_CLASS_HINT.format("TransformObservation"),
    )


def _require_names(env_id: str, parts: list[ObsPart]) -> None:
    names = [part.name for part in parts]
    if not names:
        raise EnvError(f"the observation space of `{env_id}` has no parts", "an agent needs something to look at")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise EnvError(
            f"two parts of the observation space of `{env_id}` are called `{twice}`", "rename one: a dot joins names"
        )
    odd = next((key for part in parts for key in part.path if not isinstance(key, str | int)), None)
    if odd is not None:
        raise EnvError(f"a part of the observation space of `{env_id}` is called {odd!r}", "parts are named by text")


def _require_size(env_id: str, parts: list[ObsPart]) -> None:
    """Something to look at, and no more states than a network can have inputs."""
    if not sum(sum(part.counts) or math.prod(part.shape) for part in parts):
        raise EnvError(
            f"the observations of `{env_id}` hold no numbers: their shape is {parts[0].shape}",
            "an agent needs something to look at, if only a constant",
        )
    many = next((part for part in parts if sum(part.counts) > MOST_STATES), None)
    if many is not None:
        where = f"part `{many.name}` of the observations" if many.path else "the observation"
        raise EnvError(
            f"{where} of `{env_id}` is one of {sum(many.counts):,} states, each an input of the network; at most "
            f"{MOST_STATES:,} are taken",
            "give it as coordinates: a MultiDiscrete of several small choices, or a Box of numbers",
        )


def _refuse_films(env_id: str, parts: list[ObsPart]) -> None:
    for part in parts:
        if part.path and len(part.shape) > 3:
            raise EnvError(
                f"part `{part.name}` of the observation space of `{env_id}` has shape {part.shape}, which would be "
                "flattened with the rest",
                "`--env.dict-obs flatten` does that; images have three dimensions",
            )


def actions_for(env_id: str, space: gymnasium.Space) -> tuple[ActionSpec, Any]:
    """Our actions, counted from 0, and what to add for the env's own numbering."""
    width = int(space.n) if isinstance(space, spaces.Discrete) else 0
    width = int(space.nvec.sum()) if isinstance(space, spaces.MultiDiscrete) else width
    if width > MOST_CHOICES:
        raise EnvError(
            f"`{env_id}` has {width:,} choices of an action, each an output of the network; at most "
            f"{MOST_CHOICES:,} are taken",
            "make the choice in parts: a MultiDiscrete of several small ones, or a Box of numbers",
        )
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


def obs_bounds(space: gymnasium.Space, raw_obs: RawObs) -> tuple[Obs, Obs]:
    """The lowest and the highest that each number of an encoded observation may be, as float32."""
    leaves = dict(_leaves(space, ()))
    low, high = {}, {}
    for part in raw_obs.parts:
        box, spec = leaves[part.path], part_encoder(part).spec
        is_box = isinstance(box, spaces.Box)
        low[part.name] = np.asarray(box.low if is_box else np.zeros(spec.shape), np.float32).reshape(spec.shape)
        high[part.name] = np.asarray(box.high if is_box else np.ones(spec.shape), np.float32).reshape(spec.shape)
    if isinstance(raw_obs.encoder.spec, dict):
        return low, high
    shape = raw_obs.encoder.spec.shape
    lowest, highest = (np.concatenate([part.reshape(-1) for part in bound.values()]) for bound in (low, high))
    return lowest.reshape(shape), highest.reshape(shape)


def _leaves(space: Any, path: tuple[str | int, ...]) -> list[tuple[tuple[str | int, ...], Any]]:
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        return [(path, space)]
    pairs = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
    return [leaf for key, inner in pairs for leaf in _leaves(inner, (*path, key))]


def first_not_finite(obs: Obs) -> int:
    """The first env whose row holds NaN or infinity, or -1."""
    for part in obs.values() if isinstance(obs, dict) else (obs,):
        if part.dtype.kind == "f" and count_not_finite(part.reshape(-1)):
            rows = np.isfinite(part.reshape(len(part), -1)).all(axis=1)
            return int(np.argmin(rows))
    return -1
