"""What `update` is handed: a batch of anybody's, read field by field into arrays [k, B, ...]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from hotloop.core.errors import ArgumentError
from hotloop.core.types import Array, ArraySpec, Batch, Obs, map_obs
from hotloop.inputs.arguments import FLOAT, read_array
from hotloop.inputs.values import as_array
from hotloop.inputs.values_kernels import count_outside
from hotloop.replay.replay import Replay

FIELDS = ("obs", "action", "reward", "discount", "next_obs")


def as_fields(batch: Any) -> Any:
    """With its fields as attributes."""
    return SimpleNamespace(**batch) if isinstance(batch, Mapping) else batch


def read_batch(
    batch: Any, action: ArraySpec, read_obs: Callable[[str, Any, tuple[int, ...]], Obs], obs_shape: Any
) -> tuple[Batch, bool]:
    """The batch as [k, B, ...], and whether it was a single one; what is wrong with it is said, but for the values of
    actions. `action` is that of one row; `obs_shape` of one observation, None where that is not known yet."""
    reward = read_array("batch.reward", _field(batch, "reward"), FLOAT)
    leading = tuple(reward.shape)
    if len(leading) not in (1, 2) or 0 in leading:
        raise ArgumentError(f"`batch.reward` has shape {leading}", "expected is [B], or [k, B] for k updates")
    if leading[1:] == (1,):
        _require_batches_of_one(_field(batch, "obs"), leading, obs_shape)
    obs = read_obs("batch.obs", _field(batch, "obs"), leading)
    next_obs = read_obs("batch.next_obs", _field(batch, "next_obs"), leading)
    chosen = read_array("batch.action", _field(batch, "action"), action.dtype)
    discount = _read_discount(_field(batch, "discount"))
    weight = getattr(batch, "weight", None)
    weight = _ones(leading) if weight is None else read_array("batch.weight", weight, FLOAT)
    expected = leading + action.shape
    if not (chosen.shape == expected and discount.shape == weight.shape == leading):
        raise _wrong_shape(expected, leading, action=chosen, discount=discount, weight=weight)
    if len(leading) == 2:
        return Batch(obs, chosen, reward, discount, next_obs, weight, chosen), False
    if obs.__class__ is dict:
        obs, next_obs = map_obs(stacked, obs), map_obs(stacked, next_obs)
    else:
        obs, next_obs = obs[None], next_obs[None]  # type: ignore[index]
    chosen = chosen[None]  # stands for the index too, which nobody asks for
    return Batch(obs, chosen, reward[None], discount[None], next_obs, weight[None], chosen), True


@lru_cache(maxsize=32)
def _ones(shape: tuple[int, ...]) -> Array:
    return np.ones(shape, np.float32)


def stacked(part: Array) -> Array:
    return part[None]


def _field(batch: Any, name: str) -> Any:
    value = getattr(batch, name, None)
    if value is None:
        hint = "give what `Replay.sample` returns, or the same fields"
        if not any(hasattr(batch, field) for field in FIELDS):
            hint = "`learner.update(replay.sample(64))`" if isinstance(batch, Replay) else hint
            raise ArgumentError(f"`batch` is of type {type(batch).__name__}; expected {', '.join(FIELDS)}", hint)
        raise ArgumentError(f"`batch.{name}` is missing", hint)
    return value


def _require_batches_of_one(obs: Any, leading: tuple[int, ...], obs_shape: Any) -> None:
    """Rewards [B, 1] are a column by mistake, unless the observations say that they are B batches of one."""
    part: Any = next(iter(obs.values()), ()) if isinstance(obs, Mapping) else obs
    found, rows = tuple(np.shape(part)), leading[:1]
    if found[:2] != leading or (isinstance(obs_shape, tuple) and found == rows + obs_shape):
        raise ArgumentError(
            f"`batch.reward` has shape {leading}; expected {rows}, where `batch.obs` has shape {found}",
            "`batch.reward.reshape(-1)`",
        )


def _read_discount(given: Any) -> Any:
    """Of each row, 0 to 1; a flag would be taken for a gamma of 1."""
    discount = read_array("batch.discount", given, FLOAT)
    if discount.__class__ is not np.ndarray:  # on a device, where a look would wait for it
        return discount
    if discount is not given and as_array("batch.discount", given).dtype.kind == "b":
        raise ArgumentError("`batch.discount` is bool; expected numbers", "e.g. `gamma * (1 - terminated)`")
    if count_outside(discount.reshape(-1), 0.0, 1.0):
        wrong = discount[~((discount >= 0.0) & (discount <= 1.0))][0]
        raise ArgumentError(f"`batch.discount` holds {wrong}; expected 0 to 1", "e.g. `gamma * (1 - terminated)`")
    return discount


def _wrong_shape(of_action: tuple[int, ...], leading: tuple[int, ...], **fields: Any) -> ArgumentError:
    expected = dict.fromkeys(fields, leading) | {"action": of_action}
    name = next(name for name, field in fields.items() if field.shape != expected[name])
    found = f"`batch.{name}` has shape {tuple(fields[name].shape)}; expected {expected[name]}"
    return ArgumentError(found + (", as the reward" if expected[name] == leading else ""))
