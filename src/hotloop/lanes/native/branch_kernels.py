"""Forward and backward through branches and the attention over them; the hidden layers above are `network_kernels`'.

Laid out as there: feature-major [features, columns] on the way forward, batch-major [B, features] on the way back. A
table's rows are copies of one layer, each with its own block of features.

k sequential DQN updates of a network of branches in one call, and its values and best actions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hotloop.core.kernels import inline_kernel, kernel
from hotloop.core.types import Array
from hotloop.lanes.native import plan_kernels as tree
from hotloop.lanes.native.activation_kernels import RELU, TANH, activate, exp, multiply_by_slope
from hotloop.lanes.native.loss_kernels import loss_and_head_gradient
from hotloop.lanes.native.matrix_kernels import Matrix, multiply, padded_columns, sum_of_squares, transpose
from hotloop.lanes.native.network_kernels import NO_FLOOR, ZERO_FLOOR, backward, best_action, forward
from hotloop.lanes.native.unit_kernels import flat, index, unit, vector, whole
from hotloop.lanes.native.update_kernels import finish_values, move_target, optimise
from hotloop.lanes.native.vector_kernels import FLUSH, float_mode, set_float_mode

Float: Any = np.float32


@inline_kernel
def _num_layers(branches: Array) -> int:
    return (branches.size - tree.BRANCH_TABLE) // tree.BRANCH_ROW


@unit(whole, whole, vector, vector, index, index)
def forward_branches(numbers: Array, branches: Array, parameters: Array, work: Array, columns: int, keep: int) -> None:
    """The trunk's input: each branch's units, then their weighted sum; from the observations [F, columns]."""
    stride, code, rows = numbers[tree.COLUMN_STRIDE], numbers[tree.ACTIVATION], numbers[tree.ROWS]
    padded = padded_columns(columns)
    source, step = branches[tree.BRANCH_INPUTS], 0
    for layer in range(_num_layers(branches)):
        row = tree.BRANCH_TABLE + tree.BRANCH_ROW * layer
        if branches[row + tree.BRANCH_FIRST_INPUT] >= 0:
            source, step = branches[tree.BRANCH_INPUTS] + branches[row + tree.BRANCH_FIRST_INPUT] * stride, 0
        target = branches[tree.BRANCH_VALUES_EVEN] if step % 2 == 0 else branches[tree.BRANCH_VALUES_ODD]
        if branches[row + tree.BRANCH_IS_LAST]:
            target = numbers[tree.INPUT] + branches[row + tree.BRANCH_BRANCH] * branches[tree.BRANCH_WIDTH] * stride
        fan_in, fan_out, copies = branches[row], branches[row + tree.BRANCH_FAN_OUT], branches[row + tree.BRANCH_COPIES]
        weight, bias = (
            (parameters, branches[row + tree.BRANCH_WEIGHT], fan_in, 1),
            (parameters, branches[row + tree.BRANCH_BIAS]),
        )
        floor = ZERO_FLOOR if code == RELU else NO_FLOOR
        for copy in range(copies):
            block = (work, source + copy * fan_in * stride, stride)
            made = (work, target + copy * fan_out * stride, stride)
            multiply(made, weight, block, bias, (fan_out, padded, fan_in), floor, 0)
        length = copies * fan_out * stride
        if code != RELU:
            activate(code, work[target : target + length], work[target : target + length])
        if keep and not branches[row + tree.BRANCH_IS_LAST]:
            kept = (work, branches[row + tree.BRANCH_KEPT], branches[row + tree.BRANCH_STRIDE])
            transpose(kept, (work, target, stride), copies * fan_out, rows)
        source, step = target, step + 1
    _attend(numbers, branches, parameters, work, columns, padded)
    if keep:
        size = (branches[tree.BRANCH_BRANCHES] + 1) * branches[tree.BRANCH_WIDTH]
        transpose((work, branches[tree.BRANCH_KEPT_TRUNK], size), (work, numbers[tree.INPUT], stride), size, rows)
        _keep_inner(numbers, branches, work)


@inline_kernel
def _attend(numbers: Array, branches: Array, parameters: Array, work: Array, columns: int, padded: int) -> None:
    """Scores V tanh(W x), their softmax as shares, and the sum of the branches by them."""
    stride, width, units = numbers[tree.COLUMN_STRIDE], branches[tree.BRANCH_WIDTH], branches[tree.BRANCH_ATTENTION]
    count, shares = branches[tree.BRANCH_BRANCHES], branches[tree.BRANCH_SHARES]
    for branch in range(count):
        said = (work, numbers[tree.INPUT] + branch * width * stride, stride)
        at = branches[tree.BRANCH_INNER] + branch * units * stride
        weight, bias = (
            (parameters, branches[tree.BRANCH_INNER_WEIGHT], width, 1),
            (parameters, branches[tree.BRANCH_INNER_BIAS]),
        )
        multiply((work, at, stride), weight, said, bias, (units, padded, width), NO_FLOOR, 0)
        activate(TANH, work[at : at + units * stride], work[at : at + units * stride])
        score = (parameters, branches[tree.BRANCH_SCORE_WEIGHT], units, 1)
        bias = (parameters, branches[tree.BRANCH_SCORE_BIAS])
        multiply(
            (work, shares + branch * stride, stride), score, (work, at, stride), bias, (1, padded, units), NO_FLOOR, 0
        )
    _softmax(work, shares, stride, count, columns)
    mixed = numbers[tree.INPUT] + count * width * stride
    for unit_index in range(width):
        line = work[mixed + unit_index * stride : mixed + unit_index * stride + columns]
        for branch in range(count):
            at = numbers[tree.INPUT] + (branch * width + unit_index) * stride
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
    rows, units, stride = numbers[tree.ROWS], branches[tree.BRANCH_ATTENTION], numbers[tree.COLUMN_STRIDE]
    for branch in range(branches[tree.BRANCH_BRANCHES]):
        kept = (work, branches[tree.BRANCH_KEPT_INNER] + branch * rows * units, units)
        transpose(kept, (work, branches[tree.BRANCH_INNER] + branch * units * stride, stride), units, rows)


@unit(whole, whole, vector, vector, vector, vector, index)
def backward_branches(
    numbers: Array, branches: Array, parameters: Array, work: Array, gradient: Array, obs: Array, obs_at: int
) -> None:
    """Gradients of branches and attention, once the trunk's are there; `obs` flat, [B, F] at `obs_at`."""
    _trunk_input_gradient(numbers, branches, parameters, work)
    _attention_gradient(numbers, branches, parameters, work, gradient)
    size = numbers[tree.ROWS] * (branches[tree.BRANCH_BRANCHES] + 1) * branches[tree.BRANCH_WIDTH]
    above, kept = branches[tree.BRANCH_GRADIENT], branches[tree.BRANCH_KEPT_TRUNK]
    multiply_by_slope(numbers[tree.ACTIVATION], work[above : above + size], work[kept : kept + size])
    for layer in range(_num_layers(branches) - 1, -1, -1):
        _layer_gradient(
            numbers, branches, layer, parameters, work, gradient, (obs, obs_at, branches[tree.BRANCH_OBS_SIZE])
        )


@inline_kernel
def _trunk_input_gradient(numbers: Array, branches: Array, parameters: Array, work: Array) -> None:
    """By the trunk's input, from that by its first layer's output, which its `backward` left in one of two places."""
    rows, size = numbers[tree.ROWS], (branches[tree.BRANCH_BRANCHES] + 1) * branches[tree.BRANCH_WIDTH]
    fan_out, stride = numbers[tree.TABLE + tree.FAN_OUT], numbers[tree.TABLE + tree.STRIDE]
    at = numbers[tree.GRADIENT_EVEN] if numbers[tree.TORSO] % 2 == 1 else numbers[tree.GRADIENT_ODD]
    weight = (parameters, branches[tree.BRANCH_TRUNK] + numbers[tree.TABLE + tree.WEIGHT], size)
    lower, zeros = (work, branches[tree.BRANCH_GRADIENT], size), (work, branches[tree.BRANCH_ZEROS])
    multiply(lower, (work, at, stride, 1), weight, zeros, (rows, size, fan_out), NO_FLOOR, 0)


@inline_kernel
def _attention_gradient(numbers: Array, branches: Array, parameters: Array, work: Array, gradient: Array) -> None:
    """Adds to each branch's gradient what comes through the weighted sum: directly, and through its share."""
    rows, width, units = numbers[tree.ROWS], branches[tree.BRANCH_WIDTH], branches[tree.BRANCH_ATTENTION]
    count, size = branches[tree.BRANCH_BRANCHES], (branches[tree.BRANCH_BRANCHES] + 1) * branches[tree.BRANCH_WIDTH]
    _score_gradients(numbers, branches, work)
    weight_at, zeros = branches[tree.BRANCH_SCORE_WEIGHT], (work, branches[tree.BRANCH_ZEROS])
    score_weight, score_gradient = parameters[weight_at : weight_at + units], gradient[weight_at : weight_at + units]
    for i in range(units):
        score_gradient[i] = Float(0.0)
    inner = (work, branches[tree.BRANCH_GRADIENT_INNER], units)
    for branch in range(count):
        for b in range(rows):
            slope = work[branches[tree.BRANCH_SCORES] + branch * rows + b]
            at, kept = (
                branches[tree.BRANCH_GRADIENT_INNER] + b * units,
                branches[tree.BRANCH_KEPT_INNER] + (branch * rows + b) * units,
            )
            _inner_row(work[at : at + units], work[kept : kept + units], score_weight, score_gradient, slope)
        said = (work, branches[tree.BRANCH_KEPT_TRUNK] + branch * width, size)
        left, ones = (work, branches[tree.BRANCH_GRADIENT_INNER], 1, units), (work, numbers[tree.ONES], 0, 1)
        multiply(
            (gradient, branches[tree.BRANCH_INNER_WEIGHT], width),
            left,
            said,
            zeros,
            (units, width, rows),
            NO_FLOOR,
            branch,
        )
        multiply(
            (gradient, branches[tree.BRANCH_INNER_BIAS], units), ones, inner, zeros, (1, units, rows), NO_FLOOR, branch
        )
        lower = (work, branches[tree.BRANCH_GRADIENT] + branch * width, size)
        weight = (parameters, branches[tree.BRANCH_INNER_WEIGHT], width)
        left = (work, branches[tree.BRANCH_GRADIENT_INNER], units, 1)
        multiply(lower, left, weight, zeros, (rows, width, units), NO_FLOOR, 1)
    gradient[branches[tree.BRANCH_SCORE_BIAS]] = Float(0.0)  # a softmax does not feel a shift


@inline_kernel
def _score_gradients(numbers: Array, branches: Array, work: Array) -> None:
    """`SCORES` [branches, B] by the scores; and each branch's own part of the sum's gradient."""
    rows, width, stride = numbers[tree.ROWS], branches[tree.BRANCH_WIDTH], numbers[tree.COLUMN_STRIDE]
    count, size, scores = (
        branches[tree.BRANCH_BRANCHES],
        (branches[tree.BRANCH_BRANCHES] + 1) * branches[tree.BRANCH_WIDTH],
        branches[tree.BRANCH_SCORES],
    )
    for b in range(rows):
        line, kept = branches[tree.BRANCH_GRADIENT] + b * size, branches[tree.BRANCH_KEPT_TRUNK] + b * size
        mixed = work[line + count * width : line + size]
        mean = Float(0.0)
        for branch in range(count):
            share = work[branches[tree.BRANCH_SHARES] + branch * stride + b]
            at = kept + branch * width
            value = _dot(mixed, work[at : at + width])
            work[scores + branch * rows + b] = value
            mean += share * value
            at = line + branch * width
            _add_scaled(work[at : at + width], mixed, share)
        for branch in range(count):
            share = work[branches[tree.BRANCH_SHARES] + branch * stride + b]
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
    row = tree.BRANCH_TABLE + tree.BRANCH_ROW * layer
    fan_in, fan_out, copies = branches[row], branches[row + tree.BRANCH_FAN_OUT], branches[row + tree.BRANCH_COPIES]
    rows, zeros, ones = numbers[tree.ROWS], (work, branches[tree.BRANCH_ZEROS]), (work, numbers[tree.ONES], 0, 1)
    even, odd = branches[tree.BRANCH_GRADIENT_EVEN], branches[tree.BRANCH_GRADIENT_ODD]
    upper_at, upper_stride = even if layer % 2 == 0 else odd, branches[row + tree.BRANCH_STRIDE]
    if branches[row + tree.BRANCH_IS_LAST]:
        upper_stride = (branches[tree.BRANCH_BRANCHES] + 1) * branches[tree.BRANCH_WIDTH]
        upper_at = branches[tree.BRANCH_GRADIENT] + branches[row + tree.BRANCH_BRANCH] * branches[tree.BRANCH_WIDTH]
    first, below = branches[row + tree.BRANCH_FIRST_INPUT], row - tree.BRANCH_ROW
    data, at, stride = inputs
    source = (data, at + first, stride)
    if first < 0:
        source = (work, branches[below + tree.BRANCH_KEPT], branches[below + tree.BRANCH_STRIDE])
    data, at, stride = source
    for copy in range(copies):
        upper, left = (
            (work, upper_at + copy * fan_out, upper_stride),
            (work, upper_at + copy * fan_out, 1, upper_stride),
        )
        weight, block = (gradient, branches[row + tree.BRANCH_WEIGHT], fan_in), (data, at + copy * fan_in, stride)
        multiply(weight, left, block, zeros, (fan_out, fan_in, rows), NO_FLOOR, copy)
        multiply(
            (gradient, branches[row + tree.BRANCH_BIAS], fan_out),
            ones,
            upper,
            zeros,
            (1, fan_out, rows),
            NO_FLOOR,
            copy,
        )
    if first < 0:
        lower_at, length = odd if layer % 2 == 0 else even, rows * stride
        weight = (parameters, branches[row + tree.BRANCH_WEIGHT], fan_in)
        left = (work, upper_at, upper_stride, 1)
        multiply((work, lower_at, stride), left, weight, zeros, (rows, fan_in, fan_out), NO_FLOOR, 0)
        multiply_by_slope(numbers[tree.ACTIVATION], work[lower_at : lower_at + length], work[at : at + length])


Memory = tuple[Array, Array, Array, Array]
"""The trunk's plan, its constants, the branches' plan, the workspace."""


@inline_kernel
def _network(memory: Memory, parameters: Array, columns: int, head: int, keep: int) -> None:
    numbers, _, branches, work = memory
    forward_branches(numbers, branches, parameters, work, columns, keep)
    forward(numbers, parameters[branches[tree.BRANCH_TRUNK] :], work, columns, head, keep)


@inline_kernel
def _compute_gradient(
    memory: Memory,
    vectors: tuple[Array, Array, Array],
    batch: tuple[Array, Array, tuple[Array, Array, Array, Array, Array], Array],
    start: int,
    means: Array,
) -> None:
    numbers, constants, branches, work = memory
    (parameters, target, gradient), (obs, next_obs, others, td_error) = vectors, batch
    rows, size, stride = numbers[tree.ROWS], branches[tree.BRANCH_OBS_SIZE], numbers[tree.COLUMN_STRIDE]
    inputs, columns, first, trunk = branches[tree.BRANCH_INPUTS], rows, start * size, branches[tree.BRANCH_TRUNK]
    transpose((work, inputs, stride), (next_obs, first, size), rows, size)
    _network(memory, target, rows, numbers[tree.HEAD_TARGET], 0)
    if numbers[tree.DOUBLE]:
        columns = 2 * rows
        transpose((work, inputs + rows, stride), (next_obs, first, size), rows, size)
    transpose((work, inputs, stride), (obs, first, size), rows, size)
    _network(memory, parameters, columns, numbers[tree.HEAD_ONLINE], 1)
    loss_and_head_gradient(numbers, constants, work, others, start, td_error, means)
    backward(numbers, parameters[trunk:], work, gradient[trunk:], work, branches[tree.BRANCH_KEPT_TRUNK])
    backward_branches(numbers, branches, parameters, work, gradient, obs, first)


@kernel
def run_branch_updates(
    numbers: Array,
    constants: Array,
    branches: Array,
    work: Array,
    parameters: Array,
    target: Array,
    gradient: Array,
    mean: Array,
    square: Array,
    obs: Array,
    action: Array,
    reward: Array,
    discount: Array,
    next_obs: Array,
    weight: Array,
    masks: Array,
    lr: Array,
    first_update: int,
    td_error: Array,
    stats: Array,
) -> int:
    """As `run_updates`: len(lr) updates on batches [k, B, ...]; answers how many were made."""
    _check_batch(numbers, branches, (parameters, target, gradient, mean, square), obs, next_obs, lr.size)
    _check_rows(numbers, action, (reward, discount, weight, td_error), masks, lr.size)
    mode = float_mode()
    set_float_mode(mode | FLUSH)
    memory, vectors = (numbers, constants, branches, work), (parameters, target, gradient)
    others = (flat(action), flat(reward), flat(discount), flat(weight), flat(masks))
    batch = (flat(obs), flat(next_obs), others, flat(td_error))
    made, means = lr.size, np.empty(2)
    for j in range(lr.size):
        count = first_update + j + 1
        _compute_gradient(memory, vectors, batch, j * numbers[tree.ROWS], means)
        norm = math.sqrt(sum_of_squares(gradient))
        stats[0, j], stats[1, j], stats[2, j] = means[0], means[1], norm
        if not (math.isfinite(means[0]) and math.isfinite(norm)):
            made = j
            break
        optimise(constants, parameters, gradient, (mean, square), norm, lr[j], count)
        if numbers[tree.TARGET_EVERY] > 0 and count % numbers[tree.TARGET_EVERY] == 0:
            move_target(constants, target, parameters)
    set_float_mode(mode)
    return made


@inline_kernel
def _check_batch(
    numbers: Array, branches: Array, vectors: tuple[Array, ...], obs: Array, next_obs: Array, k: int
) -> None:
    """Kernels write where the plans say; what does not fit would be somebody else's memory."""
    for each in vectors:
        if each.size != branches[tree.BRANCH_TOTAL]:
            raise ValueError("vectors do not fit the native plan: expected num_parameters floats each")
    shape = (k, numbers[tree.ROWS], branches[tree.BRANCH_OBS_SIZE])
    if obs.shape != shape or next_obs.shape != shape:
        raise ValueError("batch does not fit the native plan: expected observations of [k, rows, obs_size]")


@inline_kernel
def _check_rows(numbers: Array, action: Array, others: tuple[Array, ...], masks: Array, k: int) -> None:
    rows, actions = numbers[tree.ROWS], numbers[tree.ACTIONS]
    fits = action.shape == (k, rows)
    for other in others:
        fits = fits and other.shape == (k, rows)
    if not fits or (masks.size > 0 and masks.shape != (k, rows, actions)):
        raise ValueError("batch does not fit the native plan: expected arrays of [k, rows, ...] for k learning rates")
    for row in flat(action):
        if row < 0 or row >= actions:
            raise ValueError("batch holds an action outside 0 .. num_actions - 1")


@kernel
def branch_greedy(
    numbers: Array, constants: Array, branches: Array, work: Array, parameters: Array, obs: Array, masks: Array
) -> Array:
    """The best allowed action [N] of each row of obs [N, F]; `masks` [N, A] or empty."""
    rows, size, stride = obs.shape[0], branches[tree.BRANCH_OBS_SIZE], numbers[tree.COLUMN_STRIDE]
    if parameters.size != branches[tree.BRANCH_TOTAL] or rows > numbers[tree.ROWS] or obs.shape[1] != size:
        raise ValueError("parameters or observations do not fit the native plan")
    if masks.size > 0 and masks.shape != (rows, numbers[tree.ACTIONS]):
        raise ValueError("action mask does not fit the observations: expected [N, num_actions]")
    transpose((work, branches[tree.BRANCH_INPUTS], stride), (flat(obs), 0, size), rows, size)
    _network((numbers, constants, branches, work), parameters, rows, numbers[tree.HEAD_ONLINE], 0)
    q, best = finish_values(numbers, constants, work, stride, rows), np.empty(rows, np.int64)
    for b in range(rows):
        best[b] = best_action(work, q + b, stride, numbers[tree.ACTIONS], flat(masks), b)
    return best
