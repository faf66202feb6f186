"""Where everything lies in the memory of a stack: C multilayer networks of the same sizes that see the same inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hotloop.core.types import Array
from hotloop.lanes.native import stack_plan_kernels as plan
from hotloop.lanes.native.activation_kernels import CODES
from hotloop.lanes.native.layout import padded_stride
from hotloop.lanes.native.network_kernels import NARROW
from hotloop.lanes.native.vector_kernels import HALF, LANES


@dataclass(frozen=True, kw_only=True)
class StackLayout:
    """The flat parameters hold, layer by layer, the weights [C, out, in] and biases [C, out] of all copies."""

    num_in: int
    hidden: tuple[int, ...]
    num_out: int
    activation: str = "relu"
    copies: int = 1

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        """(in, out) of every linear layer."""
        widths = (self.num_in, *self.hidden, self.num_out)
        return tuple(zip(widths[:-1], widths[1:], strict=True))

    @property
    def num_parameters(self) -> int:
        return self.copies * sum((fan_in + 1) * fan_out for fan_in, fan_out in self.layers)


class StackPlan:
    """The plan for batches of `rows` rows; it takes the floats `start` to `end` of a workspace.

    `columns`: how many rows one forward pass may see, where they are more than those that are learned from.
    `first_wanted`: the gradient by the inputs is wanted from this feature on.
    """

    def __init__(self, layout: StackLayout, rows: int, columns: int = 0, first_wanted: int = 0, start: int = 0) -> None:
        self._layout, self._rows, self.end = layout, rows, start
        columns = max(rows, columns)
        self.stride = HALF if columns <= HALF else padded_stride(columns)
        self.numbers: Array = np.zeros(plan.TABLE + plan.ROW * len(layout.layers), np.int64)
        self._sizes(first_wanted)
        self._places(first_wanted)
        self._table()

    def fill(self, workspace: Array) -> None:
        """What kernels expect to find in a workspace that is otherwise zero."""
        ones = int(self.numbers[plan.ONES])
        workspace[ones : ones + self._rows] = 1.0

    def _take(self, rows: int, stride: int) -> int:
        """Offset of a fresh matrix; whole vectors, so that every row starts at a cache line."""
        offset = self.end
        self.end += -(-rows * stride // LANES) * LANES
        return offset

    def _sizes(self, first_wanted: int) -> None:
        numbers, layout = self.numbers, self._layout
        numbers[plan.LAYERS] = len(layout.layers)
        numbers[plan.COPIES] = layout.copies
        numbers[plan.ACTIVATION] = CODES[layout.activation]
        numbers[plan.ROWS] = self._rows
        numbers[plan.STRIDE] = self.stride
        numbers[plan.PARAMETERS] = layout.num_parameters
        numbers[plan.FIRST_WANTED] = first_wanted

    def _places(self, first_wanted: int) -> None:
        numbers, layout = self.numbers, self._layout
        tallest = layout.copies * max(max(pair) for pair in layout.layers)
        numbers[plan.ZEROS] = self._take(1, tallest)
        numbers[plan.ONES] = self._take(1, self._rows)
        numbers[plan.INPUT] = self._take(layout.num_in, self.stride)
        numbers[plan.INPUT_GRADIENT] = self._take(layout.num_in - first_wanted, self.stride)
        narrow = layout.num_in <= NARROW
        numbers[plan.INPUT_ROWS] = -1 if narrow else self._take(self._rows, layout.num_in)
        numbers[plan.ACROSS] = self._take(layout.num_in, layout.copies * layout.layers[0][1]) if narrow else -1

    def _table(self) -> None:
        layout, stride, offset = self._layout, self.stride, 0
        widest = layout.copies * max(fan_out for _, fan_out in layout.layers)
        gradients = self._take(widest, stride), self._take(widest, stride)
        for index, (fan_in, fan_out) in enumerate(layout.layers):
            row, lines = self.numbers[plan.TABLE + plan.ROW * index :], layout.copies * fan_out
            row[plan.FAN_IN], row[plan.FAN_OUT], row[plan.WEIGHT] = fan_in, fan_out, offset
            row[plan.BIAS] = offset + lines * fan_in
            offset += lines * (fan_in + 1)
            row[plan.VALUES] = self._take(lines, stride)
            row[plan.GRADIENT] = gradients[index % 2]
            row[plan.KEPT_STRIDE] = padded_stride(lines)
            wanted = index + 1 < len(layout.layers) and layout.layers[index + 1][1] > NARROW
            row[plan.KEPT] = self._take(self._rows, int(row[plan.KEPT_STRIDE])) if wanted else -1
