"""Forward and backward through a stack: C multilayer networks of the same sizes that see the same inputs.

The first layers of all copies are one product, since their weights lie below each other; the others are one for each
copy. All matrices stay feature-major on the way back too: the gradient by a layer's inputs is W^T @ G. Only a weight
gradient between two wide layers wants its inputs batch-major; where one side is narrow (observations, actions, values)
dot products along the batch do without. So a backward pass that wants no weight gradients transposes nothing.
"""

from __future__ import annotations

from hotloop.core.kernels import inline_kernel
from hotloop.core.types import Array
from hotloop.lanes.native import stack_plan_kernels as plan
from hotloop.lanes.native.activation_kernels import RELU, activate, multiply_by_slope
from hotloop.lanes.native.matrix_kernels import Matrix, Place, multiply, multiply_vector, padded_columns, transpose
from hotloop.lanes.native.network_kernels import NARROW, NO_FLOOR, ZERO_FLOOR
from hotloop.lanes.native.unit_kernels import index, matrix, place, unit, vector, whole


@unit(place, matrix, index, index, index, index)
def line_dots(out: Place, lines: Matrix, line: int, zeros: int, count: int, length: int) -> None:
    """out [count] = the dot product of each of the lines with the one at `line`."""
    data = lines[0]
    multiply_vector(out, lines, (data, line), (data, zeros), count, length)


@unit(whole, vector, vector, index, index, index)
def forward_stack(int_plan: Array, parameters: Array, work: Array, copies: int, columns: int, keep: int) -> None:
    """`VALUES` of all layers of the first `copies`, from `columns` columns of `INPUT`.

    `keep` the first B columns of what `backward_stack` wants batch-major.
    """
    last, code, stride = int_plan[plan.LAYERS] - 1, int_plan[plan.ACTIVATION], int_plan[plan.STRIDE]
    source, width = int_plan[plan.INPUT], padded_columns(columns)
    for layer in range(last + 1):
        row = plan.TABLE + plan.ROW * layer
        fan_in, fan_out, target = int_plan[row + plan.FAN_IN], int_plan[row + plan.FAN_OUT], int_plan[row + plan.VALUES]
        weight, bias = int_plan[row + plan.WEIGHT], int_plan[row + plan.BIAS]
        together = copies if layer == 0 else 1
        floor = ZERO_FLOOR if code == RELU and layer < last else NO_FLOOR
        for c in range(copies // together):
            multiply(
                (work, target + c * fan_out * stride, stride),
                (parameters, weight + c * fan_out * fan_in, fan_in, 1),
                (work, source + c * fan_in * stride, stride),
                (parameters, bias + c * fan_out),
                (together * fan_out, width, fan_in),
                floor,
                0,
            )
        if layer < last and code != RELU:
            activate(code, work[target : target + copies * fan_out * stride])
        if keep and int_plan[row + plan.KEPT] >= 0:
            kept = (work, int_plan[row + plan.KEPT], int_plan[row + plan.KEPT_STRIDE])
            transpose(kept, (work, target, stride), copies * fan_out, int_plan[plan.ROWS])
        source = target


@unit(whole, vector, vector, vector)
def backward_stack(int_plan: Array, parameters: Array, work: Array, gradient: Array) -> None:
    """Parameter gradients of all copies, from the last layer's `GRADIENT`, which holds B columns."""
    copies, rows = int_plan[plan.COPIES], int_plan[plan.ROWS]
    for layer in range(int_plan[plan.LAYERS] - 1, -1, -1):
        row = plan.TABLE + plan.ROW * layer
        _through_activation(int_plan, layer, work, 0, copies)
        _weight_gradient(int_plan, layer, work, gradient)
        upper = (work, int_plan[row + plan.GRADIENT], int_plan[plan.STRIDE])
        bias, sums = (gradient, int_plan[row + plan.BIAS]), copies * int_plan[row + plan.FAN_OUT]
        line_dots(bias, upper, int_plan[plan.ONES], int_plan[plan.ZEROS], sums, rows)
        for c in range(copies if layer > 0 else 0):
            _input_gradient(int_plan, layer, parameters, work, c, rows)


@unit(whole, vector, vector, index, index, index)
def input_gradient(int_plan: Array, parameters: Array, work: Array, first: int, copies: int, columns: int) -> None:
    """`INPUT_GRADIENT`, summed over `copies` copies from `first` on, from the last layer's `GRADIENT`."""
    stride, width = int_plan[plan.STRIDE], padded_columns(columns)
    for layer in range(int_plan[plan.LAYERS] - 1, -1, -1):
        _through_activation(int_plan, layer, work, first, copies)
        for c in range(first, first + copies if layer > 0 else first):
            _input_gradient(int_plan, layer, parameters, work, c, columns)
    fan_in, fan_out = int_plan[plan.TABLE + plan.FAN_IN], int_plan[plan.TABLE + plan.FAN_OUT]
    wanted, above = int_plan[plan.FIRST_WANTED], int_plan[plan.TABLE + plan.GRADIENT]
    weight = int_plan[plan.TABLE + plan.WEIGHT] + first * fan_out * fan_in + wanted
    multiply(
        (work, int_plan[plan.INPUT_GRADIENT], stride),
        (parameters, weight, 1, fan_in),
        (work, above + first * fan_out * stride, stride),
        (work, int_plan[plan.ZEROS]),
        (fan_in - wanted, width, copies * fan_out),
        NO_FLOOR,
        0,
    )


@inline_kernel
def _through_activation(int_plan: Array, layer: int, work: Array, first: int, copies: int) -> None:
    """From the gradient by a layer's values to that by its linear outputs; the last layer has no activation."""
    row, stride = plan.TABLE + plan.ROW * layer, int_plan[plan.STRIDE]
    if layer < int_plan[plan.LAYERS] - 1:
        start, length = first * int_plan[row + plan.FAN_OUT] * stride, copies * int_plan[row + plan.FAN_OUT] * stride
        above, values = int_plan[row + plan.GRADIENT] + start, int_plan[row + plan.VALUES] + start
        multiply_by_slope(int_plan[plan.ACTIVATION], work[above : above + length], work[values : values + length])


@inline_kernel
def _input_gradient(int_plan: Array, layer: int, parameters: Array, work: Array, copy: int, columns: int) -> None:
    """`GRADIENT` of the layer below [in, columns] = W^T @ `GRADIENT` of this one, for one copy."""
    row, stride = plan.TABLE + plan.ROW * layer, int_plan[plan.STRIDE]
    fan_in, fan_out = int_plan[row + plan.FAN_IN], int_plan[row + plan.FAN_OUT]
    above, below = int_plan[row + plan.GRADIENT], int_plan[row - plan.ROW + plan.GRADIENT]
    multiply(
        (work, below + copy * fan_in * stride, stride),
        (parameters, int_plan[row + plan.WEIGHT] + copy * fan_out * fan_in, 1, fan_in),
        (work, above + copy * fan_out * stride, stride),
        (work, int_plan[plan.ZEROS]),
        (fan_in, padded_columns(columns), fan_out),
        NO_FLOOR,
        0,
    )


@inline_kernel
def _weight_gradient(int_plan: Array, layer: int, work: Array, gradient: Array) -> None:
    """Of a layer of all copies: G @ inputs^T, summed over the batch."""
    row, stride, rows = plan.TABLE + plan.ROW * layer, int_plan[plan.STRIDE], int_plan[plan.ROWS]
    fan_in, fan_out, copies = int_plan[row + plan.FAN_IN], int_plan[row + plan.FAN_OUT], int_plan[plan.COPIES]
    weight, above, zeros = int_plan[row + plan.WEIGHT], int_plan[row + plan.GRADIENT], int_plan[plan.ZEROS]
    if layer > 0 and fan_out <= NARROW:
        below = int_plan[row - plan.ROW + plan.VALUES]
        for line in range(copies * fan_out):
            source = below + line // fan_out * fan_in * stride
            out = (gradient, weight + line * fan_in)
            line_dots(out, (work, source, stride), above + line * stride, zeros, fan_in, rows)
    elif layer == 0 and int_plan[plan.INPUT_ROWS] < 0:
        across, outputs = int_plan[plan.ACROSS], copies * fan_out
        for i in range(fan_in):
            out, seen = (work, across + i * outputs), int_plan[plan.INPUT] + i * stride
            line_dots(out, (work, above, stride), seen, zeros, outputs, rows)
        transpose((gradient, weight, fan_in), (work, across, outputs), fan_in, outputs)
    else:
        together = copies if layer == 0 else 1
        kept = int_plan[plan.INPUT_ROWS] if layer == 0 else int_plan[row - plan.ROW + plan.KEPT]
        kept_stride = fan_in if layer == 0 else int_plan[row - plan.ROW + plan.KEPT_STRIDE]
        for c in range(copies // together):
            multiply(
                (gradient, weight + c * fan_out * fan_in, fan_in),
                (work, above + c * fan_out * stride, stride, 1),
                (work, kept + c * fan_in, kept_stride),
                (work, zeros),
                (together * fan_out, fan_in, rows),
                NO_FLOOR,
                0,
            )
