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
def forward_stack(numbers: Array, parameters: Array, work: Array, copies: int, columns: int, keep: int) -> None:
    """`VALUES` of all layers of the first `copies`, from `columns` columns of `INPUT`.

    `keep` the first B columns of what `backward_stack` wants batch-major.
    """
    last, code, stride = numbers[plan.LAYERS] - 1, numbers[plan.ACTIVATION], numbers[plan.STRIDE]
    source, width = numbers[plan.INPUT], padded_columns(columns)
    for layer in range(last + 1):
        row = plan.TABLE + plan.ROW * layer
        fan_in, fan_out, target = numbers[row + plan.FAN_IN], numbers[row + plan.FAN_OUT], numbers[row + plan.VALUES]
        weight, bias = numbers[row + plan.WEIGHT], numbers[row + plan.BIAS]
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
        if keep and numbers[row + plan.KEPT] >= 0:
            kept = (work, numbers[row + plan.KEPT], numbers[row + plan.KEPT_STRIDE])
            transpose(kept, (work, target, stride), copies * fan_out, numbers[plan.ROWS])
        source = target


@unit(whole, vector, vector, vector)
def backward_stack(numbers: Array, parameters: Array, work: Array, gradient: Array) -> None:
    """Parameter gradients of all copies, from the last layer's `GRADIENT`, which holds B columns."""
    copies, rows = numbers[plan.COPIES], numbers[plan.ROWS]
    for layer in range(numbers[plan.LAYERS] - 1, -1, -1):
        row = plan.TABLE + plan.ROW * layer
        _through_activation(numbers, layer, work, 0, copies)
        _weight_gradient(numbers, layer, work, gradient)
        upper = (work, numbers[row + plan.GRADIENT], numbers[plan.STRIDE])
        bias, sums = (gradient, numbers[row + plan.BIAS]), copies * numbers[row + plan.FAN_OUT]
        line_dots(bias, upper, numbers[plan.ONES], numbers[plan.ZEROS], sums, rows)
        for c in range(copies if layer > 0 else 0):
            _input_gradient(numbers, layer, parameters, work, c, rows)


@unit(whole, vector, vector, index, index, index)
def input_gradient(numbers: Array, parameters: Array, work: Array, first: int, copies: int, columns: int) -> None:
    """`INPUT_GRADIENT`, summed over `copies` copies from `first` on, from the last layer's `GRADIENT`."""
    stride, width = numbers[plan.STRIDE], padded_columns(columns)
    for layer in range(numbers[plan.LAYERS] - 1, -1, -1):
        _through_activation(numbers, layer, work, first, copies)
        for c in range(first, first + copies if layer > 0 else first):
            _input_gradient(numbers, layer, parameters, work, c, columns)
    fan_in, fan_out = numbers[plan.TABLE + plan.FAN_IN], numbers[plan.TABLE + plan.FAN_OUT]
    wanted, above = numbers[plan.FIRST_WANTED], numbers[plan.TABLE + plan.GRADIENT]
    weight = numbers[plan.TABLE + plan.WEIGHT] + first * fan_out * fan_in + wanted
    multiply(
        (work, numbers[plan.INPUT_GRADIENT], stride),
        (parameters, weight, 1, fan_in),
        (work, above + first * fan_out * stride, stride),
        (work, numbers[plan.ZEROS]),
        (fan_in - wanted, width, copies * fan_out),
        NO_FLOOR,
        0,
    )


@inline_kernel
def _through_activation(numbers: Array, layer: int, work: Array, first: int, copies: int) -> None:
    """From the gradient by a layer's values to that by its linear outputs; the last layer has no activation."""
    row, stride = plan.TABLE + plan.ROW * layer, numbers[plan.STRIDE]
    if layer < numbers[plan.LAYERS] - 1:
        start, length = first * numbers[row + plan.FAN_OUT] * stride, copies * numbers[row + plan.FAN_OUT] * stride
        above, values = numbers[row + plan.GRADIENT] + start, numbers[row + plan.VALUES] + start
        multiply_by_slope(numbers[plan.ACTIVATION], work[above : above + length], work[values : values + length])


@inline_kernel
def _input_gradient(numbers: Array, layer: int, parameters: Array, work: Array, copy: int, columns: int) -> None:
    """`GRADIENT` of the layer below [in, columns] = W^T @ `GRADIENT` of this one, for one copy."""
    row, stride = plan.TABLE + plan.ROW * layer, numbers[plan.STRIDE]
    fan_in, fan_out = numbers[row + plan.FAN_IN], numbers[row + plan.FAN_OUT]
    above, below = numbers[row + plan.GRADIENT], numbers[row - plan.ROW + plan.GRADIENT]
    multiply(
        (work, below + copy * fan_in * stride, stride),
        (parameters, numbers[row + plan.WEIGHT] + copy * fan_out * fan_in, 1, fan_in),
        (work, above + copy * fan_out * stride, stride),
        (work, numbers[plan.ZEROS]),
        (fan_in, padded_columns(columns), fan_out),
        NO_FLOOR,
        0,
    )


@inline_kernel
def _weight_gradient(numbers: Array, layer: int, work: Array, gradient: Array) -> None:
    """Of a layer of all copies: G @ inputs^T, summed over the batch."""
    row, stride, rows = plan.TABLE + plan.ROW * layer, numbers[plan.STRIDE], numbers[plan.ROWS]
    fan_in, fan_out, copies = numbers[row + plan.FAN_IN], numbers[row + plan.FAN_OUT], numbers[plan.COPIES]
    weight, above, zeros = numbers[row + plan.WEIGHT], numbers[row + plan.GRADIENT], numbers[plan.ZEROS]
    if layer > 0 and fan_out <= NARROW:
        below = numbers[row - plan.ROW + plan.VALUES]
        for line in range(copies * fan_out):
            source = below + line // fan_out * fan_in * stride
            out = (gradient, weight + line * fan_in)
            line_dots(out, (work, source, stride), above + line * stride, zeros, fan_in, rows)
    elif layer == 0 and numbers[plan.INPUT_ROWS] < 0:
        across, outputs = numbers[plan.ACROSS], copies * fan_out
        for i in range(fan_in):
            out, seen = (work, across + i * outputs), numbers[plan.INPUT] + i * stride
            line_dots(out, (work, above, stride), seen, zeros, outputs, rows)
        transpose((gradient, weight, fan_in), (work, across, outputs), fan_in, outputs)
    else:
        together = copies if layer == 0 else 1
        kept = numbers[plan.INPUT_ROWS] if layer == 0 else numbers[row - plan.ROW + plan.KEPT]
        kept_stride = fan_in if layer == 0 else numbers[row - plan.ROW + plan.KEPT_STRIDE]
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
