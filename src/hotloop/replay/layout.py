"""How a transition lies in memory: one row, so that drawing it touches one or two cache lines instead of five arrays.

    choice int64 | reward float32 | discount float32 | obs | action | next_obs | next_action_mask | padding to 8 bytes

One choice among a few is an int64 at the front. Any other action (numbers, several choices) is an array behind the
observation that it answered, so that kernels and n-step windows carry the two together; the choice is 0 then.
A row is addressed in units: float32 where every part of the observation is float32, single bytes otherwise. Two
kinds of unit mean at most two compilations of each kernel, whatever the observation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotloop.core.errors import EnvError
from hotloop.core.types import Array, ArraySpec, BoxActions, Obs, ObsSpec

HEAD_BYTES = 16


@dataclass(frozen=True, slots=True)
class Part:
    """One array of the observation; `name` is empty where the observation is an array rather than a dict."""

    name: str
    spec: ArraySpec
    start: int  # within the observation, in units
    width: int  # in units


@dataclass(frozen=True, slots=True)
class RowLayout:
    parts: tuple[Part, ...]
    is_dict: bool
    unit: np.dtype
    num_actions: int  # bytes of the mask; 0 where the env has none
    action: ArraySpec | None = None  # float32 or int64; None: one choice

    @property
    def is_flat(self) -> bool:
        """One vector of float32 per env: [N, F] is already what the kernels take, with one choice."""
        is_vector = not self.is_dict and self.unit == np.float32 and len(self.parts[0].spec.shape) == 1
        return is_vector and self.action is None

    @property
    def obs_units(self) -> int:
        return sum(part.width for part in self.parts)

    @property
    def obs_bytes(self) -> int:
        return self.obs_units * self.unit.itemsize

    @property
    def action_bytes(self) -> int:
        return 0 if self.action is None else self.action.num_bytes

    @property
    def seen_units(self) -> int:
        """Of an observation and of the action behind it."""
        return self.obs_units + self.action_bytes // self.unit.itemsize

    @property
    def row_bytes(self) -> int:
        used = HEAD_BYTES + 2 * self.obs_bytes + self.action_bytes + self.num_actions
        return -(-used // 8) * 8


def stored_action(spec: Any) -> ArraySpec | None:
    """Of an env's actions as a row holds them; None: one choice."""
    return ArraySpec(spec.shape) if isinstance(spec, BoxActions) else None


def make_layout(obs_spec: ObsSpec, num_actions: int | None, action: ArraySpec | None = None) -> RowLayout:
    is_dict = isinstance(obs_spec, dict)
    specs = dict(obs_spec) if isinstance(obs_spec, dict) else {"": obs_spec}
    all_floats = all(spec.dtype == np.float32 for spec in specs.values())
    unit = np.dtype(np.float32) if all_floats else np.dtype(np.uint8)
    parts, start = [], 0
    for name, spec in specs.items():
        parts.append(Part(name, spec, start, spec.num_bytes // unit.itemsize))
        start += parts[-1].width
    return RowLayout(tuple(parts), is_dict, unit, num_actions or 0, action)


def make_packer(layout: RowLayout, num_envs: int) -> Callable[[Obs], Array]:
    """A function that turns observations of N envs into [N, units], copying only where it must.

    The result may be overwritten by the next call of the same packer.
    """
    if layout.is_dict:
        return _dict_packer(layout, num_envs)
    spec = layout.parts[0].spec
    return lambda obs: _as_units(obs, spec, layout.unit, num_envs)


def _as_units(obs: Obs, spec: ArraySpec, unit: np.dtype, num_envs: int) -> Array:
    array = np.ascontiguousarray(obs, dtype=spec.dtype)
    if array.shape != (num_envs, *spec.shape):
        raise wrong_shape(array.shape, (num_envs, *spec.shape))
    return array.reshape(num_envs, spec.size).view(unit)


def _dict_packer(layout: RowLayout, num_envs: int) -> Callable[[Obs], Array]:
    packed = np.zeros((num_envs, layout.obs_units), dtype=layout.unit)

    def pack(obs: Obs) -> Array:
        for part in layout.parts:
            packed[:, part.start : part.start + part.width] = _as_units(
                obs[part.name],
                part.spec,
                layout.unit,
                num_envs,
            )
        return packed

    return pack


def make_joiner(layout: RowLayout, num_envs: int) -> Callable[[Array, Array], Array]:
    """A function that puts actions [N, ...] behind packed observations [N, units]: [N, units of both], overwritten by
    its next call."""
    spec, obs_units = layout.action, layout.obs_units
    assert spec is not None
    joined = np.zeros((num_envs, layout.seen_units), dtype=layout.unit)
    seen, done = joined[:, :obs_units], joined[:, obs_units:]

    def join(packed: Array, action: Array) -> Array:
        seen[...] = packed
        done[...] = _as_units(action, spec, layout.unit, num_envs)
        return joined

    return join


def wrong_shape(found: tuple[object, ...], expected: tuple[int, ...]) -> EnvError:
    return EnvError(
        f"an observation or action of shape {found} reached the replay, which was built for {expected}",
        "the env's specs must describe `obs`, `final_obs` and actions, with one row per env",
    )
