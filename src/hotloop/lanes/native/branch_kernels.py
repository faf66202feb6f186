"""The optional first stage: branches over the parts of an observation, and the attention over them.

Laid out as in `network_kernels`: feature-major [features, columns] on the way forward, batch-major [B, features] on the
way back. A table's rows are copies of one layer, each with its own block of features. `branches` is the branches'
section of the plan.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.kernels import inline_kernel
from hotloop.core.types import Array
from hotloop.lanes.native import plan_kernels as plan
from hotloop.lanes.native.activation_kernels import RELU, TANH, activate, exp, multiply_by_slope
from hotloop.lanes.native.matrix_kernels import Matrix, multiply, padded_columns, transpose
from hotloop.lanes.native.network_kernels import NO_FLOOR, ZERO_FLOOR
from hotloop.lanes.native.unit_kernels import index, unit, vector, whole

Float: Any = np.float32


@unit(whole, vector, vector, index, index)
def forward_branches(int_plan: Array, parameters: Array, work: Array, columns: int, keep: int) -> None:
    """The torso's input: each branch's units, then their weighted sum; from the observations [F, columns]."""
    branches = int_plan[int_plan[plan.BRANCHES] :]
    stride, code, rows = int_plan[plan.COLUMN_STRIDE], int_plan[plan.ACTIVATION], int_plan[plan.ROWS]
    width, padded = branches[plan.WIDTH], padded_columns(columns)
    floor = ZERO_FLOOR if code == RELU else NO_FLOOR
    source, step = int_plan[plan.INPUT], 0
    for row in range(plan.BRANCH_TABLE, branches.size, plan.BRANCH_ROW):
        fan_in, fan_out = branches[row + plan.FAN_IN], branches[row + plan.FAN_OUT]
        copies = branches[row + plan.COPIES]
        if branches[row + plan.FIRST_FEATURE] >= 0:
            source, step = int_plan[plan.INPUT] + branches[row + plan.FIRST_FEATURE] * stride, 0
        target = branches[plan.BRANCH_EVEN] if step % 2 == 0 else branches[plan.BRANCH_ODD]
        if branches[row + plan.IS_LAST]:
            target = int_plan[plan.TORSO_INPUT] + branches[row + plan.OWN_BRANCH] * width * stride
        weight, bias = (parameters, branches[row + plan.WEIGHT], fan_in, 1), (parameters, branches[row + plan.BIAS])
        for copy in range(copies):
            block = (work, source + copy * fan_in * stride, stride)
            made = (work, target + copy * fan_out * stride, stride)
            multiply(made, weight, block, bias, (fan_out, padded, fan_in), floor, 0)
        if code != RELU:
            activate(code, work[target : target + copies * fan_out * stride])
        if keep and not branches[row + plan.IS_LAST]:
            kept = (work, branches[row + plan.KEPT], branches[row + plan.STRIDE])
            transpose(kept, (work, target, stride), copies * fan_out, rows)
        source, step = target, step + 1
    _attend(int_plan, branches, parameters, work, columns)
    if keep:
        size, units = (branches[plan.NUM_BRANCHES] + 1) * width, branches[plan.ATTENTION]
        transpose((work, branches[plan.KEPT_INPUT], size), (work, int_plan[plan.TORSO_INPUT], stride), size, rows)
        for branch in range(branches[plan.NUM_BRANCHES]):
            kept = (work, branches[plan.KEPT_INNER] + branch * rows * units, units)
            transpose(kept, (work, branches[plan.INNER] + branch * units * stride, stride), units, rows)


@inline_kernel
def _attend(int_plan: Array, branches: Array, parameters: Array, work: Array, columns: int) -> None:
    """Scores V tanh(W x), their softmax as shares, and the sum of the branches by them."""
    stride, width, units = int_plan[plan.COLUMN_STRIDE], branches[plan.WIDTH], branches[plan.ATTENTION]
    count, shares, first = branches[plan.NUM_BRANCHES], branches[plan.SHARES], int_plan[plan.TORSO_INPUT]
    weight, bias = (parameters, branches[plan.INNER_WEIGHT], width, 1), (parameters, branches[plan.INNER_BIAS])
    score, score_bias = (parameters, branches[plan.SCORE_WEIGHT], units, 1), (parameters, branches[plan.SCORE_BIAS])
    padded = padded_columns(columns)
    for branch in range(count):
        at = branches[plan.INNER] + branch * units * stride
        said, inner = (work, first + branch * width * stride, stride), (work, at, stride)
        multiply(inner, weight, said, bias, (units, padded, width), NO_FLOOR, 0)
        activate(TANH, work[at : at + units * stride])
        multiply((work, shares + branch * stride, stride), score, inner, score_bias, (1, padded, units), NO_FLOOR, 0)
    _softmax(work, shares, stride, count, columns)
    for feature in range(width):
        mixed = first + (count * width + feature) * stride
        line = work[mixed : mixed + columns]
        for branch in range(count):
            at, share_at = first + (branch * width + feature) * stride, shares + branch * stride
            _mix(line, work[share_at : share_at + columns], work[at : at + columns], branch > 0)


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
def _mix(out: Array, share: Array, values: Array, add: bool) -> None:
    if add:
        for i in range(out.size):
            out[i] += share[i] * values[i]
    else:
        for i in range(out.size):
            out[i] = share[i] * values[i]


@unit(whole, vector, vector, vector, vector, index)
def backward_branches(
    int_plan: Array, parameters: Array, work: Array, gradient: Array, obs: Array, obs_at: int
) -> None:
    """Gradients of branches and attention, once the torso's are there; `obs` flat, [B, F] at `obs_at`."""
    branches = int_plan[int_plan[plan.BRANCHES] :]
    rows, size = int_plan[plan.ROWS], (branches[plan.NUM_BRANCHES] + 1) * branches[plan.WIDTH]
    above, kept = branches[plan.INPUT_GRADIENT], branches[plan.KEPT_INPUT]
    # by the torso's input, from that by its first layer's output, which `backward` left in one of two places
    fan_out, stride = int_plan[plan.TABLE + plan.FAN_OUT], int_plan[plan.TABLE + plan.STRIDE]
    at = int_plan[plan.GRADIENT_EVEN] if int_plan[plan.TORSO] % 2 == 1 else int_plan[plan.GRADIENT_ODD]
    weight, zeros = (parameters, int_plan[plan.TABLE + plan.WEIGHT], size), (work, int_plan[plan.ZEROS])
    multiply((work, above, size), (work, at, stride, 1), weight, zeros, (rows, size, fan_out), NO_FLOOR, 0)
    _attention_gradient(int_plan, branches, parameters, work, gradient)
    multiply_by_slope(int_plan[plan.ACTIVATION], work[above : above + rows * size], work[kept : kept + rows * size])
    inputs = (obs, obs_at, int_plan[plan.OBS_SIZE])
    for layer in range((branches.size - plan.BRANCH_TABLE) // plan.BRANCH_ROW - 1, -1, -1):
        _layer_gradient(int_plan, branches, layer, parameters, work, gradient, inputs)


@inline_kernel
def _attention_gradient(int_plan: Array, branches: Array, parameters: Array, work: Array, gradient: Array) -> None:
    """Adds to each branch's gradient what comes through the weighted sum: directly, and through its share."""
    rows, width, units = int_plan[plan.ROWS], branches[plan.WIDTH], branches[plan.ATTENTION]
    size = (branches[plan.NUM_BRANCHES] + 1) * width
    weight_at, inner_at = branches[plan.SCORE_WEIGHT], branches[plan.INNER_GRADIENT]
    _score_gradients(int_plan, branches, work)
    score_weight, score_gradient = parameters[weight_at : weight_at + units], gradient[weight_at : weight_at + units]
    for i in range(units):
        score_gradient[i] = Float(0.0)
    zeros, ones = (work, int_plan[plan.ZEROS]), (work, int_plan[plan.ONES], 0, 1)
    inner_weight, inner_bias = branches[plan.INNER_WEIGHT], (gradient, branches[plan.INNER_BIAS], units)
    inner, across = (work, inner_at, units), (work, inner_at, 1, units)
    for branch in range(branches[plan.NUM_BRANCHES]):
        for b in range(rows):
            slope, at = work[branches[plan.SCORE_GRADIENT] + branch * rows + b], inner_at + b * units
            kept = branches[plan.KEPT_INNER] + (branch * rows + b) * units
            _inner_row(work[at : at + units], work[kept : kept + units], score_weight, score_gradient, slope)
        said = (work, branches[plan.KEPT_INPUT] + branch * width, size)
        multiply((gradient, inner_weight, width), across, said, zeros, (units, width, rows), NO_FLOOR, branch)
        multiply(inner_bias, ones, inner, zeros, (1, units, rows), NO_FLOOR, branch)
        lower = (work, branches[plan.INPUT_GRADIENT] + branch * width, size)
        weight = (parameters, inner_weight, width)
        multiply(lower, (work, inner_at, units, 1), weight, zeros, (rows, width, units), NO_FLOOR, 1)
    gradient[branches[plan.SCORE_BIAS]] = Float(0.0)  # a softmax does not feel a shift


@inline_kernel
def _score_gradients(int_plan: Array, branches: Array, work: Array) -> None:
    """`SCORE_GRADIENT` [branches, B]; and each branch's own part of the sum's gradient."""
    rows, width, stride = int_plan[plan.ROWS], branches[plan.WIDTH], int_plan[plan.COLUMN_STRIDE]
    count, shares, scores = branches[plan.NUM_BRANCHES], branches[plan.SHARES], branches[plan.SCORE_GRADIENT]
    size = (count + 1) * width
    for b in range(rows):
        line, kept = branches[plan.INPUT_GRADIENT] + b * size, branches[plan.KEPT_INPUT] + b * size
        mixed = work[line + count * width : line + size]
        mean = Float(0.0)
        for branch in range(count):
            share, at = work[shares + branch * stride + b], branch * width
            value = _dot(mixed, work[kept + at : kept + at + width])
            work[scores + branch * rows + b] = value
            mean += share * value
            _add_scaled(work[line + at : line + at + width], mixed, share)
        for branch in range(count):
            share = work[shares + branch * stride + b]
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
    int_plan: Array, branches: Array, layer: int, parameters: Array, work: Array, gradient: Array, inputs: Matrix
) -> None:
    """Of weight and bias, summed over the copies; and by the activations below, unless they are the observations."""
    row = plan.BRANCH_TABLE + plan.BRANCH_ROW * layer
    fan_in, fan_out = branches[row + plan.FAN_IN], branches[row + plan.FAN_OUT]
    copies = branches[row + plan.COPIES]
    rows, zeros, ones = int_plan[plan.ROWS], (work, int_plan[plan.ZEROS]), (work, int_plan[plan.ONES], 0, 1)
    even, odd = branches[plan.BRANCH_GRADIENT_EVEN], branches[plan.BRANCH_GRADIENT_ODD]
    upper_at, upper_stride = even if layer % 2 == 0 else odd, branches[row + plan.STRIDE]
    if branches[row + plan.IS_LAST]:
        upper_stride = (branches[plan.NUM_BRANCHES] + 1) * branches[plan.WIDTH]
        upper_at = branches[plan.INPUT_GRADIENT] + branches[row + plan.OWN_BRANCH] * branches[plan.WIDTH]
    first, below = branches[row + plan.FIRST_FEATURE], row - plan.BRANCH_ROW
    data, at, stride = inputs
    source = (data, at + first, stride)
    if first < 0:
        source = (work, branches[below + plan.KEPT], branches[below + plan.STRIDE])
    data, at, stride = source
    weight, bias = (gradient, branches[row + plan.WEIGHT], fan_in), (gradient, branches[row + plan.BIAS], fan_out)
    for copy in range(copies):
        upper_copy, block = upper_at + copy * fan_out, (data, at + copy * fan_in, stride)
        multiply(weight, (work, upper_copy, 1, upper_stride), block, zeros, (fan_out, fan_in, rows), NO_FLOOR, copy)
        multiply(bias, ones, (work, upper_copy, upper_stride), zeros, (1, fan_out, rows), NO_FLOOR, copy)
    if first < 0:
        lower_at, length = odd if layer % 2 == 0 else even, rows * stride
        upper, weight = (work, upper_at, upper_stride, 1), (parameters, branches[row + plan.WEIGHT], fan_in)
        multiply((work, lower_at, stride), upper, weight, zeros, (rows, fan_in, fan_out), NO_FLOOR, 0)
        multiply_by_slope(int_plan[plan.ACTIVATION], work[lower_at : lower_at + length], work[at : at + length])
