"""Where a Gymnasium env says which actions are allowed: `info["action_mask"]`, or a method `action_masks()`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from hotloop.core.types import Array
from hotloop.envs.foreign import BadValueError

MASK_KEY = "action_mask"


class MaskReader:
    """Reads the masks of single envs; `present` is False where they offer none."""

    def __init__(self, envs: list[gymnasium.Env], num_actions: int, first_infos: list[dict[str, Any]]) -> None:
        self._num_actions = num_actions
        self._in_info = all(MASK_KEY in info for info in first_infos)
        self._methods: list[Callable[[], Any]] = []
        if not self._in_info and all(env.has_wrapper_attr("action_masks") for env in envs):
            self._methods = [env.get_wrapper_attr("action_masks") for env in envs]
        self.present = self._in_info or bool(self._methods)

    def read(self, index: int, info: dict[str, Any], terminated: bool) -> Array:
        raw = info.get(MASK_KEY) if self._in_info else self._methods[index]()
        return checked_mask(raw, self._num_actions, terminated)


def checked_mask(raw: Any, num_actions: int, terminated: bool) -> Array:
    """A mask [A] bool with at least one True.

    After termination no action follows, so many envs give none or an empty one; all True there keeps a masked
    maximum finite.
    """
    mask = None if raw is None else np.asarray(raw)
    if terminated and (mask is None or not mask.any()):
        return np.ones(num_actions, np.bool_)
    if mask is None:
        raise BadValueError("returned no `action_mask` although it did at its first reset")
    if mask.shape != (num_actions,) or mask.dtype.kind not in "biu":
        raise BadValueError(f"returned `action_mask` {mask.dtype}{mask.shape} where bool({num_actions},) was expected")
    if not mask.any():
        raise BadValueError("returned an `action_mask` that allows no action")
    return mask.astype(np.bool_)
