"""Where everything lies in the native lane's memory.

Kernels are compiled once for all networks: what differs between networks is data, one int64 vector called `numbers`.
`plan_kernels.py` names its places:

    0             TABLE                             numbers[BRANCHES], where there are any
    |             |                                 |
    +-------------+-------+-------+-----+-----------+----------------+-------+-------+-----+
    | sizes and   | layer | layer | ... | head      | sizes and      | layer | layer | ... |
    | offsets     |   0   |   1   |     | layer(s)  | offsets        |  of branch 0, 1, ... |
    +-------------+-------+-------+-----+-----------+----------------+-------+-------+-----+
                  <- ROW ->                                          <- BRANCH_ROW ->

Sizes are sizes. Offsets point into two flat float32 vectors: the parameters (`WEIGHT`, `BIAS`: the gradient and Adam's
moments have the same places) and the workspace `work` (all else). So a line like

    row = plan.TABLE + plan.ROW * layer
    multiply(target, (parameters, numbers[row + plan.WEIGHT], fan_in, 1), source, ...)

reads: in the table, the row of this layer; its weight is the matrix in `parameters` that starts at the offset written
there, with rows `fan_in` floats apart and columns 1. Branches, where there are any, are a first stage: they turn the
observations (`INPUT`) into what the torso starts from (`TORSO_INPUT`); without them the two are the same place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hotloop.core.types import Array
from hotloop.lanes.native import plan_kernels as plan
from hotloop.lanes.native.activation_kernels import CODES
from hotloop.lanes.native.vector_kernels import HALF, LANES


@dataclass(frozen=True)
class BranchLayer:
    branch: int
    fan_in: int
    fan_out: int
    copies: int
    first_feature: int
    is_last: bool


@dataclass(frozen=True, kw_only=True)
class Branches:
    """Branches in the order of their parameters, then the attention over them.

    `shapes`: of each part of the observation, (features,) or (rows, columns).
    """

    shapes: tuple[tuple[int, ...], ...]
    vector_hidden: tuple[int, ...]
    row_width: int
    width: int
    attention: int

    @property
    def obs_size(self) -> int:
        return sum(math.prod(shape) for shape in self.shapes)

    @property
    def num_outputs(self) -> int:
        """Each branch's units, and their weighted sum."""
        return (len(self.shapes) + 1) * self.width

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
            start += math.prod(shape)
        return layers

    @property
    def num_parameters(self) -> int:
        branches = sum((layer.fan_in + 1) * layer.fan_out for layer in self.layers)
        return branches + (self.width + 1) * self.attention + self.attention + 1


@dataclass(frozen=True, kw_only=True)
class NativeLayout:
    """A multilayer perceptron with a linear or dueling head, of scalar values or of Z atoms; branches may come first.

    The flat parameters hold those of the branches, then each layer's weight [out, in] and bias [out]: torso, then head
    (dueling: value, advantage).
    """

    obs_size: int
    hidden: tuple[int, ...]
    num_actions: int
    activation: str = "relu"
    dueling: bool = False
    atoms: int = 1
    v_min: float = 0.0
    v_max: float = 0.0
    branches: Branches | None = None

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        """(in, out) of every linear layer of torso and head, in the order of the parameters."""
        widths = (self.branches.num_outputs if self.branches else self.obs_size, *self.hidden)
        torso = tuple(zip(widths[:-1], widths[1:], strict=True))
        head = ((widths[-1], self.num_actions * self.atoms),)
        return torso + ((widths[-1], self.atoms), *head) if self.dueling else torso + head

    @property
    def num_parameters(self) -> int:
        layers = sum(fan_in * fan_out + fan_out for fan_in, fan_out in self.layers)
        return layers + (self.branches.num_parameters if self.branches else 0)

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
        self._used, self._rows, self._training = 0, rows, training
        columns = rows * (2 if training and constants.double else 1)
        self._stride = HALF if columns <= HALF else padded_stride(columns)
        section = plan.TABLE + plan.ROW * len(layout.layers)
        room = plan.BRANCH_TABLE + plan.BRANCH_ROW * len(layout.branches.layers) if layout.branches else 0
        self.numbers = np.zeros(section + room, np.int64)
        self._sizes(layout, constants)
        self._activations(layout)
        self._heads(layout)
        self._table(layout)
        if layout.branches:
            self.numbers[plan.BRANCHES] = section
            self._branches(layout.branches, self.numbers[section:])
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

    def _sizes(self, layout: NativeLayout, constants: UpdateConstants) -> None:
        numbers = self.numbers
        numbers[plan.TORSO] = len(layout.hidden)
        numbers[plan.HEADS] = 2 if layout.dueling else 1
        numbers[plan.ACTIVATION] = CODES[layout.activation]
        numbers[plan.ACTIONS] = layout.num_actions
        numbers[plan.ATOMS] = layout.atoms
        numbers[plan.OBS_SIZE] = layout.obs_size
        numbers[plan.COMBINED] = layout.atoms if layout.dueling else 0
        numbers[plan.OUTPUTS] = layout.num_outputs
        numbers[plan.ROWS] = self._rows
        numbers[plan.COLUMN_STRIDE] = self._stride
        numbers[plan.DOUBLE] = constants.double
        numbers[plan.HUBER] = constants.huber
        numbers[plan.TARGET_EVERY] = constants.target_every
        numbers[plan.PARAMETERS] = layout.num_parameters

    def _activations(self, layout: NativeLayout) -> None:
        numbers, widest, branches = self.numbers, max(layout.hidden, default=1), layout.branches
        tallest = max(self._rows, widest, layout.num_outputs)
        if branches:
            tallest = max(tallest, branches.attention, *(layer.fan_out for layer in branches.layers))
        numbers[plan.ZEROS] = self._take(1, tallest)
        numbers[plan.ONES] = self._take(1, self._rows)
        numbers[plan.INPUT] = numbers[plan.TORSO_INPUT] = self._take(layout.obs_size, self._stride)
        if branches:
            numbers[plan.TORSO_INPUT] = self._take(branches.num_outputs, self._stride)
        numbers[plan.VALUES_EVEN] = self._take(widest, self._stride)
        numbers[plan.VALUES_ODD] = self._take(widest, self._stride)
        if self._training:
            numbers[plan.GRADIENT_EVEN] = self._take(self._rows, padded_stride(widest))
            numbers[plan.GRADIENT_ODD] = self._take(self._rows, padded_stride(widest))

    def _heads(self, layout: NativeLayout) -> None:
        numbers, outputs = self.numbers, layout.num_outputs
        numbers[plan.HEAD_STRIDE] = padded_stride(outputs)
        numbers[plan.HEAD_ONLINE] = self._take(outputs, self._stride)
        if self._training:
            numbers[plan.HEAD_TARGET] = self._take(outputs, self._stride)
            numbers[plan.HEAD_GRADIENT] = self._take(outputs, self._stride)
            numbers[plan.HEAD_ROWS] = self._take(self._rows, padded_stride(outputs))
        numbers[plan.SCRATCH] = self._take(layout.num_actions + 4 * layout.atoms + 4, self._stride)
        numbers[plan.Q_ROWS] = 0 if self._training else self._take(self._rows, layout.num_actions)

    def _table(self, layout: NativeLayout) -> None:
        offset, output = layout.branches.num_parameters if layout.branches else 0, 0
        for index, (fan_in, fan_out) in enumerate(layout.layers):
            row = self.numbers[plan.TABLE + plan.ROW * index :]
            offset = self._layer(row, fan_in, fan_out, offset)
            if index >= len(layout.hidden):
                row[plan.FIRST_OUTPUT] = output
                output += fan_out
            elif self._training:
                row[plan.KEPT] = self._take(self._rows, int(row[plan.STRIDE]))

    def _layer(self, row: Array, fan_in: int, fan_out: int, offset: int, copies: int = 1) -> int:
        """What every table says of a layer whose parameters start at `offset`; where they end."""
        bias = offset + fan_in * fan_out
        row[plan.FAN_IN], row[plan.FAN_OUT], row[plan.WEIGHT], row[plan.BIAS] = fan_in, fan_out, offset, bias
        row[plan.STRIDE] = padded_stride(copies * fan_out)
        return bias + fan_out

    def _branches(self, branches: Branches, section: Array) -> None:
        count, stride, offset = len(branches.shapes), self._stride, 0
        section[plan.NUM_BRANCHES] = count
        section[plan.WIDTH], section[plan.ATTENTION] = branches.width, branches.attention
        widest = max(layer.copies * layer.fan_out for layer in branches.layers)
        section[plan.BRANCH_EVEN], section[plan.BRANCH_ODD] = self._take(widest, stride), self._take(widest, stride)
        section[plan.INNER] = self._take(count * branches.attention, stride)
        section[plan.SHARES] = self._take(count, stride)
        for index, layer in enumerate(branches.layers):
            row = section[plan.BRANCH_TABLE + plan.BRANCH_ROW * index :]
            offset = self._layer(row, layer.fan_in, layer.fan_out, offset, layer.copies)
            row[plan.COPIES], row[plan.OWN_BRANCH] = layer.copies, layer.branch
            row[plan.FIRST_FEATURE], row[plan.IS_LAST] = layer.first_feature, layer.is_last
            if self._training:
                row[plan.KEPT] = self._take(self._rows, int(row[plan.STRIDE]))
        section[plan.INNER_WEIGHT] = offset
        section[plan.INNER_BIAS] = offset + branches.width * branches.attention
        section[plan.SCORE_WEIGHT] = section[plan.INNER_BIAS] + branches.attention
        section[plan.SCORE_BIAS] = section[plan.SCORE_WEIGHT] + branches.attention
        if self._training:
            self._branch_gradients(branches, section, padded_stride(widest))

    def _branch_gradients(self, branches: Branches, section: Array, stride: int) -> None:
        rows, count = self._rows, len(branches.shapes)
        section[plan.KEPT_INPUT] = self._take(rows, branches.num_outputs)
        section[plan.KEPT_INNER] = self._take(count * rows, branches.attention)
        section[plan.INPUT_GRADIENT] = self._take(rows, branches.num_outputs)
        section[plan.INNER_GRADIENT] = self._take(rows, branches.attention)
        section[plan.BRANCH_GRADIENT_EVEN] = self._take(rows, stride)
        section[plan.BRANCH_GRADIENT_ODD] = self._take(rows, stride)
        section[plan.SCORE_GRADIENT] = self._take(count, padded_stride(rows))


def aligned_zeros(size: int) -> Array:
    """A float32 vector that starts at a cache line: a vector load across two lines costs twice."""
    raw = np.zeros(size + 16, np.float32)
    first = -raw.ctypes.data % 64 // 4
    return raw[first : first + size]
