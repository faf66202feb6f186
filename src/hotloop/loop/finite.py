"""Observations and rewards are numbers, whoever made them: looked at before anything is learned from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.graphs import Graphs
from hotloop.core.types import Array, EnvObs, EnvStep
from hotloop.envs.finite_kernels import count_not_finite
from hotloop.lanes.nonfinite import FailedUpdate, NotFiniteError, first_nonfinite, tensors_of_batch

HINT = "an env must answer with finite numbers: `hotloop envs check` looks at it alone"
ANSWERED = ("obs", "final_obs", "reward", "reward_parts")
"""What of a step is looked at, in this order."""


def require_finite(step: EnvStep, env_steps: int) -> None:
    """Raise where a step holds NaN or infinity."""
    bad = _count(step.obs) + _count(step.reward)
    if step.final_obs is not step.obs:
        bad += _count(step.final_obs)
    if step.reward_parts is not None:
        bad += _count(step.reward_parts)
    if bad:
        raise _error(step, env_steps)


def _count(values: EnvObs) -> int:
    return sum(
        count_not_finite(part.reshape(-1)) for part in _parts(values).values() if part.dtype.kind == "f" and part.size
    )


def _parts(values: EnvObs) -> dict[str, Array]:
    if isinstance(values, Graphs):
        return values.arrays()
    return values if isinstance(values, dict) else {"": values}


def _error(step: EnvStep, env_steps: int) -> NotFiniteError:
    answered = {name: getattr(step, name) for name in ANSWERED if getattr(step, name) is not None}
    batch: dict[str, Any] = {
        name: dict(_parts(value)) if isinstance(value, Graphs | dict) else value for name, value in answered.items()
    }
    first = first_nonfinite(tensors_of_batch(batch, list(batch)))
    field = answered[first.partition(".")[0]]
    which = "" if isinstance(field, Graphs) else f" of env {_first_env(field)}"
    message = f"the env's `{first}`{which} is NaN or infinite after {env_steps:,} env steps"
    return NotFiniteError(message, HINT, first, FailedUpdate(0, 0.0, {}, batch))


def _first_env(values: EnvObs) -> int:
    bad = [part for part in _parts(values).values() if part.dtype.kind == "f" and _count(part)]
    return min(int(np.argmin(np.isfinite(part.reshape(len(part), -1)).all(axis=1))) for part in bad)
