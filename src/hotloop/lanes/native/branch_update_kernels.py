"""k sequential DQN updates of a network of branches in one call, and its values and best actions."""

from __future__ import annotations

import math

import numpy as np

from hotloop.core.kernels import inline_kernel, kernel
from hotloop.core.types import Array
from hotloop.lanes.native import branch_plan_kernels as tree
from hotloop.lanes.native import plan_kernels as plan
from hotloop.lanes.native.acting_kernels import finish_values
from hotloop.lanes.native.branch_kernels import backward_branches, forward_branches
from hotloop.lanes.native.denormal_kernels import FLUSH, float_mode, set_float_mode
from hotloop.lanes.native.head_kernels import best_action
from hotloop.lanes.native.loss_kernels import loss_and_head_gradient
from hotloop.lanes.native.matrix_kernels import sum_of_squares, transpose
from hotloop.lanes.native.network_kernels import backward, forward
from hotloop.lanes.native.unit_kernels import flat
from hotloop.lanes.native.update_kernels import move_target, optimise

Memory = tuple[Array, Array, Array, Array]
"""The trunk's plan, its constants, the branches' plan, the workspace."""


@inline_kernel
def _network(memory: Memory, parameters: Array, columns: int, head: int, keep: int) -> None:
    numbers, _, branches, work = memory
    forward_branches(numbers, branches, parameters, work, columns, keep)
    forward(numbers, parameters[branches[tree.TRUNK] :], work, columns, head, keep)


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
    rows, size, stride = numbers[plan.ROWS], branches[tree.OBS_SIZE], numbers[plan.COLUMN_STRIDE]
    inputs, columns, first, trunk = branches[tree.INPUTS], rows, start * size, branches[tree.TRUNK]
    transpose((work, inputs, stride), (next_obs, first, size), rows, size)
    _network(memory, target, rows, numbers[plan.HEAD_TARGET], 0)
    if numbers[plan.DOUBLE]:
        columns = 2 * rows
        transpose((work, inputs + rows, stride), (next_obs, first, size), rows, size)
    transpose((work, inputs, stride), (obs, first, size), rows, size)
    _network(memory, parameters, columns, numbers[plan.HEAD_ONLINE], 1)
    loss_and_head_gradient(numbers, constants, work, others, start, td_error, means)
    backward(numbers, parameters[trunk:], work, gradient[trunk:], work, branches[tree.KEPT_TRUNK])
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
        _compute_gradient(memory, vectors, batch, j * numbers[plan.ROWS], means)
        norm = math.sqrt(sum_of_squares(gradient))
        stats[0, j], stats[1, j], stats[2, j] = means[0], means[1], norm
        if not (math.isfinite(means[0]) and math.isfinite(norm)):
            made = j
            break
        optimise(constants, parameters, gradient, (mean, square), norm, lr[j], count)
        if numbers[plan.TARGET_EVERY] > 0 and count % numbers[plan.TARGET_EVERY] == 0:
            move_target(constants, target, parameters)
    set_float_mode(mode)
    return made


@inline_kernel
def _check_batch(
    numbers: Array, branches: Array, vectors: tuple[Array, ...], obs: Array, next_obs: Array, k: int
) -> None:
    """Kernels write where the plans say; what does not fit would be somebody else's memory."""
    for each in vectors:
        if each.size != branches[tree.TOTAL]:
            raise ValueError("vectors do not fit the native plan: expected num_parameters floats each")
    shape = (k, numbers[plan.ROWS], branches[tree.OBS_SIZE])
    if obs.shape != shape or next_obs.shape != shape:
        raise ValueError("batch does not fit the native plan: expected observations of [k, rows, obs_size]")


@inline_kernel
def _check_rows(numbers: Array, action: Array, others: tuple[Array, ...], masks: Array, k: int) -> None:
    rows, actions = numbers[plan.ROWS], numbers[plan.ACTIONS]
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
    rows, size, stride = obs.shape[0], branches[tree.OBS_SIZE], numbers[plan.COLUMN_STRIDE]
    if parameters.size != branches[tree.TOTAL] or rows > numbers[plan.ROWS] or obs.shape[1] != size:
        raise ValueError("parameters or observations do not fit the native plan")
    if masks.size > 0 and masks.shape != (rows, numbers[plan.ACTIONS]):
        raise ValueError("action mask does not fit the observations: expected [N, num_actions]")
    transpose((work, branches[tree.INPUTS], stride), (flat(obs), 0, size), rows, size)
    _network((numbers, constants, branches, work), parameters, rows, numbers[plan.HEAD_ONLINE], 0)
    q, best = finish_values(numbers, constants, work, stride, rows), np.empty(rows, np.int64)
    for b in range(rows):
        best[b] = best_action(work, q + b, stride, numbers[plan.ACTIONS], flat(masks), b)
    return best
