"""How a transition lies in memory: one row, so that drawing it touches one or two cache lines instead of five arrays.

    action int64 | reward float32 | discount float32 | obs | next_obs | next_action_mask | padding to 8 bytes

A row is addressed in units: float32 where every part of the observation is float32, single bytes otherwise. Two
kinds of unit mean at most two compilations of each kernel, whatever the observation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hotloop.core.errors import EnvError
from hotloop.core.types import Array, ArraySpec, Obs, ObsSpec

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

    @property
    def is_flat(self) -> bool:
        """One vector of float32 per env: [N, F] is already what the kernels take."""
        return not self.is_dict and self.unit == np.float32 and len(self.parts[0].spec.shape) == 1

    @property
    def obs_units(self) -> int:
        return sum(part.width for part in self.parts)

    @property
    def obs_bytes(self) -> int:
        return self.obs_units * self.unit.itemsize

    @property
    def row_bytes(self) -> int:
        used = HEAD_BYTES + 2 * self.obs_bytes + self.num_actions
        return -(-used // 8) * 8


def make_layout(obs_spec: ObsSpec, num_actions: int | None) -> RowLayout:
    is_dict = isinstance(obs_spec, dict)
    specs = dict(obs_spec) if isinstance(obs_spec, dict) else {"": obs_spec}
    all_floats = all(spec.dtype == np.float32 for spec in specs.values())
    unit = np.dtype(np.float32) if all_floats else np.dtype(np.uint8)
    parts, start = [], 0
    for name, spec in specs.items():
        parts.append(Part(name, spec, start, spec.num_bytes // unit.itemsize))
        start += parts[-1].width
    return RowLayout(tuple(parts), is_dict, unit, num_actions or 0)


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


def wrong_shape(found: tuple[object, ...], expected: tuple[int, ...]) -> EnvError:
    return EnvError(
        f"an observation of shape {found} reached the replay, which was built for {expected}",
        "the env's `obs_spec` must describe both `obs` and `final_obs`, with one row per env",
    )
