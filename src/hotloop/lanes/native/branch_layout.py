"""What the native lane computes for branches with attention: sizes, and the memory plan around that of the trunk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hotloop.lanes.native import branch_plan_kernels as plan
from hotloop.lanes.native import plan_kernels
from hotloop.lanes.native.layout import MemoryPlan, NativeLayout, UpdateConstants, aligned_zeros, padded_stride
from hotloop.lanes.native.vector_kernels import LANES


@dataclass(frozen=True)
class BranchLayer:
    branch: int
    fan_in: int
    fan_out: int
    copies: int
    first_input: int
    is_last: bool


@dataclass(frozen=True, kw_only=True)
class NativeBranches:
    """Branches in the order of their parameters, attention over them, then `trunk`, whose input they are.

    `shapes`: of each part of the observation, (features,) or (rows, columns).
    """

    shapes: tuple[tuple[int, ...], ...]
    vector_hidden: tuple[int, ...]
    row_width: int
    width: int
    attention: int
    trunk: NativeLayout

    @property
    def obs_size(self) -> int:
        return sum(int(np.prod(shape)) for shape in self.shapes)

    @property
    def layers(self) -> list[BranchLayer]:
        layers, start = [], 0
        for branch, shape in enumerate(self.shapes):
            if len(shape) == 2:
                rows, columns = shape
                sizes = [(columns, self.row_width, rows), (rows * self.row_width, self.width, 1)]
            else:
                widths = (shape[0], *self.vector_hidden, self.width)
                sizes = [(before, after, 1) for before, after in zip(widths[:-1], widths[1:], strict=True)]
            for place, (fan_in, fan_out, copies) in enumerate(sizes):
                first = start if place == 0 else -1
                layers.append(BranchLayer(branch, fan_in, fan_out, copies, first, place == len(sizes) - 1))
            start += int(np.prod(shape))
        return layers

    @property
    def num_parameters(self) -> int:
        branches = sum((layer.fan_in + 1) * layer.fan_out for layer in self.layers)
        return branches + (self.width + 1) * self.attention + self.attention + 1 + self.trunk.num_parameters


class BranchPlan:
    """The trunk's plan, the branches' numbers, and one workspace for both."""

    def __init__(self, layout: NativeBranches, constants: UpdateConstants, rows: int, training: bool = True) -> None:
        trunk = MemoryPlan(layout.trunk, constants, rows, training)
        self.trunk, self.constants = trunk.numbers, trunk.constants
        self._used, self._rows = len(trunk.workspace), rows
        self._stride = int(trunk.numbers[plan_kernels.COLUMN_STRIDE])
        self.numbers = np.zeros(plan.TABLE + plan.ROW * len(layout.layers), np.int64)
        self._parameters(layout)
        self._values(layout)
        if training:
            self._gradients(layout)
        self.workspace = aligned_zeros(self._used)
        self.workspace[: len(trunk.workspace)] = trunk.workspace

    def _take(self, rows: int, stride: int) -> int:
        offset = self._used
        self._used += -(-rows * stride // LANES) * LANES
        return offset

    def _parameters(self, layout: NativeBranches) -> None:
        numbers, offset = self.numbers, 0
        table = numbers[plan.TABLE :].reshape(-1, plan.ROW)
        for row, layer in zip(table, layout.layers, strict=True):
            row[plan.FAN_IN], row[plan.FAN_OUT], row[plan.COPIES] = layer.fan_in, layer.fan_out, layer.copies
            row[plan.WEIGHT], row[plan.BIAS] = offset, offset + layer.fan_in * layer.fan_out
            row[plan.BRANCH], row[plan.FIRST_INPUT], row[plan.IS_LAST] = layer.branch, layer.first_input, layer.is_last
            row[plan.STRIDE] = padded_stride(layer.copies * layer.fan_out)
            offset += (layer.fan_in + 1) * layer.fan_out
        numbers[plan.BRANCHES], numbers[plan.WIDTH] = len(layout.shapes), layout.width
        numbers[plan.ATTENTION], numbers[plan.OBS_SIZE] = layout.attention, layout.obs_size
        numbers[plan.INNER_WEIGHT] = offset
        numbers[plan.INNER_BIAS] = offset + layout.width * layout.attention
        numbers[plan.SCORE_WEIGHT] = numbers[plan.INNER_BIAS] + layout.attention
        numbers[plan.SCORE_BIAS] = numbers[plan.SCORE_WEIGHT] + layout.attention
        numbers[plan.TRUNK], numbers[plan.TOTAL] = numbers[plan.SCORE_BIAS] + 1, layout.num_parameters

    def _values(self, layout: NativeBranches) -> None:
        numbers, stride = self.numbers, self._stride
        widest = max(layer.copies * layer.fan_out for layer in layout.layers)
        numbers[plan.INPUTS] = self._take(layout.obs_size, stride)
        numbers[plan.VALUES_EVEN], numbers[plan.VALUES_ODD] = self._take(widest, stride), self._take(widest, stride)
        numbers[plan.INNER] = self._take(len(layout.shapes) * layout.attention, stride)
        numbers[plan.SHARES] = self._take(len(layout.shapes), stride)

    def _gradients(self, layout: NativeBranches) -> None:
        numbers, rows, count = self.numbers, self._rows, len(layout.shapes)
        widest = max(layer.copies * layer.fan_out for layer in layout.layers)
        numbers[plan.KEPT_TRUNK] = self._take(rows, (count + 1) * layout.width)
        numbers[plan.KEPT_INNER] = self._take(count * rows, layout.attention)
        numbers[plan.GRADIENT] = self._take(rows, (count + 1) * layout.width)
        numbers[plan.GRADIENT_INNER] = self._take(rows, layout.attention)
        for name in (plan.GRADIENT_EVEN, plan.GRADIENT_ODD):
            numbers[name] = self._take(rows, padded_stride(widest))
        numbers[plan.ZEROS] = self._take(1, max(rows, layout.attention, *(layer.fan_out for layer in layout.layers)))
        numbers[plan.SCORES] = self._take(2 * count + 2, padded_stride(rows))
        for row in numbers[plan.TABLE :].reshape(-1, plan.ROW):
            row[plan.KEPT] = self._take(rows, int(row[plan.STRIDE]))
