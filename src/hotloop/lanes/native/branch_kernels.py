"""Forward and backward through branches and the attention over them; the hidden layers above are `network_kernels`'.

Laid out as there: feature-major [features, columns] on the way forward, batch-major [B, features] on the way back. A
table's rows are copies of one layer, each with its own block of features.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.kernels import inline_kernel
from hotloop.core.types import Array
from hotloop.lanes.native import branch_plan_kernels as tree
from hotloop.lanes.native import plan_kernels as plan
from hotloop.lanes.native.activation_kernels import RELU, TANH, activate, exp, multiply_by_slope
from hotloop.lanes.native.matrix_kernels import Matrix, multiply, padded_columns, transpose
from hotloop.lanes.native.network_kernels import NO_FLOOR, ZERO_FLOOR
from hotloop.lanes.native.unit_kernels import index, unit, vector, whole

Float: Any = np.float32


@inline_kernel
def _num_layers(branches: Array) -> int:
    return (branches.size - tree.TABLE) // tree.ROW


@unit(whole, whole, vector, vector, index, index)
def forward_branches(numbers: Array, branches: Array, parameters: Array, work: Array, columns: int, keep: int) -> None:
    """The trunk's input: each branch's units, then their weighted sum; from the observations [F, columns]."""
    stride, code, rows = numbers[plan.COLUMN_STRIDE], numbers[plan.ACTIVATION], numbers[plan.ROWS]
    padded = padded_columns(columns)
    source, step = branches[tree.INPUTS], 0
    for layer in range(_num_layers(branches)):
        row = tree.TABLE + tree.ROW * layer
        if branches[row + tree.FIRST_INPUT] >= 0:
            source, step = branches[tree.INPUTS] + branches[row + tree.FIRST_INPUT] * stride, 0
        target = branches[tree.VALUES_EVEN] if step % 2 == 0 else branches[tree.VALUES_ODD]
        if branches[row + tree.IS_LAST]:
            target = numbers[plan.INPUT] + branches[row + tree.BRANCH] * branches[tree.WIDTH] * stride
        fan_in, fan_out, copies = branches[row], branches[row + tree.FAN_OUT], branches[row + tree.COPIES]
        weight, bias = (parameters, branches[row + tree.WEIGHT], fan_in, 1), (parameters, branches[row + tree.BIAS])
        floor = ZERO_FLOOR if code == RELU else NO_FLOOR
        for copy in range(copies):
            block = (work, source + copy * fan_in * stride, stride)
            made = (work, target + copy * fan_out * stride, stride)
            multiply(made, weight, block, bias, (fan_out, padded, fan_in), floor, 0)
        length = copies * fan_out * stride
        if code != RELU:
            activate(code, work[target : target + length], work[target : target + length])
        if keep and not branches[row + tree.IS_LAST]:
            kept = (work, branches[row + tree.KEPT], branches[row + tree.STRIDE])
            transpose(kept, (work, target, stride), copies * fan_out, rows)
        source, step = target, step + 1
    _attend(numbers, branches, parameters, work, columns, padded)
    if keep:
        size = (branches[tree.BRANCHES] + 1) * branches[tree.WIDTH]
        transpose((work, branches[tree.KEPT_TRUNK], size), (work, numbers[plan.INPUT], stride), size, rows)
        _keep_inner(numbers, branches, work)


@inline_kernel
def _attend(numbers: Array, branches: Array, parameters: Array, work: Array, columns: int, padded: int) -> None:
    """Scores V tanh(W x), their softmax as shares, and the sum of the branches by them."""
    stride, width, units = numbers[plan.COLUMN_STRIDE], branches[tree.WIDTH], branches[tree.ATTENTION]
    count, shares = branches[tree.BRANCHES], branches[tree.SHARES]
    for branch in range(count):
        said = (work, numbers[plan.INPUT] + branch * width * stride, stride)
        at = branches[tree.INNER] + branch * units * stride
        weight, bias = (parameters, branches[tree.INNER_WEIGHT], width, 1), (parameters, branches[tree.INNER_BIAS])
        multiply((work, at, stride), weight, said, bias, (units, padded, width), NO_FLOOR, 0)
        activate(TANH, work[at : at + units * stride], work[at : at + units * stride])
        score = (parameters, branches[tree.SCORE_WEIGHT], units, 1)
        bias = (parameters, branches[tree.SCORE_BIAS])
        multiply(
            (work, shares + branch * stride, stride), score, (work, at, stride), bias, (1, padded, units), NO_FLOOR, 0
        )
    _softmax(work, shares, stride, count, columns)
    mixed = numbers[plan.INPUT] + count * width * stride
    for unit_index in range(width):
        line = work[mixed + unit_index * stride : mixed + unit_index * stride + columns]
        for branch in range(count):
            at = numbers[plan.INPUT] + (branch * width + unit_index) * stride
            share = work[shares + branch * stride : shares + branch * stride + columns]
            if branch == 0:
                _product(line, share, work[at : at + columns])
            else:
                _add_product(line, share, work[at : at + columns])


@inline_kernel
def _softmax(work: Array, scores: int, stride: int, count: int, columns: int) -> None:
    for column in range(columns):
        top = work[scores + column]
        for branch in range(1, count):
            top = max(top, work[scores + branch * stride + column])
        total = Float(0.0)
        for branch in range(count):
            power = exp(work[scores + branch * stride + column] - top)
            work[scores + branch * stride + column] = power
            total += power
        for branch in range(count):
            work[scores + branch * stride + column] /= total


@inline_kernel
def _product(out: Array, one: Array, other: Array) -> None:
    for i in range(out.size):
        out[i] = one[i] * other[i]


@inline_kernel
def _add_product(out: Array, one: Array, other: Array) -> None:
    for i in range(out.size):
        out[i] += one[i] * other[i]


@inline_kernel
def _keep_inner(numbers: Array, branches: Array, work: Array) -> None:
    rows, units, stride = numbers[plan.ROWS], branches[tree.ATTENTION], numbers[plan.COLUMN_STRIDE]
    for branch in range(branches[tree.BRANCHES]):
        kept = (work, branches[tree.KEPT_INNER] + branch * rows * units, units)
        transpose(kept, (work, branches[tree.INNER] + branch * units * stride, stride), units, rows)


@unit(whole, whole, vector, vector, vector, vector, index)
def backward_branches(
    numbers: Array, branches: Array, parameters: Array, work: Array, gradient: Array, obs: Array, obs_at: int
) -> None:
    """Gradients of branches and attention, once the trunk's are there; `obs` flat, [B, F] at `obs_at`."""
    _trunk_input_gradient(numbers, branches, parameters, work)
    _attention_gradient(numbers, branches, parameters, work, gradient)
    size = numbers[plan.ROWS] * (branches[tree.BRANCHES] + 1) * branches[tree.WIDTH]
    above, kept = branches[tree.GRADIENT], branches[tree.KEPT_TRUNK]
    multiply_by_slope(numbers[plan.ACTIVATION], work[above : above + size], work[kept : kept + size])
    for layer in range(_num_layers(branches) - 1, -1, -1):
        _layer_gradient(numbers, branches, layer, parameters, work, gradient, (obs, obs_at, branches[tree.OBS_SIZE]))


@inline_kernel
def _trunk_input_gradient(numbers: Array, branches: Array, parameters: Array, work: Array) -> None:
    """By the trunk's input, from that by its first layer's output, which its `backward` left in one of two places."""
    rows, size = numbers[plan.ROWS], (branches[tree.BRANCHES] + 1) * branches[tree.WIDTH]
    fan_out, stride = numbers[plan.TABLE + plan.FAN_OUT], numbers[plan.TABLE + plan.STRIDE]
    at = numbers[plan.GRADIENT_EVEN] if numbers[plan.TORSO] % 2 == 1 else numbers[plan.GRADIENT_ODD]
    weight = (parameters, branches[tree.TRUNK] + numbers[plan.TABLE + plan.WEIGHT], size)
    lower, zeros = (work, branches[tree.GRADIENT], size), (work, branches[tree.ZEROS])
    multiply(lower, (work, at, stride, 1), weight, zeros, (rows, size, fan_out), NO_FLOOR, 0)


@inline_kernel
def _attention_gradient(numbers: Array, branches: Array, parameters: Array, work: Array, gradient: Array) -> None:
    """Adds to each branch's gradient what comes through the weighted sum: directly, and through its share."""
    rows, width, units = numbers[plan.ROWS], branches[tree.WIDTH], branches[tree.ATTENTION]
    count, size = branches[tree.BRANCHES], (branches[tree.BRANCHES] + 1) * branches[tree.WIDTH]
    _score_gradients(numbers, branches, work)
    weight_at, zeros = branches[tree.SCORE_WEIGHT], (work, branches[tree.ZEROS])
    score_weight, score_gradient = parameters[weight_at : weight_at + units], gradient[weight_at : weight_at + units]
    for i in range(units):
        score_gradient[i] = Float(0.0)
    inner = (work, branches[tree.GRADIENT_INNER], units)
    for branch in range(count):
        for b in range(rows):
            slope = work[branches[tree.SCORES] + branch * rows + b]
            at, kept = (
                branches[tree.GRADIENT_INNER] + b * units,
                branches[tree.KEPT_INNER] + (branch * rows + b) * units,
            )
            _inner_row(work[at : at + units], work[kept : kept + units], score_weight, score_gradient, slope)
        said = (work, branches[tree.KEPT_TRUNK] + branch * width, size)
        left, ones = (work, branches[tree.GRADIENT_INNER], 1, units), (work, numbers[plan.ONES], 0, 1)
        multiply(
            (gradient, branches[tree.INNER_WEIGHT], width), left, said, zeros, (units, width, rows), NO_FLOOR, branch
        )
        multiply((gradient, branches[tree.INNER_BIAS], units), ones, inner, zeros, (1, units, rows), NO_FLOOR, branch)
        lower = (work, branches[tree.GRADIENT] + branch * width, size)
        weight = (parameters, branches[tree.INNER_WEIGHT], width)
        left = (work, branches[tree.GRADIENT_INNER], units, 1)
        multiply(lower, left, weight, zeros, (rows, width, units), NO_FLOOR, 1)
    gradient[branches[tree.SCORE_BIAS]] = Float(0.0)  # a softmax does not feel a shift


@inline_kernel
def _score_gradients(numbers: Array, branches: Array, work: Array) -> None:
    """`SCORES` [branches, B] by the scores; and each branch's own part of the sum's gradient."""
    rows, width, stride = numbers[plan.ROWS], branches[tree.WIDTH], numbers[plan.COLUMN_STRIDE]
    count, size, scores = (
        branches[tree.BRANCHES],
        (branches[tree.BRANCHES] + 1) * branches[tree.WIDTH],
        branches[tree.SCORES],
    )
    for b in range(rows):
        line, kept = branches[tree.GRADIENT] + b * size, branches[tree.KEPT_TRUNK] + b * size
        mixed = work[line + count * width : line + size]
        mean = Float(0.0)
        for branch in range(count):
            share = work[branches[tree.SHARES] + branch * stride + b]
            at = kept + branch * width
            value = _dot(mixed, work[at : at + width])
            work[scores + branch * rows + b] = value
            mean += share * value
            at = line + branch * width
            _add_scaled(work[at : at + width], mixed, share)
        for branch in range(count):
            share = work[branches[tree.SHARES] + branch * stride + b]
            work[scores + branch * rows + b] = share * (work[scores + branch * rows + b] - mean)


@inline_kernel
def _dot(one: Array, other: Array) -> float:
    total = Float(0.0)
    for i in range(one.size):
        total += one[i] * other[i]
    return total


@inline_kernel
def _add_scaled(out: Array, source: Array, factor: float) -> None:
    for i in range(out.size):
        out[i] += factor * source[i]


@inline_kernel
def _inner_row(out: Array, kept: Array, score_weight: Array, score_gradient: Array, slope: float) -> None:
    """One row's gradient by what goes into the tanh, and its share of the score layer's own."""
    for i in range(out.size):
        score_gradient[i] += slope * kept[i]
        out[i] = slope * score_weight[i] * (Float(1.0) - kept[i] * kept[i])


@inline_kernel
def _layer_gradient(
    numbers: Array, branches: Array, layer: int, parameters: Array, work: Array, gradient: Array, inputs: Matrix
) -> None:
    row = tree.TABLE + tree.ROW * layer
    fan_in, fan_out, copies = branches[row], branches[row + tree.FAN_OUT], branches[row + tree.COPIES]
    rows, zeros, ones = numbers[plan.ROWS], (work, branches[tree.ZEROS]), (work, numbers[plan.ONES], 0, 1)
    even, odd = branches[tree.GRADIENT_EVEN], branches[tree.GRADIENT_ODD]
    upper_at, upper_stride = even if layer % 2 == 0 else odd, branches[row + tree.STRIDE]
    if branches[row + tree.IS_LAST]:
        upper_stride = (branches[tree.BRANCHES] + 1) * branches[tree.WIDTH]
        upper_at = branches[tree.GRADIENT] + branches[row + tree.BRANCH] * branches[tree.WIDTH]
    first, below = branches[row + tree.FIRST_INPUT], row - tree.ROW
    data, at, stride = inputs
    source = (data, at + first, stride)
    if first < 0:
        source = (work, branches[below + tree.KEPT], branches[below + tree.STRIDE])
    data, at, stride = source
    for copy in range(copies):
        upper, left = (
            (work, upper_at + copy * fan_out, upper_stride),
            (work, upper_at + copy * fan_out, 1, upper_stride),
        )
        weight, block = (gradient, branches[row + tree.WEIGHT], fan_in), (data, at + copy * fan_in, stride)
        multiply(weight, left, block, zeros, (fan_out, fan_in, rows), NO_FLOOR, copy)
        multiply((gradient, branches[row + tree.BIAS], fan_out), ones, upper, zeros, (1, fan_out, rows), NO_FLOOR, copy)
    if first < 0:
        lower_at, length = odd if layer % 2 == 0 else even, rows * stride
        weight = (parameters, branches[row + tree.WEIGHT], fan_in)
        left = (work, upper_at, upper_stride, 1)
        multiply((work, lower_at, stride), left, weight, zeros, (rows, fan_in, fan_out), NO_FLOOR, 0)
        multiply_by_slope(numbers[plan.ACTIVATION], work[lower_at : lower_at + length], work[at : at + length])
