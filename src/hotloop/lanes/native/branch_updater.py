"""The kernels for branches behind the same two faces as `updater`: one that updates and one that acts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from hotloop.core.types import Array
from hotloop.lanes.native.branch_layout import BranchPlan, NativeBranches
from hotloop.lanes.native.branch_update_kernels import branch_greedy, run_branch_updates
from hotloop.lanes.native.layout import UpdateConstants
from hotloop.lanes.native.unit_kernels import prepare_units, real_vector, vector, whole

_matrix, _cube = types.float32[:, ::1], types.float32[:, :, ::1]
_plan = (whole, real_vector, whole, vector)
_batch = (_cube, types.int64[:, ::1], _matrix, _matrix, _cube, _matrix, types.boolean[:, :, ::1])
_SIGNATURES: list[tuple[Any, tuple[Any, ...]]] = [
    (run_branch_updates, (*_plan, *[vector] * 5, *_batch, real_vector, types.int64, _matrix, _matrix)),
    (branch_greedy, (*_plan, vector, _matrix, types.boolean[:, ::1])),
]


def prepare() -> None:
    """Compile every kernel for branches, or load them from the cache."""
    prepare_units()
    for function, signature in _SIGNATURES:
        if not function.overloads:
            function.compile(signature)
            function.disable_compile()


def _passed(plan: BranchPlan) -> tuple[Array, ...]:
    return plan.trunk, plan.constants, plan.numbers, plan.workspace


class BranchUpdater:
    """Updates flat float32 vectors in place, by batches of `rows` rows."""

    def __init__(self, layout: NativeBranches, constants: UpdateConstants, rows: int) -> None:
        prepare()
        self.rows = rows
        self.gradient = np.zeros(layout.num_parameters, np.float32)
        self._no_mask = np.zeros((0, 0, 0), np.bool_)
        self._plan = _passed(BranchPlan(layout, constants, rows))

    def update(
        self,
        parameters: Array,
        target: Array,
        moments: tuple[Array, Array],
        batch: tuple[Array | None, ...],
        lr: Array,
        first_update: int,
    ) -> tuple[int, Array, Array]:
        """As `NativeUpdater.update`; observations [k, B, F] have all parts side by side."""
        obs, action, reward, discount, next_obs, weight, mask = batch
        td_error = np.empty((len(lr), self.rows), np.float32)
        stats = np.empty((3, len(lr)), np.float32)
        made = run_branch_updates(
            *self._plan, parameters, target, self.gradient, *moments,
            obs, action, reward, discount, next_obs, weight, self._no_mask if mask is None else mask,
            lr, first_update, td_error, stats,
        )  # fmt: skip
        return made, td_error, stats


class BranchActor:
    """Best actions of up to `rows` observations at a time."""

    def __init__(self, layout: NativeBranches, rows: int) -> None:
        prepare()
        self._no_mask = np.zeros((0, 0), np.bool_)
        self._plan = _passed(BranchPlan(layout, UpdateConstants(), rows, training=False))

    def greedy(self, parameters: Array, obs: Array, mask: Array | None = None) -> Array:
        return branch_greedy(*self._plan, parameters, obs, self._no_mask if mask is None else mask)
