"""The native lane's kernels behind two small classes, one that updates and one that acts.

Each is for one thread at a time (its workspace is shared by its calls) and wants C-contiguous arrays of exactly the
stated types: anything else is a TypeError, never a conversion or a second compilation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from hotloop.core.types import Array
from hotloop.lanes.native.acting_kernels import greedy, values
from hotloop.lanes.native.layout import MemoryPlan, NativeLayout, UpdateConstants
from hotloop.lanes.native.unit_kernels import prepare_units, real_vector, vector, whole
from hotloop.lanes.native.update_kernels import run_updates

_matrix, _cube = types.float32[:, ::1], types.float32[:, :, ::1]
_plan = (whole, real_vector, vector)
_batch = (_cube, types.int64[:, ::1], _matrix, _matrix, _cube, _matrix, types.boolean[:, :, ::1])
_SIGNATURES: list[tuple[Any, tuple[Any, ...]]] = [
    (run_updates, (*_plan, *[vector] * 5, *_batch, real_vector, types.int64, _matrix, _matrix)),
    (values, (*_plan, vector, _matrix)),
    (greedy, (*_plan, vector, _matrix, types.boolean[:, ::1])),
]


def prepare() -> None:
    """Compile every kernel of the lane (some 14 s of processor time), or load them from the cache (0.3 s)."""
    prepare_units()
    for function, signature in _SIGNATURES:
        if not function.overloads:
            function.compile(signature)
            function.disable_compile()


class NativeBatch(NamedTuple):
    """k batches of B rows."""

    obs: Array  # [k, B, F] float32
    action: Array  # [k, B] int64
    reward: Array  # [k, B] float32
    discount: Array  # [k, B] float32
    next_obs: Array  # [k, B, F] float32
    weight: Array  # [k, B] float32
    next_action_mask: Array | None  # [k, B, A] bool


class NativeUpdater:
    """Updates flat float32 vectors in place, by batches of `rows` rows."""

    def __init__(self, layout: NativeLayout, constants: UpdateConstants, rows: int) -> None:
        prepare()
        memory = MemoryPlan(layout, constants, rows)
        self.rows = rows
        self.gradient = np.zeros(layout.num_parameters, np.float32)
        """Of the last update, before clipping."""
        self._no_mask = np.zeros((0, 0, 0), np.bool_)
        self._plan = (memory.numbers, memory.constants, memory.workspace)

    def update(
        self,
        parameters: Array,
        target: Array,
        moments: tuple[Array, Array],
        batch: NativeBatch | tuple[Array | None, ...],
        lr: Array,
        first_update: int,
    ) -> tuple[int, Array, Array]:
        """len(lr) sequential updates of the vectors [P] in place; `moments` are Adam's mean and square.

        `lr` [k] float64; `first_update` updates were made before. Returns how many were made, the TD errors [k, B] and
        the statistics [3, k]: loss, mean q of the actions taken, gradient norm before clipping. Fewer than k: that
        one's loss or gradient was not finite; its statistics are there, parameters and moments have not seen it.
        """
        obs, action, reward, discount, next_obs, weight, mask = batch
        td_error = np.empty((len(lr), self.rows), np.float32)
        stats = np.empty((3, len(lr)), np.float32)
        made = run_updates(
            *self._plan, parameters, target, self.gradient, *moments,
            obs, action, reward, discount, next_obs, weight, self._no_mask if mask is None else mask,
            lr, first_update, td_error, stats,
        )  # fmt: skip
        return made, td_error, stats


class NativeActor:
    """Values and best actions of up to `rows` observations at a time, under the parameters given with each call."""

    def __init__(self, layout: NativeLayout, rows: int) -> None:
        prepare()
        memory = MemoryPlan(layout, UpdateConstants(), rows, training=False)
        self._no_mask = np.zeros((0, 0), np.bool_)
        self._plan = (memory.numbers, memory.constants, memory.workspace)

    def values(self, parameters: Array, obs: Array) -> Array:
        """Q [N, A] of obs [N, F]."""
        return values(*self._plan, parameters, obs)

    def greedy(self, parameters: Array, obs: Array, mask: Array | None = None) -> Array:
        """The best action [N], among those the mask [N, A] allows."""
        return greedy(*self._plan, parameters, obs, self._no_mask if mask is None else mask)
