"""Where everything lies in the native lane's memory, with and without branches.

What the native lane computes: the network's sizes and the update's constants, and their memory plan.

What the native lane computes for branches with attention: sizes, and the memory plan around that of the trunk.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hotloop.core.types import Array
from hotloop.lanes.native import plan_kernels as plan
from hotloop.lanes.native.activation_kernels import CODES
from hotloop.lanes.native.vector_kernels import HALF, LANES


@dataclass(frozen=True, kw_only=True)
class NativeLayout:
    """A multilayer perceptron with a linear or dueling head, of scalar values or of Z atoms.

    The flat parameters hold each layer's weight [out, in] and bias [out]: torso, then head (dueling: value, advantage).
    """

    obs_size: int
    hidden: tuple[int, ...]
    num_actions: int
    activation: str = "relu"
    dueling: bool = False
    atoms: int = 1
    v_min: float = 0.0
    v_max: float = 0.0

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        """(in, out) of every linear layer, in the order of the parameters."""
        widths = (self.obs_size, *self.hidden)
        torso = tuple(zip(widths[:-1], widths[1:], strict=True))
        head = ((widths[-1], self.num_actions * self.atoms),)
        return torso + ((widths[-1], self.atoms), *head) if self.dueling else torso + head

    @property
    def num_parameters(self) -> int:
        return sum(fan_in * fan_out + fan_out for fan_in, fan_out in self.layers)

    @property
    def num_outputs(self) -> int:
        """Of all head layers together."""
        return (self.num_actions + self.dueling) * self.atoms


@dataclass(frozen=True, kw_only=True)
class UpdateConstants:
    """What an update does beside the network; `max_norm` 0: no clipping, `target_every` 0: target left alone."""

    double: bool = False
    huber: bool = True
    max_norm: float = 10.0
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    tau: float = 1.0
    target_every: int = 0


def padded_stride(length: int) -> int:
    """Whole vectors per row. Rows a multiple of 512 bytes apart would share a few sets of the first cache."""
    whole = -(-length // LANES) * LANES
    return whole + LANES if whole % 128 == 0 else whole


class MemoryPlan:
    """The plan for batches of `rows` rows, and the workspace it describes."""

    def __init__(self, layout: NativeLayout, constants: UpdateConstants, rows: int, training: bool = True) -> None:
        self._used = 0
        self.columns = rows * (2 if training and constants.double else 1)
        self.numbers = np.zeros(plan.TABLE + plan.ROW * len(layout.layers), np.int64)
        self._sizes(layout, constants, rows)
        self._activations(layout, training)
        self._heads(layout, training)
        self._table(layout, training)
        self.constants = np.array(
            [constants.max_norm, constants.beta1, constants.beta2, constants.epsilon, constants.tau]
            + [layout.v_min, layout.v_max]
        )
        self.workspace = aligned_zeros(self._used)
        ones = int(self.numbers[plan.ONES])
        self.workspace[ones : ones + rows] = 1.0

    def _take(self, rows: int, stride: int) -> int:
        """Offset of a fresh matrix; whole vectors, so that every row starts at a cache line."""
        offset = self._used
        self._used += -(-rows * stride // LANES) * LANES
        return offset

    def _sizes(self, layout: NativeLayout, constants: UpdateConstants, rows: int) -> None:
        numbers = self.numbers
        numbers[plan.TORSO] = len(layout.hidden)
        numbers[plan.HEADS] = 2 if layout.dueling else 1
        numbers[plan.ACTIVATION] = CODES[layout.activation]
        numbers[plan.ACTIONS] = layout.num_actions
        numbers[plan.ATOMS] = layout.atoms
        numbers[plan.OBS_SIZE] = layout.obs_size
        numbers[plan.COMBINED] = layout.atoms if layout.dueling else 0
        numbers[plan.OUTPUTS] = layout.num_outputs
        numbers[plan.ROWS] = rows
        numbers[plan.COLUMN_STRIDE] = HALF if self.columns <= HALF else padded_stride(self.columns)
        numbers[plan.DOUBLE] = constants.double
        numbers[plan.HUBER] = constants.huber
        numbers[plan.TARGET_EVERY] = constants.target_every
        numbers[plan.PARAMETERS] = layout.num_parameters

    def _activations(self, layout: NativeLayout, training: bool) -> None:
        numbers, widest = self.numbers, max(layout.hidden, default=1)
        rows, stride = int(numbers[plan.ROWS]), int(numbers[plan.COLUMN_STRIDE])
        numbers[plan.ZEROS] = self._take(1, max(rows, widest, layout.num_outputs))
        numbers[plan.ONES] = self._take(1, rows)
        numbers[plan.INPUT] = self._take(layout.obs_size, stride)
        numbers[plan.VALUES_EVEN] = self._take(widest, stride)
        numbers[plan.VALUES_ODD] = self._take(widest, stride)
        numbers[plan.SLOPES] = self._take(widest, stride) if layout.activation == "gelu" else 0
        if training:
            numbers[plan.GRADIENT_EVEN] = self._take(rows, padded_stride(widest))
            numbers[plan.GRADIENT_ODD] = self._take(rows, padded_stride(widest))

    def _heads(self, layout: NativeLayout, training: bool) -> None:
        numbers, outputs = self.numbers, layout.num_outputs
        rows, stride = int(numbers[plan.ROWS]), int(numbers[plan.COLUMN_STRIDE])
        numbers[plan.HEAD_STRIDE] = padded_stride(outputs)
        numbers[plan.HEAD_ONLINE] = self._take(outputs, stride)
        if training:
            numbers[plan.HEAD_TARGET] = self._take(outputs, stride)
            numbers[plan.HEAD_GRADIENT] = self._take(outputs, stride)
            numbers[plan.HEAD_ROWS] = self._take(rows, padded_stride(outputs))
        numbers[plan.SCRATCH] = self._take(layout.num_actions + 4 * layout.atoms + 4, stride)

    def _table(self, layout: NativeLayout, training: bool) -> None:
        rows, offset, output = int(self.numbers[plan.ROWS]), 0, 0
        table = self.numbers[plan.TABLE :].reshape(-1, plan.ROW)
        for index, (fan_in, fan_out) in enumerate(layout.layers):
            bias = offset + fan_in * fan_out
            table[index, : plan.KEPT] = fan_in, fan_out, offset, bias
            table[index, plan.STRIDE] = padded_stride(fan_out)
            offset = bias + fan_out
            if index >= len(layout.hidden):
                table[index, plan.FIRST_OUTPUT] = output
                output += fan_out
            elif training:
                table[index, plan.KEPT] = self._take(rows, padded_stride(fan_out))
                gelu = layout.activation == "gelu"
                table[index, plan.KEPT_SLOPES] = self._take(rows, padded_stride(fan_out)) if gelu else 0


def aligned_zeros(size: int) -> Array:
    """A float32 vector that starts at a cache line: a vector load across two lines costs twice."""
    raw = np.zeros(size + 16, np.float32)
    first = -raw.ctypes.data % 64 // 4
    return raw[first : first + size]


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
        self._stride = int(trunk.numbers[plan.COLUMN_STRIDE])
        self.numbers = np.zeros(plan.BRANCH_TABLE + plan.BRANCH_ROW * len(layout.layers), np.int64)
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
        table = numbers[plan.BRANCH_TABLE :].reshape(-1, plan.BRANCH_ROW)
        for row, layer in zip(table, layout.layers, strict=True):
            row[plan.BRANCH_FAN_IN], row[plan.BRANCH_FAN_OUT], row[plan.BRANCH_COPIES] = (
                layer.fan_in,
                layer.fan_out,
                layer.copies,
            )
            row[plan.BRANCH_WEIGHT], row[plan.BRANCH_BIAS] = offset, offset + layer.fan_in * layer.fan_out
            row[plan.BRANCH_BRANCH], row[plan.BRANCH_FIRST_INPUT], row[plan.BRANCH_IS_LAST] = (
                layer.branch,
                layer.first_input,
                layer.is_last,
            )
            row[plan.BRANCH_STRIDE] = padded_stride(layer.copies * layer.fan_out)
            offset += (layer.fan_in + 1) * layer.fan_out
        numbers[plan.BRANCH_BRANCHES], numbers[plan.BRANCH_WIDTH] = len(layout.shapes), layout.width
        numbers[plan.BRANCH_ATTENTION], numbers[plan.BRANCH_OBS_SIZE] = layout.attention, layout.obs_size
        numbers[plan.BRANCH_INNER_WEIGHT] = offset
        numbers[plan.BRANCH_INNER_BIAS] = offset + layout.width * layout.attention
        numbers[plan.BRANCH_SCORE_WEIGHT] = numbers[plan.BRANCH_INNER_BIAS] + layout.attention
        numbers[plan.BRANCH_SCORE_BIAS] = numbers[plan.BRANCH_SCORE_WEIGHT] + layout.attention
        numbers[plan.BRANCH_TRUNK], numbers[plan.BRANCH_TOTAL] = (
            numbers[plan.BRANCH_SCORE_BIAS] + 1,
            layout.num_parameters,
        )

    def _values(self, layout: NativeBranches) -> None:
        numbers, stride = self.numbers, self._stride
        widest = max(layer.copies * layer.fan_out for layer in layout.layers)
        numbers[plan.BRANCH_INPUTS] = self._take(layout.obs_size, stride)
        numbers[plan.BRANCH_VALUES_EVEN], numbers[plan.BRANCH_VALUES_ODD] = (
            self._take(widest, stride),
            self._take(widest, stride),
        )
        numbers[plan.BRANCH_INNER] = self._take(len(layout.shapes) * layout.attention, stride)
        numbers[plan.BRANCH_SHARES] = self._take(len(layout.shapes), stride)

    def _gradients(self, layout: NativeBranches) -> None:
        numbers, rows, count = self.numbers, self._rows, len(layout.shapes)
        widest = max(layer.copies * layer.fan_out for layer in layout.layers)
        numbers[plan.BRANCH_KEPT_TRUNK] = self._take(rows, (count + 1) * layout.width)
        numbers[plan.BRANCH_KEPT_INNER] = self._take(count * rows, layout.attention)
        numbers[plan.BRANCH_GRADIENT] = self._take(rows, (count + 1) * layout.width)
        numbers[plan.BRANCH_GRADIENT_INNER] = self._take(rows, layout.attention)
        for name in (plan.BRANCH_GRADIENT_EVEN, plan.BRANCH_GRADIENT_ODD):
            numbers[name] = self._take(rows, padded_stride(widest))
        numbers[plan.BRANCH_ZEROS] = self._take(
            1, max(rows, layout.attention, *(layer.fan_out for layer in layout.layers))
        )
        numbers[plan.BRANCH_SCORES] = self._take(2 * count + 2, padded_stride(rows))
        for row in numbers[plan.BRANCH_TABLE :].reshape(-1, plan.BRANCH_ROW):
            row[plan.BRANCH_KEPT] = self._take(rows, int(row[plan.BRANCH_STRIDE]))
