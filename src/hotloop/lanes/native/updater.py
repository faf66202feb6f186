"""The native lane's kernels behind two small classes: one updates, one acts."""

from __future__ import annotations

import numpy as np

from hotloop.core.types import Array
from hotloop.lanes.native import plan_kernels as plan
from hotloop.lanes.native.acting_kernels import greedy, values
from hotloop.lanes.native.layout import MemoryPlan, NativeLayout, UpdateConstants
from hotloop.lanes.native.unit_kernels import prepare_units
from hotloop.lanes.native.update_kernels import run_updates


class NativeUpdater:
    """Updates flat float32 vectors in place, on batches of `rows` rows. All arrays must be C-contiguous.

    Not for several threads at once: the workspace is shared by its calls.
    """

    def __init__(self, layout: NativeLayout, constants: UpdateConstants, rows: int) -> None:
        prepare_units()
        self.layout = layout
        self.plan = MemoryPlan(layout, constants, rows)
        ones = self.plan.numbers[plan.ONES]
        self.plan.workspace[ones : ones + rows] = 1.0
        self.rows = rows
        self.gradient = np.zeros(layout.num_parameters, np.float32)
        self._no_mask = np.zeros((1, 0, layout.num_actions), np.bool_)

    def update(
        self, parameters: Array, target: Array, moments: tuple[Array, Array], batch: tuple[Array | None, ...], lr: Array, first_update: int
    ) -> tuple[int, Array, Array]:
        obs, action, reward, discount, next_obs, weight, mask = batch
        k = len(lr)
        td_error = np.empty((k, self.rows), np.float32)
        stats = np.empty((3, k), np.float32)
        made = run_updates(
            self.plan.numbers, self.plan.constants, self.plan.workspace, parameters, target, self.gradient, *moments,
            obs, action, reward, discount, next_obs, weight, self._no_mask if mask is None else mask,
            lr, first_update, td_error, stats,
        )  # fmt: skip
        return made, td_error, stats


class NativeActor:
    """Values and best actions of `rows` observations at a time (fewer too), on parameters given with each call."""

    def __init__(self, layout: NativeLayout, rows: int) -> None:
        prepare_units()
        self.plan = MemoryPlan(layout, UpdateConstants(), rows, training=False)
        self.rows = rows
        self._no_mask = np.zeros((0, layout.num_actions), np.bool_)

    def values(self, parameters: Array, obs: Array) -> Array:
        """Q [N, A] of obs [N, F]."""
        return values(self.plan.numbers, self.plan.constants, self.plan.workspace, parameters, obs)

    def greedy(self, parameters: Array, obs: Array, mask: Array | None = None) -> Array:
        """The best action [N], among those the mask [N, A] allows."""
        masks = self._no_mask if mask is None else mask
        return greedy(self.plan.numbers, self.plan.constants, self.plan.workspace, parameters, obs, masks)
