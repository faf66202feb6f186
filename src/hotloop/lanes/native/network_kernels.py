"""Forward and backward through the layers.

Activations are kept feature-major [features, rows] on the way forward, so that PyTorch's weights [out, in] multiply from the
left as they are and the vector lanes run along the batch. The backward pass wants them batch-major: transposing activations
costs 2 % of a layer, transposing weights would cost more the wider the network. Nothing is computed for the input's gradient.
"""

from __future__ import annotations

import numpy as np

from hotloop.core.kernels import inline_kernel
from hotloop.lanes.native import plan_kernels as plan
from hotloop.lanes.native.activation_kernels import GELU, RELU, activate, multiply_by_slope
from hotloop.lanes.native.matrix_kernels import multiply, transpose
from hotloop.lanes.native.unit_kernels import index, unit, vector, whole
from hotloop.lanes.native.vector_kernels import LANES

(TORSO, HEADS, ACTIVATION, ACTIONS, ATOMS) = (plan.TORSO, plan.HEADS, plan.ACTIVATION, plan.ACTIONS, plan.ATOMS)
(TABLE, ROW, FAN_IN, FAN_OUT, WEIGHT, BIAS) = (plan.TABLE, plan.ROW, plan.FAN_IN, plan.FAN_OUT, plan.WEIGHT, plan.BIAS)
(KEPT, KEPT_SLOPES, STRIDE, FIRST_OUTPUT) = (plan.KEPT, plan.KEPT_SLOPES, plan.STRIDE, plan.FIRST_OUTPUT)
(INPUT, VALUES_EVEN, VALUES_ODD, SLOPES) = (plan.INPUT, plan.VALUES_EVEN, plan.VALUES_ODD, plan.SLOPES)
(ZEROS, ONES, ROWS, COLUMN_STRIDE) = (plan.ZEROS, plan.ONES, plan.ROWS, plan.COLUMN_STRIDE)
(GRADIENT_EVEN, GRADIENT_ODD, HEAD_ROWS, HEAD_STRIDE) = (
    plan.GRADIENT_EVEN,
    plan.GRADIENT_ODD,
    plan.HEAD_ROWS,
    plan.HEAD_STRIDE,
)
NO_FLOOR = np.float32(-np.inf)
ZERO_FLOOR = np.float32(0.0)


@inline_kernel
def _linear(numbers, row, parameters, work, source, target, columns, floor):
    """target [out, columns] = W @ source [in, columns] + b; padding columns are computed along, never read as rows."""
    stride = numbers[COLUMN_STRIDE]
    fan_in, fan_out = numbers[row + FAN_IN], numbers[row + FAN_OUT]
    weight, bias = numbers[row + WEIGHT], numbers[row + BIAS]
    whole = (columns + LANES - 1) // LANES * LANES
    multiply(
        work, target, stride, parameters, weight, fan_in, 1, work, source, stride, parameters, bias,
        fan_out, whole, fan_in, floor, 0,
    )  # fmt: skip


@unit(whole, vector, vector, index, index, index)
def forward(numbers, parameters, work, columns, head, keep):
    """Head outputs [outputs, columns] at `head`, from the inputs [F, columns]; `keep` activations for `backward`."""
    source, torso, code = numbers[INPUT], numbers[TORSO], numbers[ACTIVATION]
    for layer in range(torso):
        row = TABLE + ROW * layer
        target = numbers[VALUES_EVEN] if layer % 2 == 0 else numbers[VALUES_ODD]
        _linear(numbers, row, parameters, work, source, target, columns, ZERO_FLOOR if code == RELU else NO_FLOOR)
        if code != RELU:
            _activate_layer(numbers, row, work, target)
        if keep:
            _keep_layer(numbers, row, work, target)
        source = target
    for layer in range(torso, torso + numbers[HEADS]):
        row = TABLE + ROW * layer
        target = head + numbers[row + FIRST_OUTPUT] * numbers[COLUMN_STRIDE]
        _linear(numbers, row, parameters, work, source, target, columns, NO_FLOOR)


@inline_kernel
def _activate_layer(numbers, row, work, values):
    length, slopes = numbers[row + FAN_OUT] * numbers[COLUMN_STRIDE], numbers[SLOPES]
    activate(numbers[ACTIVATION], work[values : values + length], work[slopes : slopes + length])


@inline_kernel
def _keep_layer(numbers, row, work, values):
    features, rows, columns = numbers[row + FAN_OUT], numbers[ROWS], numbers[COLUMN_STRIDE]
    stride = numbers[row + STRIDE]
    transpose(work, numbers[row + KEPT], stride, work, values, columns, features, rows)
    if numbers[ACTIVATION] == GELU:
        transpose(work, numbers[row + KEPT_SLOPES], stride, work, numbers[SLOPES], columns, features, rows)


@inline_kernel
def _layer_gradient(numbers, row, work, gradient, upper, upper_stride, inputs, inputs_at, inputs_stride):
    """Of weight and bias, from the gradient by the layer's output, batch-major at `upper`, and its inputs."""
    fan_in, fan_out, rows = numbers[row + FAN_IN], numbers[row + FAN_OUT], numbers[ROWS]
    weight, bias, zeros, ones = numbers[row + WEIGHT], numbers[row + BIAS], numbers[ZEROS], numbers[ONES]
    multiply(
        gradient, weight, fan_in, work, upper, 1, upper_stride, inputs, inputs_at, inputs_stride, work, zeros,
        fan_out, fan_in, rows, NO_FLOOR, 0,
    )  # fmt: skip
    multiply(
        gradient, bias, fan_out, work, ones, 0, 1, work, upper, upper_stride, work, zeros,
        1, fan_out, rows, NO_FLOOR, 0,
    )  # fmt: skip


@inline_kernel
def _parameter_gradient(numbers, row, below, work, gradient, upper, upper_stride, obs, obs_at):
    """`_layer_gradient` with its inputs found: torso layer `below`, or, -1, the observations [B, F] themselves."""
    if below < 0:
        stride = numbers[row + FAN_IN]
        _layer_gradient(numbers, row, work, gradient, upper, upper_stride, obs, obs_at, stride)
    else:
        kept, stride = numbers[TABLE + ROW * below + KEPT], numbers[TABLE + ROW * below + STRIDE]
        _layer_gradient(numbers, row, work, gradient, upper, upper_stride, work, kept, stride)


@inline_kernel
def _input_gradient(numbers, row, parameters, work, upper, upper_stride, lower, lower_stride, add):
    """Gradient by the layer's inputs, batch-major at `lower`: upper [B, out] @ W [out, in]."""
    fan_in, fan_out, rows = numbers[row + FAN_IN], numbers[row + FAN_OUT], numbers[ROWS]
    weight, zeros = numbers[row + WEIGHT], numbers[ZEROS]
    multiply(
        work, lower, lower_stride, work, upper, upper_stride, 1, parameters, weight, fan_in, work, zeros,
        rows, fan_in, fan_out, NO_FLOOR, add,
    )  # fmt: skip


@unit(whole, vector, vector, vector, vector, index)
def backward(numbers, parameters, work, gradient, obs, obs_at):
    """Parameter gradients from those by the head outputs (`HEAD_ROWS`, batch-major); `obs` flat, [B, F] at `obs_at`."""
    torso, upper, lower = numbers[TORSO], numbers[GRADIENT_ODD], numbers[GRADIENT_EVEN]
    head_stride = numbers[HEAD_STRIDE]
    for head in range(numbers[HEADS]):
        row = TABLE + ROW * (torso + head)
        at = numbers[HEAD_ROWS] + numbers[row + FIRST_OUTPUT]
        _parameter_gradient(numbers, row, torso - 1, work, gradient, at, head_stride, obs, obs_at)
        if torso > 0:
            stride = numbers[TABLE + ROW * (torso - 1) + STRIDE]
            _input_gradient(numbers, row, parameters, work, at, head_stride, lower, stride, head)
    for step in range(torso):
        layer = torso - 1 - step
        row = TABLE + ROW * layer
        lower, upper = upper, lower
        _slope(numbers, row, work, upper)
        _parameter_gradient(numbers, row, layer - 1, work, gradient, upper, numbers[row + STRIDE], obs, obs_at)
        if layer > 0:
            stride = numbers[row - ROW + STRIDE]
            _input_gradient(numbers, row, parameters, work, upper, numbers[row + STRIDE], lower, stride, 0)


@inline_kernel
def _slope(numbers, row, work, upper):
    known = numbers[row + KEPT_SLOPES] if numbers[ACTIVATION] == GELU else numbers[row + KEPT]
    length = numbers[ROWS] * numbers[row + STRIDE]
    multiply_by_slope(numbers[ACTIVATION], work[upper : upper + length], work[known : known + length])
