"""k sequential DQN updates in one call: both forwards, loss, backward, clipping, Adam, target; and best actions."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hotloop.core.kernels import inline_kernel, kernel
from hotloop.core.types import Array
from hotloop.lanes.native import plan_kernels as plan
from hotloop.lanes.native.activation_kernels import activate
from hotloop.lanes.native.branch_kernels import backward_branches, forward_branches
from hotloop.lanes.native.loss_kernels import Rows, loss_and_head_gradient
from hotloop.lanes.native.matrix_kernels import multiply_vector, sum_of_squares, transpose
from hotloop.lanes.native.network_kernels import backward, best_action, combine_streams, expected_values, forward
from hotloop.lanes.native.unit_kernels import flat
from hotloop.lanes.native.vector_kernels import FLUSH, float_mode, set_float_mode

Float: Any = np.float32


class Vectors(NamedTuple):
    """As many floats as parameters, each."""

    parameters: Array
    target: Array
    gradient: Array
    mean: Array
    square: Array


class Batches(NamedTuple):
    """All k batches, flat; `td_error` is written."""

    obs: Array
    next_obs: Array
    rows: Rows
    td_error: Array


@inline_kernel
def _adam(
    parameters: Array, gradient: Array, mean: Array, square: Array, rates: tuple[float, ...], scale: float, step: float
) -> None:
    """One pass over the flat vectors; the gradient is clipped on the way."""
    keep1, keep2, root_correction, epsilon = rates
    for i in range(parameters.size):
        g = gradient[i] * scale
        mean[i] += keep1 * (g - mean[i])
        square[i] += keep2 * (g * g - square[i])
        parameters[i] -= step * mean[i] / (Float(math.sqrt(square[i])) * root_correction + epsilon)


@inline_kernel
def optimize(
    constants: Array,
    parameters: Array,
    gradient: Array,
    moments: tuple[Array, Array],
    norm: float,
    lr: float,
    count: int,
) -> None:
    """Equal to torch.optim.Adam's `count`-th step, from 1, after clipping to the global norm."""
    mean, square = moments
    beta1, beta2, max_norm = constants[plan.BETA1], constants[plan.BETA2], constants[plan.MAX_NORM]
    scale = min(1.0, max_norm / (norm + 1e-6)) if max_norm > 0.0 else 1.0
    step = lr / (1.0 - math.pow(beta1, count))
    root_correction = 1.0 / math.sqrt(1.0 - math.pow(beta2, count))
    rates = (Float(1.0 - beta1), Float(1.0 - beta2), Float(root_correction), Float(constants[plan.EPSILON]))
    _adam(parameters, gradient, mean, square, rates, Float(scale), Float(step))


@inline_kernel
def _blend(target: Array, parameters: Array, tau: float) -> None:
    for i in range(target.size):
        target[i] += tau * (parameters[i] - target[i])


@inline_kernel
def move_target(constants: Array, target: Array, parameters: Array) -> None:
    if constants[plan.TAU] == 1.0:
        for i in range(target.size):  # numba spends 5 s on compiling the error message of `target[:] = parameters`
            target[i] = parameters[i]
    else:
        _blend(target, parameters, Float(constants[plan.TAU]))


@inline_kernel
def _network(int_plan: Array, parameters: Array, work: Array, columns: int, head: int, keep: int) -> None:
    """Head outputs at `head`, from the observations [F, columns] at `INPUT`."""
    if int_plan[plan.BRANCHES] > 0:
        forward_branches(int_plan, parameters, work, columns, keep)
    forward(int_plan, parameters, work, columns, head, keep)


@inline_kernel
def _compute_gradient(
    int_plan: Array, constants: Array, work: Array, vectors: Vectors, batch: Batches, start: int, means: Array
) -> None:
    """Gradient of one batch, rows from `start` of the flat batches; its mean loss and mean q into `means`."""
    obs, gradient, branches = batch.obs, vectors.gradient, int_plan[plan.BRANCHES]
    rows, size, stride = int_plan[plan.ROWS], int_plan[plan.OBS_SIZE], int_plan[plan.COLUMN_STRIDE]
    inputs, columns, first = int_plan[plan.INPUT], rows, start * size
    transpose((work, inputs, stride), (batch.next_obs, first, size), rows, size)
    _network(int_plan, vectors.target, work, rows, int_plan[plan.HEAD_TARGET], 0)
    if int_plan[plan.DOUBLE]:
        columns = 2 * rows
        transpose((work, inputs + rows, stride), (batch.next_obs, first, size), rows, size)
    transpose((work, inputs, stride), (obs, first, size), rows, size)
    _network(int_plan, vectors.parameters, work, columns, int_plan[plan.HEAD_ONLINE], 1)
    loss_and_head_gradient(int_plan, constants, work, batch.rows, start, batch.td_error, means)
    if branches > 0:
        backward(int_plan, vectors.parameters, work, gradient, work, int_plan[branches + plan.KEPT_INPUT])
        backward_branches(int_plan, vectors.parameters, work, gradient, obs, first)
    else:
        backward(int_plan, vectors.parameters, work, gradient, obs, first)


@inline_kernel
def _check_batch(
    int_plan: Array, vectors: Vectors, obs: Array, next_obs: Array, action: Array, others: tuple[Array, ...],
    masks: Array, k: int,
) -> None:  # fmt: skip
    """Kernels write where the plan and the actions say: what does not fit would be an out-of-bounds write."""
    rows, size, actions = int_plan[plan.ROWS], int_plan[plan.OBS_SIZE], int_plan[plan.ACTIONS]
    for each in vectors:
        if each.size != int_plan[plan.PARAMETERS]:
            raise ValueError("vectors do not fit the native plan: expected num_parameters floats each")
    fits = obs.shape == (k, rows, size) and next_obs.shape == (k, rows, size) and action.shape == (k, rows)
    for other in others:
        fits = fits and other.shape == (k, rows)
    if not fits or (masks.size > 0 and masks.shape != (k, rows, actions)):
        raise ValueError("batch does not fit the native plan: expected arrays of [k, rows, ...] for k learning rates")
    for row in flat(action):
        if row < 0 or row >= actions:
            raise ValueError("batch holds an action outside 0 .. num_actions - 1")


@kernel
def run_updates(
    int_plan: Array,
    constants: Array,
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
    """len(lr) updates on batches [k, B, ...]; answers how many were made.

    Fewer than asked: the loss or the gradient norm of that one (in `stats` [loss, q mean, norm][k]) is not finite, and
    neither parameters nor moments have seen it.
    """
    vectors = Vectors(parameters, target, gradient, mean, square)
    _check_batch(int_plan, vectors, obs, next_obs, action, (reward, discount, weight, td_error), masks, lr.size)
    rows = Rows(flat(action), flat(reward), flat(discount), flat(weight), flat(masks))
    batch, made, means = Batches(flat(obs), flat(next_obs), rows, flat(td_error)), lr.size, np.empty(2)
    mode = float_mode()
    set_float_mode(mode | FLUSH)
    for j in range(lr.size):
        count = first_update + j + 1
        _compute_gradient(int_plan, constants, work, vectors, batch, j * int_plan[plan.ROWS], means)
        norm = math.sqrt(sum_of_squares(gradient))
        stats[0, j], stats[1, j], stats[2, j] = means[0], means[1], norm
        if not (math.isfinite(means[0]) and math.isfinite(norm)):
            made = j
            break
        optimize(constants, parameters, gradient, (mean, square), norm, lr[j], count)
        if int_plan[plan.TARGET_EVERY] > 0 and count % int_plan[plan.TARGET_EVERY] == 0:
            move_target(constants, target, parameters)
    set_float_mode(mode)
    return made


FEW = 3
"""Up to so many rows go one by one: a matrix product would fill one lane in sixteen."""


@inline_kernel
def _forward_row(int_plan: Array, parameters: Array, work: Array, obs: Array, at: int) -> None:
    """Head outputs of the one observation at `obs[at:]`, densely at `HEAD_ONLINE`."""
    torso, head = int_plan[plan.TORSO], int_plan[plan.HEAD_ONLINE]
    for f in range(int_plan[plan.OBS_SIZE]):
        work[int_plan[plan.INPUT] + f] = obs[at + f]
    source = int_plan[plan.INPUT]
    for layer in range(torso + int_plan[plan.HEADS]):
        row = plan.TABLE + plan.ROW * layer
        fan_in, fan_out = int_plan[row + plan.FAN_IN], int_plan[row + plan.FAN_OUT]
        weight, bias = (parameters, int_plan[row + plan.WEIGHT], fan_in), (parameters, int_plan[row + plan.BIAS])
        target = int_plan[plan.VALUES_EVEN] if layer % 2 == 0 else int_plan[plan.VALUES_ODD]
        if layer >= torso:
            target = head + int_plan[row + plan.FIRST_OUTPUT]
        multiply_vector((work, target), weight, (work, source), bias, fan_out, fan_in)
        if layer < torso:
            activate(int_plan[plan.ACTIVATION], work[target : target + fan_out])
            source = target


@inline_kernel
def _finish_values(int_plan: Array, constants: Array, work: Array, stride: int, columns: int) -> int:
    """Offset of the values [A, columns], once the head outputs are there."""
    combine_streams(int_plan, work, int_plan[plan.HEAD_ONLINE], stride, columns)
    outputs = int_plan[plan.HEAD_ONLINE] + int_plan[plan.COMBINED] * stride
    if int_plan[plan.ATOMS] == 1:
        return outputs
    q = int_plan[plan.SCRATCH] + (int_plan[plan.ATOMS] + 2) * stride
    expected_values(int_plan, constants, work, outputs, stride, columns, q, int_plan[plan.SCRATCH])
    return q


@inline_kernel
def _compute_values(int_plan: Array, constants: Array, work: Array, parameters: Array, obs: Array, rows: int) -> None:
    """`Q_ROWS` [N, A], from obs [N * F]."""
    size, actions, stride = int_plan[plan.OBS_SIZE], int_plan[plan.ACTIONS], int_plan[plan.COLUMN_STRIDE]
    if rows <= FEW and int_plan[plan.BRANCHES] == 0:
        for b in range(rows):
            _forward_row(int_plan, parameters, work, obs, b * size)
            q = _finish_values(int_plan, constants, work, 1, 1)
            for a in range(actions):
                work[int_plan[plan.Q_ROWS] + b * actions + a] = work[q + a]
    else:
        transpose((work, int_plan[plan.INPUT], stride), (obs, 0, size), rows, size)
        _network(int_plan, parameters, work, rows, int_plan[plan.HEAD_ONLINE], 0)
        q = _finish_values(int_plan, constants, work, stride, rows)
        transpose((work, int_plan[plan.Q_ROWS], actions), (work, q, stride), actions, rows)


@kernel
def greedy(int_plan: Array, constants: Array, work: Array, parameters: Array, obs: Array, masks: Array) -> Array:
    """The best allowed action [N] of each row of obs [N, F]; `masks` [N, A] or empty. Leaves the values at `Q_ROWS`."""
    rows, actions = obs.shape[0], int_plan[plan.ACTIONS]
    if parameters.size != int_plan[plan.PARAMETERS]:
        raise ValueError("parameters do not fit the native plan: expected a vector of num_parameters")
    if rows > int_plan[plan.ROWS] or obs.shape[1] != int_plan[plan.OBS_SIZE]:
        raise ValueError("observations do not fit the native plan: expected at most `rows` rows of obs_size floats")
    if masks.size > 0 and masks.shape != (rows, actions):
        raise ValueError("action mask does not fit the observations: expected [N, num_actions]")
    _compute_values(int_plan, constants, work, parameters, flat(obs), rows)
    best = np.empty(rows, np.int64)
    for b in range(rows):
        best[b] = best_action(work, int_plan[plan.Q_ROWS] + b * actions, 1, actions, flat(masks), b)
    return best
