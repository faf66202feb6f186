"""Forward and backward through the layers.

Activations are kept feature-major [features, rows] on the way forward, so that PyTorch's weights [out, in] multiply
from the left as they are and the vector lanes run along the batch. The backward pass wants them batch-major:
transposing activations costs a few per cent of a layer, transposing weights would cost more the wider the network.
The input's gradient is not computed.
"""

from __future__ import annotations

import numpy as np

from hotloop.core.kernels import inline_kernel
from hotloop.core.types import Array
from hotloop.lanes.native import plan_kernels as plan
from hotloop.lanes.native.activation_kernels import GELU, RELU, activate, multiply_by_slope
from hotloop.lanes.native.matrix_kernels import Matrix, multiply, padded_columns, transpose
from hotloop.lanes.native.unit_kernels import index, unit, vector, whole
from hotloop.lanes.native.vector_kernels import LANES

NO_FLOOR = np.float32(-np.inf)
ZERO_FLOOR = np.float32(0.0)
NARROW = LANES // 2
"""So few inputs would leave half of the lanes idle: their gradient is computed transposed."""


@unit(whole, vector, vector, index, index, index)
def forward(numbers: Array, parameters: Array, work: Array, columns: int, head: int, keep: int) -> None:
    """Head outputs [outputs, columns] at `head`, from the inputs [F, columns]; `keep` activations for `backward`."""
    torso, stride, code = numbers[plan.TORSO], numbers[plan.COLUMN_STRIDE], numbers[plan.ACTIVATION]
    source = numbers[plan.INPUT]
    for layer in range(torso):
        row = plan.TABLE + plan.ROW * layer
        target = numbers[plan.VALUES_EVEN] if layer % 2 == 0 else numbers[plan.VALUES_ODD]
        floor = ZERO_FLOOR if code == RELU else NO_FLOOR
        _linear(numbers, row, parameters, (work, source, stride), (work, target, stride), columns, floor)
        if code != RELU:
            _activate_layer(numbers, row, work, target)
        if keep:
            _keep_layer(numbers, row, work, target)
        source = target
    for layer in range(torso, torso + numbers[plan.HEADS]):
        row = plan.TABLE + plan.ROW * layer
        target = head + numbers[row + plan.FIRST_OUTPUT] * stride
        _linear(numbers, row, parameters, (work, source, stride), (work, target, stride), columns, NO_FLOOR)


@inline_kernel
def _linear(
    numbers: Array, row: int, parameters: Array, source: Matrix, target: Matrix, columns: int, floor: float
) -> None:
    """target [out, columns] = W @ source [in, columns] + b; padding columns are computed along, never read as rows."""
    fan_in, fan_out = numbers[row + plan.FAN_IN], numbers[row + plan.FAN_OUT]
    weight, bias = numbers[row + plan.WEIGHT], numbers[row + plan.BIAS]
    sizes = (fan_out, padded_columns(columns), fan_in)
    multiply(target, (parameters, weight, fan_in, 1), source, (parameters, bias), sizes, floor, 0)


@inline_kernel
def _activate_layer(numbers: Array, row: int, work: Array, values: int) -> None:
    length, slopes = numbers[row + plan.FAN_OUT] * numbers[plan.COLUMN_STRIDE], numbers[plan.SLOPES]
    activate(numbers[plan.ACTIVATION], work[values : values + length], work[slopes : slopes + length])


@inline_kernel
def _keep_layer(numbers: Array, row: int, work: Array, values: int) -> None:
    features, rows, columns = numbers[row + plan.FAN_OUT], numbers[plan.ROWS], numbers[plan.COLUMN_STRIDE]
    stride = numbers[row + plan.STRIDE]
    transpose((work, numbers[row + plan.KEPT], stride), (work, values, columns), features, rows)
    if numbers[plan.ACTIVATION] == GELU:
        slopes = (work, numbers[plan.SLOPES], columns)
        transpose((work, numbers[row + plan.KEPT_SLOPES], stride), slopes, features, rows)


@unit(whole, vector, vector, vector, vector, index)
def backward(numbers: Array, parameters: Array, work: Array, gradient: Array, obs: Array, obs_at: int) -> None:
    """Parameter gradients from those by the head outputs (`HEAD_ROWS`); `obs` flat, [B, F] at `obs_at`."""
    torso, above, below = numbers[plan.TORSO], numbers[plan.GRADIENT_ODD], numbers[plan.GRADIENT_EVEN]
    inputs = (obs, obs_at, numbers[plan.OBS_SIZE])
    for head in range(numbers[plan.HEADS]):
        row = plan.TABLE + plan.ROW * (torso + head)
        upper = (work, numbers[plan.HEAD_ROWS] + numbers[row + plan.FIRST_OUTPUT], numbers[plan.HEAD_STRIDE])
        _layer_gradient(numbers, row, work, gradient, upper, _inputs_of(numbers, torso, work, inputs))
        if torso > 0:
            _input_gradient(numbers, row, parameters, upper, (work, below, _stride_below(numbers, torso)), head)
    for layer in range(torso - 1, -1, -1):
        row = plan.TABLE + plan.ROW * layer
        below, above = above, below
        upper = (work, above, numbers[row + plan.STRIDE])
        _multiply_by_slope(numbers, row, work, above)
        _layer_gradient(numbers, row, work, gradient, upper, _inputs_of(numbers, layer, work, inputs))
        if layer > 0:
            _input_gradient(numbers, row, parameters, upper, (work, below, _stride_below(numbers, layer)), 0)


@inline_kernel
def _stride_below(numbers: Array, layer: int) -> int:
    return numbers[plan.TABLE + plan.ROW * (layer - 1) + plan.STRIDE]


@inline_kernel
def _inputs_of(numbers: Array, layer: int, work: Array, inputs: Matrix) -> Matrix:
    """What went into a layer, batch-major: the kept activations of the one below, or the observations."""
    if layer == 0:
        return inputs
    return (work, numbers[plan.TABLE + plan.ROW * (layer - 1) + plan.KEPT], _stride_below(numbers, layer))


@inline_kernel
def _layer_gradient(numbers: Array, row: int, work: Array, gradient: Array, upper: Matrix, inputs: Matrix) -> None:
    """Of weight and bias, from the gradient `upper` by the layer's output and from its inputs, both batch-major."""
    fan_in, fan_out, rows = numbers[row + plan.FAN_IN], numbers[row + plan.FAN_OUT], numbers[plan.ROWS]
    weight, zeros = (gradient, numbers[row + plan.WEIGHT], fan_in), (work, numbers[plan.ZEROS])
    (upper_data, upper_at, upper_stride), (inputs_data, inputs_at, inputs_stride) = upper, inputs
    if fan_in <= NARROW and row == plan.TABLE and numbers[plan.TORSO] > 0:
        across = (work, numbers[plan.VALUES_EVEN], fan_out)  # free by now, and [widest, at least HALF]
        left = (inputs_data, inputs_at, 1, inputs_stride)
        multiply(across, left, upper, zeros, (fan_in, fan_out, rows), NO_FLOOR, 0)
        transpose(weight, across, fan_in, fan_out)
    else:
        left = (upper_data, upper_at, 1, upper_stride)
        multiply(weight, left, inputs, zeros, (fan_out, fan_in, rows), NO_FLOOR, 0)
    ones, bias = (work, numbers[plan.ONES], 0, 1), (gradient, numbers[row + plan.BIAS], fan_out)
    multiply(bias, ones, upper, zeros, (1, fan_out, rows), NO_FLOOR, 0)


@inline_kernel
def _input_gradient(numbers: Array, row: int, parameters: Array, upper: Matrix, lower: Matrix, add: int) -> None:
    """lower [B, in] = upper [B, out] @ W [out, in]: the gradient by the layer's inputs."""
    fan_in, fan_out, rows = numbers[row + plan.FAN_IN], numbers[row + plan.FAN_OUT], numbers[plan.ROWS]
    data, at, stride = upper
    weight, zeros = (parameters, numbers[row + plan.WEIGHT], fan_in), (data, numbers[plan.ZEROS])
    multiply(lower, (data, at, stride, 1), weight, zeros, (rows, fan_in, fan_out), NO_FLOOR, add)


@inline_kernel
def _multiply_by_slope(numbers: Array, row: int, work: Array, upper: int) -> None:
    known = numbers[row + plan.KEPT_SLOPES] if numbers[plan.ACTIVATION] == GELU else numbers[row + plan.KEPT]
    length = numbers[plan.ROWS] * numbers[row + plan.STRIDE]
    multiply_by_slope(numbers[plan.ACTIVATION], work[upper : upper + length], work[known : known + length])
