"""k sequential updates of SAC, TD3 or DDPG in one call: critics, actor, temperature, targets; and the actor's outputs.

A second implementation of what `lanes/sac_objective.py` says; `sac_stage_kernels.py` has its stages. Where a policy
draws its actions, the actor sees obs and next_obs in one forward pass, since both stages want it as it was before its
step.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hotloop.core.kernels import inline_kernel, kernel
from hotloop.core.types import Array
from hotloop.lanes.native import sac_plan_kernels as sac
from hotloop.lanes.native import stack_plan_kernels as plan
from hotloop.lanes.native.matrix_kernels import sum_of_squares, transpose
from hotloop.lanes.native.sac_stage_kernels import (
    actor_gradient,
    actor_plan,
    critics_gradient,
    double,
    last_layer,
    set_target,
    take_actions,
    vector_of,
)
from hotloop.lanes.native.stack_kernels import forward_stack
from hotloop.lanes.native.unit_kernels import flat, index, real_vector, unit, vector, whole
from hotloop.lanes.native.update_kernels import move_target, optimize
from hotloop.lanes.native.vector_kernels import FLUSH, float_mode, set_float_mode

Float: Any = np.float32


class SACKernelBatches(NamedTuple):
    """All k batches, flat; `td_error` is written."""

    obs: Array
    action: Array
    reward: Array
    discount: Array
    next_obs: Array
    weight: Array
    next_noise: Array
    noise: Array
    td_error: Array


@unit(whole, real_vector, vector, index, real_vector, double, index)
def make_step(
    int_plan: Array, float_plan: Array, vectors: Array, group: int, report: Array, lr: float, count: int
) -> None:
    """The `count`-th step of a group, unless its loss (in `report`) or gradient is not finite; reports the norm."""
    gradient = vector_of(int_plan, vectors, group, sac.GRADIENT)
    norm = math.sqrt(sum_of_squares(gradient))
    report[sac.STAGE_NORM], report[sac.STAGE_MADE] = norm, 0.0
    if math.isfinite(report[sac.STAGE_LOSS]) and math.isfinite(norm):
        report[sac.STAGE_MADE] = 1.0
        mean = vector_of(int_plan, vectors, group, sac.MEAN)
        square = vector_of(int_plan, vectors, group, sac.SQUARE)
        optimize(float_plan, vector_of(int_plan, vectors, group, sac.VALUES), gradient, (mean, square), norm, lr, count)


@unit(whole, real_vector, vector)
def move_targets(int_plan: Array, float_plan: Array, vectors: Array) -> None:
    critics = vector_of(int_plan, vectors, sac.CRITIC, sac.VALUES)
    move_target(float_plan, vector_of(int_plan, vectors, sac.CRITIC, sac.SLOW), critics)
    if not int_plan[sac.STOCHASTIC]:
        actor = vector_of(int_plan, vectors, sac.ACTOR, sac.VALUES)
        move_target(float_plan, vector_of(int_plan, vectors, sac.ACTOR, sac.SLOW), actor)


@inline_kernel
def _show(int_plan: Array, work: Array, network: int, first: int, source: tuple[Array, int], size: int) -> None:
    """Rows of `size` numbers as columns of the input of a network (its plan), from the float `first` of it on."""
    (data, row), rows, stride = source, int_plan[sac.ROWS], int_plan[network + plan.STRIDE]
    transpose((work, int_plan[network + plan.INPUT] + first, stride), (data, row * size, size), rows, size)


@inline_kernel
def _show_noise(int_plan: Array, work: Array, noise: Array, row: int) -> None:
    stride, actions = int_plan[int_plan[sac.CRITICS_PLAN] + plan.STRIDE], int_plan[sac.ACTIONS]
    if noise.size > 0:
        lines = (work, int_plan[sac.LINES] + sac.NOISE * stride, stride)
        transpose(lines, (noise, row * actions, actions), int_plan[sac.ROWS], actions)


@inline_kernel
def _copy_rows(work: Array, to: int, width: int, source: tuple[Array, int], rows: int, size: int) -> None:
    """Into the batch-major input of a wide first layer; -1: it has none."""
    data, row = source
    for b in range(rows if to >= 0 else 0):
        for f in range(size):
            work[to + b * width + f] = data[(row + b) * size + f]


@inline_kernel
def _run_actor(int_plan: Array, work: Array, vectors: Array, batch: SACKernelBatches, row: int, due: bool) -> int:
    """The actor's outputs in next_obs, and in obs where both are wanted of the same parameters; the former's column."""
    network, size, stochastic = int_plan[sac.ACTOR_PLAN], int_plan[sac.OBS_SIZE], int_plan[sac.STOCHASTIC]
    column = int_plan[sac.NEXT] if due and stochastic else 0
    if column > 0:
        _show(int_plan, work, network, 0, (batch.obs, row), size)
    _show(int_plan, work, network, column, (batch.next_obs, row), size)
    values = vector_of(int_plan, vectors, sac.ACTOR, sac.VALUES if stochastic else sac.SLOW)
    forward_stack(actor_plan(int_plan), values, work, 1, column + int_plan[sac.ROWS], column)
    return column


@inline_kernel
def _descend_critics(
    int_plan: Array, float_plan: Array, work: Array, vectors: Array, batch: SACKernelBatches, row: int, column: int,
    alpha: float,
    report: Array,
) -> None:  # fmt: skip
    """The critics' gradient; `report` has the loss and the mean q."""
    network, size, actions = int_plan[sac.CRITICS_PLAN], int_plan[sac.OBS_SIZE], int_plan[sac.ACTIONS]
    end, below = row + int_plan[sac.ROWS], size * int_plan[network + plan.STRIDE]
    _show(int_plan, work, network, 0, (batch.next_obs, row), size)
    _show_noise(int_plan, work, batch.next_noise, row)
    take_actions(int_plan, float_plan, work, column, float_plan[sac.SMOOTHING])
    set_target(int_plan, work, vectors, batch.reward[row:end], batch.discount[row:end], alpha)
    _show(int_plan, work, network, 0, (batch.obs, row), size)
    _show(int_plan, work, network, below, (batch.action, row), actions)
    to = int_plan[network + plan.INPUT_ROWS]
    _copy_rows(work, to, size + actions, (batch.obs, row), int_plan[sac.ROWS], size)
    _copy_rows(work, to + size if to >= 0 else -1, size + actions, (batch.action, row), int_plan[sac.ROWS], actions)
    critics_gradient(int_plan, float_plan, work, vectors, batch.weight[row:end], batch.td_error[row:end], report)


@inline_kernel
def _descend_actor(
    int_plan: Array,
    float_plan: Array,
    work: Array,
    vectors: Array,
    batch: SACKernelBatches,
    row: int,
    alpha: float,
    report: Array,
) -> None:
    """The actor's gradient; `report` has the loss and the mean log p. The critics' input still has obs."""
    network, size = int_plan[sac.ACTOR_PLAN], int_plan[sac.OBS_SIZE]
    if not int_plan[sac.STOCHASTIC]:
        _show(int_plan, work, network, 0, (batch.obs, row), size)
        values = vector_of(int_plan, vectors, sac.ACTOR, sac.VALUES)
        forward_stack(actor_plan(int_plan), values, work, 1, int_plan[sac.ROWS], 1)
    _show_noise(int_plan, work, batch.noise, row)
    take_actions(int_plan, float_plan, work, 0, 0.0)
    _copy_rows(work, int_plan[network + plan.INPUT_ROWS], size, (batch.obs, row), int_plan[sac.ROWS], size)
    actor_gradient(int_plan, float_plan, work, vectors, alpha, report)


@inline_kernel
def _move_actor(
    int_plan: Array, float_plan: Array, work: Array, vectors: Array, batch: SACKernelBatches, row: int, alpha: float,
    report: Array,
    lr: float, count: int, stats: Array, j: int,
) -> None:  # fmt: skip
    """Up the critics; then the temperature, by the actor before its step. `report` has the norm of both gradients.

    `count` is the actor's own; delayed stages weigh more in the statistics, so that their means are right.
    """
    delay, values = int_plan[sac.POLICY_DELAY], vector_of(int_plan, vectors, sac.ALPHA, sac.VALUES)
    _descend_actor(int_plan, float_plan, work, vectors, batch, row, alpha, report)
    log_prob = report[sac.STAGE_MEAN]
    stats[sac.ACTOR_LOSS, j], stats[sac.ENTROPY, j] = delay * report[sac.STAGE_LOSS], -delay * log_prob
    make_step(int_plan, float_plan, vectors, sac.ACTOR, report, lr, count)
    if report[sac.STAGE_MADE] > 0.0 and int_plan[sac.LEARN_TEMPERATURE]:
        norm, slope = report[sac.STAGE_NORM], -(log_prob + float_plan[sac.TARGET_ENTROPY])
        vector_of(int_plan, vectors, sac.ALPHA, sac.GRADIENT)[0] = Float(slope)
        report[sac.STAGE_LOSS] = values[0] * slope
        stats[sac.TEMPERATURE_LOSS, j] = delay * report[sac.STAGE_LOSS]
        stats[sac.TEMPERATURE_MEAN, j] = delay * alpha
        make_step(int_plan, float_plan, vectors, sac.ALPHA, report, lr, count)
        report[sac.STAGE_NORM] = math.sqrt(norm * norm + report[sac.STAGE_NORM] * report[sac.STAGE_NORM])


@inline_kernel
def _check(int_plan: Array, float_plan: Array, batch: SACKernelBatches, stats: Array, k: int) -> None:
    """Kernels read where the plan says: what does not fit would be an out-of-bounds access."""
    count, drawn = k * int_plan[sac.ROWS], int_plan[sac.STOCHASTIC] != 0
    smoothed, taken = drawn or float_plan[sac.SMOOTHING] > 0.0, count * int_plan[sac.ACTIONS]
    fits = batch.obs.size == count * int_plan[sac.OBS_SIZE] and batch.next_obs.size == batch.obs.size
    fits = fits and batch.reward.size == count and batch.discount.size == count and batch.weight.size == count
    fits = fits and batch.td_error.size == count and stats.shape == (sac.STATISTICS, k)
    fits = fits and batch.action.size == taken and batch.next_noise.size == (taken if smoothed else 0)
    if not fits or batch.noise.size != (taken if drawn else 0):
        raise ValueError("batch does not fit the native plan: expected arrays of [k, rows, ...] for k learning rates")


@kernel
def run_sac_updates(
    int_plan: Array,
    float_plan: Array,
    work: Array,
    vectors: Array,
    obs: Array,
    action: Array,
    reward: Array,
    discount: Array,
    next_obs: Array,
    weight: Array,
    next_noise: Array,
    noise: Array,
    td_error: Array,
    lr: Array,
    first_update: int,
    stats: Array,
) -> int:
    """len(lr) updates on batches [k, B, ...], all of them flat; answers how many were made.

    Fewer than asked: a stage of that one has a loss or a gradient that is not finite; neither its parameters nor its
    moments have seen it, nor has any stage after it been made.
    """
    batch = SACKernelBatches(obs, action, reward, discount, next_obs, weight, next_noise, noise, td_error)
    _check(int_plan, float_plan, batch, stats, lr.size)
    report, made, delay = np.zeros(sac.REPORT), lr.size, int_plan[sac.POLICY_DELAY]
    mode = float_mode()
    set_float_mode(mode | FLUSH)
    for j in range(lr.size):
        count, row, alpha = first_update + j + 1, j * int_plan[sac.ROWS], float_plan[sac.TEMPERATURE]
        if int_plan[sac.LEARN_TEMPERATURE]:
            alpha = math.exp(vector_of(int_plan, vectors, sac.ALPHA, sac.VALUES)[0])
        column = _run_actor(int_plan, work, vectors, batch, row, count % delay == 0)
        _descend_critics(int_plan, float_plan, work, vectors, batch, row, column, alpha, report)
        for i in range(sac.STATISTICS):  # numba spends seconds on compiling the error message of `stats[:, j] = 0`
            stats[i, j] = Float(0.0)
        stats[sac.LOSS, j], stats[sac.Q_MEAN, j] = report[sac.STAGE_LOSS], report[sac.STAGE_MEAN]
        make_step(int_plan, float_plan, vectors, sac.CRITIC, report, lr[j], count)
        norm = report[sac.STAGE_NORM]
        if report[sac.STAGE_MADE] > 0.0 and count % delay == 0:
            _move_actor(int_plan, float_plan, work, vectors, batch, row, alpha, report, lr[j], count // delay, stats, j)
            norm = math.sqrt(norm * norm + report[sac.STAGE_NORM] * report[sac.STAGE_NORM])
        stats[sac.GRADIENT_NORM, j] = norm
        if not report[sac.STAGE_MADE] > 0.0:
            made = j
            break
        if int_plan[sac.TARGET_EVERY] > 0 and count % int_plan[sac.TARGET_EVERY] == 0:
            move_targets(int_plan, float_plan, vectors)
    set_float_mode(mode)
    return made


@kernel
def run_sac_actor(int_plan: Array, work: Array, parameters: Array, obs: Array, out: Array) -> None:
    """out [N, O] of obs [N, F]. Every row goes through the tiles, even a single one: a row's numbers then do not depend
    on how many there are."""
    rows, stride = obs.shape[0], int_plan[plan.STRIDE]
    last = plan.TABLE + plan.ROW * (int_plan[plan.LAYERS] - 1)
    fits = parameters.size == int_plan[plan.PARAMETERS] and rows <= int_plan[plan.ROWS] and out.shape[0] == rows
    fits = fits and obs.shape[1] == int_plan[plan.TABLE + plan.FAN_IN]
    if not fits or out.shape[1] != int_plan[last + plan.FAN_OUT]:
        raise ValueError("arrays do not fit the native plan: expected obs [N, F], outputs [N, O] and all parameters")
    mode = float_mode()
    set_float_mode(mode | FLUSH)
    transpose((work, int_plan[plan.INPUT], stride), (flat(obs), 0, obs.shape[1]), rows, obs.shape[1])
    forward_stack(int_plan, parameters, work, 1, rows, 0)
    transpose((flat(out), 0, out.shape[1]), (work, last_layer(int_plan, plan.VALUES), stride), out.shape[1], rows)
    set_float_mode(mode)
