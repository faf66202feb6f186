"""Generalized advantage estimation for anybody's loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.errors import ArgumentError
from hotloop.core.types import Array
from hotloop.inputs.values import as_array, as_dtype, require_finite, require_share
from hotloop.maths.gae_kernels import gae_from_next

FLAG = np.dtype(np.bool_)


def gae(
    reward: Any,
    value: Any,
    next_value: Any,
    terminated: Any,
    truncated: Any,
    gamma: float = 0.99,
    gae_lambda: float = 0.95,
) -> tuple[Any, Any]:
    """Advantages and returns (advantage + value) of T steps of one env [T], or of N [T, N] (Schulman et al. 2016).

    `value` is of what was seen, `next_value` of what the action led to: at a time-out of the final observation, not of
    the one that starts the next episode. A terminated step bootstraps from nothing, a truncated one from
    `next_value`, and neither takes anything over from the episode after it.

    >>> import hotloop
    >>> advantage, returns = hotloop.gae(
    ...     reward=[1.0, 1.0], value=[0.0, 2.0], next_value=[2.0, 4.0], terminated=[False, True],
    ...     truncated=[False, False], gamma=0.5, gae_lambda=0.5)
    >>> advantage                               # the last: 1 - 2; the first: 1 + 0.5 * 2 - 0 + 0.25 * -1
    array([ 1.75, -1.  ])
    >>> returns
    array([1.75, 1.  ])

    Arrays, lists or tensors; the answer is of the kind, dtype and device of `value`, and no gradient flows through it.
    """
    values = as_array("value", value)
    if values.ndim not in (1, 2):
        raise ArgumentError(f"`value` has shape {values.shape}; expected [T] or [T, N]", "one value for each step")
    dtype = values.dtype if values.dtype == np.float64 else np.dtype(np.float32)
    numbers = (_read("reward", reward, values, dtype), _read("next_value", next_value, values, dtype))
    flags = (_read("terminated", terminated, values, FLAG), _read("truncated", truncated, values, FLAG))
    own = _read("value", values, values, dtype)
    advantage, returns = np.empty_like(own), np.empty_like(own)
    rates = (require_share("gamma", gamma), require_share("gae_lambda", gae_lambda))
    gae_from_next(numbers[0], *flags, own, numbers[1], *rates, advantage, returns)
    return _like(value, advantage.reshape(values.shape)), _like(value, returns.reshape(values.shape))


def _read(name: str, given: Any, like: Array, dtype: np.dtype) -> Array:
    """[T, N], contiguous."""
    array = as_dtype(name, given, dtype)
    if array.shape != like.shape:
        raise ArgumentError(f"`{name}` has shape {array.shape}, `value` {like.shape}", "give one for each step and env")
    array = np.ascontiguousarray(array)
    require_finite(name, array)
    return array.reshape(len(like), -1) if like.ndim == 1 else array


def _like(value: Any, answer: Array) -> Any:
    if not hasattr(value, "detach"):
        return answer
    from torch import from_numpy

    return from_numpy(answer).to(value.device, value.dtype if value.is_floating_point() else None)
