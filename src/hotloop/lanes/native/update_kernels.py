"""k sequential DQN updates in one call: both forwards, loss, backward, clipping, Adam, target."""

from __future__ import annotations

import math

import numpy as np

from hotloop.core.kernels import inline_kernel, kernel
from hotloop.lanes.native import plan_kernels as plan
from hotloop.lanes.native.denormal_kernels import FLUSH, float_mode, set_float_mode
from hotloop.lanes.native.loss_kernels import loss_and_head_gradient
from hotloop.lanes.native.matrix_kernels import sum_of_squares, transpose
from hotloop.lanes.native.network_kernels import backward, forward

ROWS, OBS_SIZE, COLUMN_STRIDE, DOUBLE, INPUT = plan.ROWS, plan.OBS_SIZE, plan.COLUMN_STRIDE, plan.DOUBLE, plan.INPUT
HEAD_ONLINE, HEAD_TARGET, TARGET_EVERY = plan.HEAD_ONLINE, plan.HEAD_TARGET, plan.TARGET_EVERY
MAX_NORM, BETA1, BETA2, EPSILON, TAU = plan.MAX_NORM, plan.BETA1, plan.BETA2, plan.EPSILON, plan.TAU
Float = np.float32


@inline_kernel
def _adam(parameters, gradient, mean, square, keep1, keep2, scale, step, root_correction, epsilon):
    """One pass over the flat vectors; the gradient is clipped on the way."""
    for i in range(parameters.size):
        g = gradient[i] * scale
        mean[i] += keep1 * (g - mean[i])
        square[i] += keep2 * (g * g - square[i])
        parameters[i] -= step * mean[i] / (Float(math.sqrt(square[i])) * root_correction + epsilon)


@inline_kernel
def _optimise(constants, parameters, gradient, mean, square, norm, lr, count):
    """Equal to torch.optim.Adam's `count`-th step, from 1, after clipping to the global norm."""
    beta1, beta2, max_norm = constants[BETA1], constants[BETA2], constants[MAX_NORM]
    scale = min(1.0, max_norm / (norm + 1e-6)) if max_norm > 0.0 else 1.0
    step = lr / (1.0 - math.pow(beta1, count))
    root_correction = 1.0 / math.sqrt(1.0 - math.pow(beta2, count))
    keep1, keep2, epsilon = Float(1.0 - beta1), Float(1.0 - beta2), Float(constants[EPSILON])
    _adam(
        parameters, gradient, mean, square, keep1, keep2, Float(scale), Float(step), Float(root_correction), epsilon
    )  # fmt: skip


@inline_kernel
def _blend(target, parameters, tau):
    for i in range(target.size):
        target[i] += tau * (parameters[i] - target[i])


@inline_kernel
def _move_target(constants, target, parameters):
    if constants[TAU] == 1.0:
        for i in range(target.size):  # numba spends 5 s on compiling the error message of `target[:] = parameters`
            target[i] = parameters[i]
    else:
        _blend(target, parameters, Float(constants[TAU]))


@inline_kernel
def _compute_gradient(numbers, constants, work, vectors, batch, start, td_error):
    """Gradient of one batch, rows from `start` of the flat batches; mean loss and mean q."""
    parameters, target, gradient = vectors
    obs, action, reward, discount, next_obs, weight, masks = batch
    rows, size, stride = numbers[ROWS], numbers[OBS_SIZE], numbers[COLUMN_STRIDE]
    end, inputs = start + rows, numbers[INPUT]
    transpose(work, inputs, stride, next_obs, start * size, size, rows, size)
    forward(numbers, target, work, rows, numbers[HEAD_TARGET], 0)
    if numbers[DOUBLE]:
        transpose(work, inputs + rows, stride, next_obs, start * size, size, rows, size)
    transpose(work, inputs, stride, obs, start * size, size, rows, size)
    forward(numbers, parameters, work, 2 * rows if numbers[DOUBLE] else rows, numbers[HEAD_ONLINE], 1)
    means = np.empty(2)
    loss_and_head_gradient(
        numbers, constants, work, action[start:end], reward[start:end], discount[start:end], weight[start:end],
        masks[start:end], td_error, means,
    )  # fmt: skip
    backward(numbers, parameters, work, gradient, obs, start * size)
    return means[0], means[1]


@inline_kernel
def _updates(numbers, constants, work, vectors, moments, batch, lr, first_update, td_error, stats):
    parameters, target, gradient = vectors
    mean, square = moments
    for j in range(lr.size):
        count = first_update + j + 1
        rows = numbers[ROWS]
        loss, q_mean = _compute_gradient(numbers, constants, work, vectors, batch, j * rows, td_error[j])
        norm = math.sqrt(sum_of_squares(gradient))
        stats[0, j], stats[1, j], stats[2, j] = loss, q_mean, norm
        if not (math.isfinite(loss) and math.isfinite(norm)):
            return j
        _optimise(constants, parameters, gradient, mean, square, norm, lr[j], count)
        if numbers[TARGET_EVERY] > 0 and count % numbers[TARGET_EVERY] == 0:
            _move_target(constants, target, parameters)
    return lr.size


@kernel
def run_updates(
    numbers, constants, work, parameters, target, gradient, mean, square,
    obs, action, reward, discount, next_obs, weight, masks, lr, first_update, td_error, stats,
):  # fmt: skip
    """len(lr) updates on batches [k, B, ...]; answers how many were made.

    Fewer than asked: the loss or the gradient norm of that one (in `stats` [loss, q mean, norm][k]) is not finite, and
    neither parameters nor moments have seen it.
    """
    mode = float_mode()
    set_float_mode(mode | FLUSH)
    batch = (
        obs.reshape(-1), action.reshape(-1), reward.reshape(-1), discount.reshape(-1), next_obs.reshape(-1),
        weight.reshape(-1), masks.reshape(-1, masks.shape[-1]),
    )  # fmt: skip
    made = _updates(
        numbers, constants, work, (parameters, target, gradient), (mean, square), batch, lr, first_update, td_error, stats
    )
    set_float_mode(mode)
    return made
