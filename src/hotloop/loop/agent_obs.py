"""One observation or a batch of them, as a user gives it."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.errors import EnvError
from hotloop.core.types import Array, ArraySpec, Obs, ObsSpec


def as_batch(obs: Any, obs_spec: ObsSpec) -> tuple[Obs, bool]:
    """A batch, and whether only one was given."""
    if not isinstance(obs_spec, dict):
        return _checked(obs, obs_spec)
    if not isinstance(obs, dict) or obs.keys() != obs_spec.keys():
        raise EnvError(f"the observation must be a dict of {', '.join(obs_spec)}")
    parts = {name: _checked(obs[name], spec) for name, spec in obs_spec.items()}
    return {name: batch for name, (batch, _) in parts.items()}, all(single for _, single in parts.values())


def _checked(obs: Any, spec: ArraySpec) -> tuple[Array, bool]:
    array = np.asarray(obs, dtype=spec.dtype)
    if array.shape == spec.shape:
        return array[None], True
    if array.shape[1:] == spec.shape:
        return array, False
    raise EnvError(
        f"the observation has shape {array.shape}, the agent was trained on {spec.shape}",
        "give one observation, or a batch with one more leading axis",
    )
