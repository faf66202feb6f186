"""What learners are handed: observations of any shape, the arrays of a batch, the numbers of a constructor.

The rules are those of `values.py`. An array that is right already is taken as it is, which costs less than a
microsecond; a tensor on another device than a CPU stays there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hotloop.core.errors import ArgumentError
from hotloop.core.types import Array, ArraySpec, Obs, ObsSpec
from hotloop.inputs.values import as_array, as_dtype, shown

FLOAT, INT, BOOL = np.dtype(np.float32), np.dtype(np.int64), np.dtype(np.bool_)
TORCH = {FLOAT: torch.float32, INT: torch.int64, BOOL: torch.bool}


def read_array(name: str, value: Any, dtype: np.dtype[Any]) -> Any:
    """`value` as a contiguous array of `dtype`."""
    if value.__class__ is np.ndarray and value.dtype is dtype and value.flags.c_contiguous:
        return value
    if isinstance(value, Tensor) and value.device.type != "cpu":
        if value.dtype is not TORCH[dtype]:
            raise ArgumentError(f"`{name}` is {value.dtype}; expected {TORCH[dtype]}", f"`.to({TORCH[dtype]})`")
        return value.detach().contiguous()
    return np.ascontiguousarray(as_dtype(name, value, dtype))


def read_obs(name: str, value: Any, as_floats: bool) -> Obs:
    """An observation, or the parts of one. Whole numbers (bytes of an image, indices) stay what they are unless
    `as_floats`: what they mean is the network's to say."""
    if value.__class__ is np.ndarray and value.dtype is FLOAT and value.flags.c_contiguous:
        return value
    if isinstance(value, Mapping):
        parts: Any = {str(part): read_obs(f"{name}[{part!r}]", one, as_floats) for part, one in value.items()}
        return parts
    if isinstance(value, Tensor) and value.device.type != "cpu":
        return value.detach().contiguous()  # type: ignore[return-value]
    array = as_array(name, value)
    return read_array(name, array, FLOAT if as_floats or array.dtype.kind == "f" else array.dtype)


def spec_of(obs: Obs, leading: int) -> ObsSpec:
    """Of one observation, of which `obs` has several, after `leading` axes."""
    if isinstance(obs, dict):
        return {name: ArraySpec(tuple(part.shape[leading:]), part.dtype) for name, part in obs.items()}
    return ArraySpec(tuple(obs.shape[leading:]), obs.dtype)


def shape_of(spec: ObsSpec) -> Any:
    return {name: part.shape for name, part in spec.items()} if isinstance(spec, dict) else spec.shape


def rows_of(obs: Obs) -> int:
    return len(next(iter(obs.values())) if isinstance(obs, dict) else obs)


def read_mask(name: str, value: Any, shape: tuple[int, ...]) -> Any:
    mask = read_array(name, value, BOOL)
    if tuple(mask.shape) != shape:
        raise ArgumentError(f"`{name}` has shape {tuple(mask.shape)}; expected {shape}", "one entry for each action")
    return mask


def require_choices(name: str, mask: Array) -> None:
    """Of a mask [N, A] to act by."""
    if not mask.any(-1).all():
        raise ArgumentError(f"`{name}` allows no action at all", "True marks an action that is allowed")


def given_mask(action_mask: Any, mask: Any) -> tuple[str, Any]:
    """The mask to act by, under the name by which it was given."""
    if mask is None:
        return "action_mask", action_mask
    if action_mask is not None:
        raise ArgumentError("`action_mask` and `mask` are two names of the same", "give one of them")
    return "mask", mask


def require_between(name: str, value: Any, low: float, high: float, example: str) -> float:
    """A number of `low` or more and of `high` or less, or any finite one above where `high` is infinite."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not low <= value <= high or value == np.inf:
        expected = f"at least {low:g}" if high == np.inf else f"{low:g} to {high:g}"
        raise ArgumentError(f"`{name}` is {shown(value)}; expected a number, {expected}", f"e.g. `{name}={example}`")
    return float(value)


def require_above_zero(name: str, value: Any, example: str, high: float = np.inf) -> float:
    number = require_between(name, value, 0.0, high, example)
    if number == 0.0:
        raise ArgumentError(f"`{name}` is {value!r}; expected a number above 0", f"e.g. `{name}={example}`")
    return number


def require_one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        hint = f"`{name}={allowed[0]!r}`"
        raise ArgumentError(f"`{name}` is {shown(value)}; expected one of {', '.join(allowed)}", hint)


def adam_constants(betas: Any, eps: Any, max_grad_norm: Any) -> dict[str, Any]:
    """As settings have them."""
    if not isinstance(betas, tuple | list) or len(betas) != 2:
        raise ArgumentError(f"`betas` is {betas!r}; expected two numbers", "e.g. `betas=(0.9, 0.999)`")
    below_one = 1.0 - 1e-9
    return {
        "beta1": require_between("betas[0]", betas[0], 0.0, below_one, "0.9"),
        "beta2": require_between("betas[1]", betas[1], 0.0, below_one, "0.999"),
        "eps": require_above_zero("eps", eps, "1e-8"),
        "max_grad_norm": 0.0 if max_grad_norm is None else require_above_zero("max_grad_norm", max_grad_norm, "10.0"),
    }
