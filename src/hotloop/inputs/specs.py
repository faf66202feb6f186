"""Shapes and Gymnasium spaces, as users give them, read into specs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import Space, spaces

from hotloop.core.errors import ArgumentError
from hotloop.core.types import ArraySpec, ObsSpec
from hotloop.inputs.values import Bounds, require_count

LARGEST_INT = np.iinfo(np.int64).max
CHOICE = ArraySpec((), np.dtype(np.int64))


class ActionSpec(NamedTuple):
    """Of one env's action: its array, what its entries may be, and how wide a mask of it is, if it can have one."""

    array: ArraySpec
    bounds: Bounds | None
    mask_width: int | None = None

    @property
    def is_choice(self) -> bool:
        """One choice, an int64 without a shape."""
        return self.array == CHOICE


def read_obs_spec(given: Any) -> ObsSpec:
    """`obs=`: a shape (float32), a Gymnasium space, or a dict of either."""
    parts = given.spaces if isinstance(given, spaces.Dict) else given
    if isinstance(parts, Mapping):
        if not parts:
            raise ArgumentError("`obs` is a dict without parts", "name each part with its shape or space")
        return {str(name): _array_spec(f"obs[{name!r}]", part) for name, part in parts.items()}
    return _array_spec("obs", given)


def read_action_spec(given: Any, num_actions: int | None) -> ActionSpec:
    """`action=`: None for one choice (of `num_actions`, if that is known), a shape of floats, or a Gymnasium space."""
    if num_actions is not None:
        num_actions = require_count("num_actions", num_actions)
    if isinstance(given, spaces.Discrete):
        return _choice(given, num_actions)
    require_no_count(given, f"give a space, a shape, or `num_actions={given}`")
    if given is None:
        return ActionSpec(CHOICE, (0, LARGEST_INT if num_actions is None else num_actions - 1), num_actions)
    if num_actions is not None:
        raise ArgumentError(f"`num_actions` is given, but `action` is {given}", "masks go with one discrete choice")
    if isinstance(given, spaces.MultiDiscrete):
        _require_from_zero(given, np.any(given.start))
        bounds = (np.zeros_like(given.nvec), given.nvec - 1)
        return ActionSpec(ArraySpec(given.shape, CHOICE.dtype), bounds, int(given.nvec.sum()))
    if isinstance(given, spaces.MultiBinary):
        return ActionSpec(ArraySpec(given.shape, CHOICE.dtype), (0, 1))
    spec = _array_spec("action", given)
    return ActionSpec(spec if spec.dtype.kind == "f" else ArraySpec(spec.shape, CHOICE.dtype), None)


def require_no_count(action: Any, hint: str) -> None:
    """A number alone could be meant as so many choices or as so many floats."""
    if isinstance(action, int | np.integer):
        raise ArgumentError(f"`action` is {action}; expected a space or a shape", hint)


def _choice(space: spaces.Discrete, num_actions: int | None) -> ActionSpec:
    _require_from_zero(space, space.start)
    count = int(space.n)
    if num_actions not in (None, count):
        raise ArgumentError(f"`num_actions` is {num_actions}, but `action` is {space}", "leave one of them out")
    return ActionSpec(CHOICE, (0, count - 1), count)


def _require_from_zero(space: Any, start: Any) -> None:
    if start:
        raise ArgumentError(
            f"`action` is {space}, which does not count from 0",
            "give `num_actions=` instead, keep choices from 0, and add the start where you step the env",
        )


def _array_spec(name: str, given: Any) -> ArraySpec:
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        given = (given,)
    if isinstance(given, Sequence) and not isinstance(given, str | Space):
        return ArraySpec(tuple(require_count(name, size) for size in given))
    if isinstance(given, spaces.Box):
        return ArraySpec(given.shape, np.dtype(np.float32) if given.dtype.kind == "f" else given.dtype)
    if isinstance(given, spaces.Discrete):
        return CHOICE
    if isinstance(given, spaces.MultiDiscrete | spaces.MultiBinary):
        return ArraySpec(given.shape, np.dtype(given.dtype))
    hint = "wrap the env in `gymnasium.wrappers.FlattenObservation`" if isinstance(given, Space) else "e.g. `(4,)`"
    raise ArgumentError(f"`{name}` is {given!r}; expected a shape, Box, Discrete, or a dict of these", hint)
