"""Forward and backward through the layers.

Activations are kept feature-major [features, rows] on the way forward, so that PyTorch's weights [out, in] multiply
from the left as they are and the vector lanes run along the batch. The backward pass wants them batch-major:
transposing activations costs a few per cent of a layer, transposing weights would cost more the wider the network.
The input's gradient is not computed.

From head outputs to values, on feature-major matrices [outputs, rows]: inner loops run along rows and vectorize.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.kernels import inline_kernel
from hotloop.core.types import Array
from hotloop.lanes.native import plan_kernels as plan
from hotloop.lanes.native.activation_kernels import RELU, activate, exp, multiply_by_slope
from hotloop.lanes.native.matrix_kernels import Matrix, multiply, padded_columns, transpose
from hotloop.lanes.native.unit_kernels import index, real_vector, unit, vector, whole
from hotloop.lanes.native.vector_kernels import LANES

NO_FLOOR = np.float32(-np.inf)
ZERO_FLOOR = np.float32(0.0)
NARROW = LANES // 2
"""So few inputs would leave half of the lanes idle: their gradient is computed transposed."""


@unit(whole, vector, vector, index, index, index)
def forward(int_plan: Array, parameters: Array, work: Array, columns: int, head: int, keep: int) -> None:
    """Head outputs [outputs, columns] at `head`, from the torso's inputs; `keep` activations for `backward`."""
    torso, stride, code = int_plan[plan.TORSO], int_plan[plan.COLUMN_STRIDE], int_plan[plan.ACTIVATION]
    source = int_plan[plan.TORSO_INPUT]
    for layer in range(torso):
        row = plan.TABLE + plan.ROW * layer
        target = int_plan[plan.VALUES_EVEN] if layer % 2 == 0 else int_plan[plan.VALUES_ODD]
        floor = ZERO_FLOOR if code == RELU else NO_FLOOR
        _linear(int_plan, row, parameters, (work, source, stride), (work, target, stride), columns, floor)
        features = int_plan[row + plan.FAN_OUT]
        if code != RELU:
            activate(code, work[target : target + features * stride])
        if keep:
            kept = (work, int_plan[row + plan.KEPT], int_plan[row + plan.STRIDE])
            transpose(kept, (work, target, stride), features, int_plan[plan.ROWS])
        source = target
    for layer in range(torso, torso + int_plan[plan.HEADS]):
        row = plan.TABLE + plan.ROW * layer
        target = head + int_plan[row + plan.FIRST_OUTPUT] * stride
        _linear(int_plan, row, parameters, (work, source, stride), (work, target, stride), columns, NO_FLOOR)


@inline_kernel
def _linear(
    int_plan: Array, row: int, parameters: Array, source: Matrix, target: Matrix, columns: int, floor: float
) -> None:
    """target [out, columns] = W @ source [in, columns] + b; padding columns are computed along, never read as rows."""
    fan_in, fan_out = int_plan[row + plan.FAN_IN], int_plan[row + plan.FAN_OUT]
    weight, bias = int_plan[row + plan.WEIGHT], int_plan[row + plan.BIAS]
    sizes = (fan_out, padded_columns(columns), fan_in)
    multiply(target, (parameters, weight, fan_in, 1), source, (parameters, bias), sizes, floor, 0)


@unit(whole, vector, vector, vector, vector, index)
def backward(int_plan: Array, parameters: Array, work: Array, gradient: Array, seen: Array, first: int) -> None:
    """Parameter gradients from those by the head outputs (`HEAD_ROWS`).

    `seen` is flat and holds, from `first` on, what the torso saw, batch-major.
    """
    torso, above, below = int_plan[plan.TORSO], int_plan[plan.GRADIENT_ODD], int_plan[plan.GRADIENT_EVEN]
    inputs = (seen, first, int_plan[plan.TABLE + plan.FAN_IN])
    for head in range(int_plan[plan.HEADS]):
        row = plan.TABLE + plan.ROW * (torso + head)
        upper = (work, int_plan[plan.HEAD_ROWS] + int_plan[row + plan.FIRST_OUTPUT], int_plan[plan.HEAD_STRIDE])
        _layer_gradient(int_plan, row, work, gradient, upper, _inputs_of(int_plan, torso, work, inputs))
        if torso > 0:
            _input_gradient(int_plan, row, parameters, upper, (work, below, _stride_below(int_plan, torso)), head)
    for layer in range(torso - 1, -1, -1):
        row = plan.TABLE + plan.ROW * layer
        below, above = above, below
        upper = (work, above, int_plan[row + plan.STRIDE])
        kept, length = int_plan[row + plan.KEPT], int_plan[plan.ROWS] * int_plan[row + plan.STRIDE]
        multiply_by_slope(int_plan[plan.ACTIVATION], work[above : above + length], work[kept : kept + length])
        _layer_gradient(int_plan, row, work, gradient, upper, _inputs_of(int_plan, layer, work, inputs))
        if layer > 0:
            _input_gradient(int_plan, row, parameters, upper, (work, below, _stride_below(int_plan, layer)), 0)


@inline_kernel
def _stride_below(int_plan: Array, layer: int) -> int:
    return int_plan[plan.TABLE + plan.ROW * (layer - 1) + plan.STRIDE]


@inline_kernel
def _inputs_of(int_plan: Array, layer: int, work: Array, inputs: Matrix) -> Matrix:
    """What went into a layer, batch-major: the kept activations of the one below, or what the torso saw."""
    if layer == 0:
        return inputs
    return (work, int_plan[plan.TABLE + plan.ROW * (layer - 1) + plan.KEPT], _stride_below(int_plan, layer))


@inline_kernel
def _layer_gradient(int_plan: Array, row: int, work: Array, gradient: Array, upper: Matrix, inputs: Matrix) -> None:
    """Of weight and bias, from the gradient `upper` by the layer's output and from its inputs, both batch-major."""
    fan_in, fan_out, rows = int_plan[row + plan.FAN_IN], int_plan[row + plan.FAN_OUT], int_plan[plan.ROWS]
    weight, zeros = (gradient, int_plan[row + plan.WEIGHT], fan_in), (work, int_plan[plan.ZEROS])
    (upper_data, upper_at, upper_stride), (inputs_data, inputs_at, inputs_stride) = upper, inputs
    if fan_in <= NARROW and row == plan.TABLE and int_plan[plan.TORSO] > 0:
        across = (work, int_plan[plan.VALUES_EVEN], fan_out)  # free by now, and [widest, at least HALF]
        left = (inputs_data, inputs_at, 1, inputs_stride)
        multiply(across, left, upper, zeros, (fan_in, fan_out, rows), NO_FLOOR, 0)
        transpose(weight, across, fan_in, fan_out)
    else:
        left = (upper_data, upper_at, 1, upper_stride)
        multiply(weight, left, inputs, zeros, (fan_out, fan_in, rows), NO_FLOOR, 0)
    ones, bias = (work, int_plan[plan.ONES], 0, 1), (gradient, int_plan[row + plan.BIAS], fan_out)
    multiply(bias, ones, upper, zeros, (1, fan_out, rows), NO_FLOOR, 0)


@inline_kernel
def _input_gradient(int_plan: Array, row: int, parameters: Array, upper: Matrix, lower: Matrix, add: int) -> None:
    """lower [B, in] = upper [B, out] @ W [out, in]: the gradient by the layer's inputs."""
    fan_in, fan_out, rows = int_plan[row + plan.FAN_IN], int_plan[row + plan.FAN_OUT], int_plan[plan.ROWS]
    data, at, stride = upper
    weight, zeros = (parameters, int_plan[row + plan.WEIGHT], fan_in), (data, int_plan[plan.ZEROS])
    multiply(lower, (data, at, stride, 1), weight, zeros, (rows, fan_in, fan_out), NO_FLOOR, add)


Float: Any = np.float32
LOWEST = Float(-np.inf)


@inline_kernel
def _add(target: Array, source: Array, factor: float) -> None:
    for i in range(target.size):
        target[i] += factor * source[i]


@unit(whole, vector, index, index, index)
def combine_streams(int_plan: Array, work: Array, head: int, stride: int, columns: int) -> None:
    """Dueling: advantage + value - mean advantage, in place of the advantages (Wang et al. 2016)."""
    actions, atoms, shared = int_plan[plan.ACTIONS], int_plan[plan.ATOMS], Float(-1.0) / Float(int_plan[plan.ACTIONS])
    if int_plan[plan.COMBINED] > 0:
        for z in range(atoms):
            value = work[head + z * stride : head + z * stride + columns]
            for a in range(actions):
                _add(value, _line(work, head, (1 + a) * atoms + z, stride, columns), shared)
            for a in range(actions):
                _add(_line(work, head, (1 + a) * atoms + z, stride, columns), value, Float(1.0))


@unit(whole, vector, index, index, index)
def split_gradient(int_plan: Array, work: Array, head: int, stride: int, columns: int) -> None:
    """The reverse: value gets the sum over actions, each advantage its own less the mean."""
    actions, atoms, shared = int_plan[plan.ACTIONS], int_plan[plan.ATOMS], Float(-1.0) / Float(int_plan[plan.ACTIONS])
    if int_plan[plan.COMBINED] > 0:
        for z in range(atoms):
            value = _line(work, head, z, stride, columns)
            value[:] = Float(0.0)
            for a in range(actions):
                _add(value, _line(work, head, (1 + a) * atoms + z, stride, columns), Float(1.0))
            for a in range(actions):
                _add(_line(work, head, (1 + a) * atoms + z, stride, columns), value, shared)


@inline_kernel
def _line(work: Array, start: int, index: int, stride: int, columns: int) -> Array:
    return work[start + index * stride : start + index * stride + columns]


@inline_kernel
def _raise_to(top: Array, source: Array) -> None:
    for i in range(top.size):
        top[i] = top[i] if source[i] < top[i] else source[i]


@inline_kernel
def _exp_below(target: Array, source: Array, top: Array) -> None:
    for i in range(target.size):
        target[i] = exp(source[i] - top[i])


@inline_kernel
def _divide(target: Array, source: Array) -> None:
    for i in range(target.size):
        target[i] /= source[i]


@unit(vector, index, index, index, index, index, index, index)
def softmax(work: Array, logits: int, stride: int, atoms: int, columns: int, out: int, top: int, total: int) -> None:
    """out [Z, columns] = exp(logits - top), with the row maximum `top` and the sum `total` [columns]; not yet divided.

    `out` may be `logits`.
    """
    highest, summed = work[top : top + columns], work[total : total + columns]
    highest[:] = LOWEST
    summed[:] = Float(0.0)
    for z in range(atoms):
        _raise_to(highest, _line(work, logits, z, stride, columns))
    for z in range(atoms):
        powers = _line(work, out, z, stride, columns)
        _exp_below(powers, _line(work, logits, z, stride, columns), highest)
        _add(summed, powers, Float(1.0))


@unit(whole, real_vector, vector, index, index, index, index, index)
def expected_values(
    int_plan: Array, constants: Array, work: Array, logits: int, stride: int, columns: int, q: int, scratch: int
) -> None:
    """q [A, columns] = sum_i p_i z_i from logits [A * Z, columns]; scratch [Z + 2, columns]."""
    atoms, v_min = int_plan[plan.ATOMS], constants[plan.V_MIN]
    delta = (constants[plan.V_MAX] - v_min) / (atoms - 1)
    top, total = scratch + atoms * stride, scratch + (atoms + 1) * stride
    for a in range(int_plan[plan.ACTIONS]):
        softmax(work, logits + a * atoms * stride, stride, atoms, columns, scratch, top, total)
        mean = _line(work, q, a, stride, columns)
        mean[:] = Float(0.0)
        for z in range(atoms):
            _add(mean, _line(work, scratch, z, stride, columns), Float(v_min + z * delta))
        _divide(mean, work[total : total + columns])


@inline_kernel
def best_action(work: Array, q: int, stride: int, actions: int, masks: Array, row: int) -> int:
    """Of the values at q, q + stride, ... the largest allowed; `masks` flat [rows * A] or empty.

    NaN counts as largest, so that it reaches the loss.
    """
    best, best_value = 0, LOWEST
    for a in range(actions):
        value = work[q + a * stride]
        if masks.size > 0 and not masks[row * actions + a]:
            continue
        if value > best_value or value != value:
            best, best_value = a, value
    return best
