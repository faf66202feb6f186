"""Loss rows, TD errors and the gradient by the head outputs, for scalar values and for distributions (C51)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types

from hotloop.core.kernels import inline_kernel
from hotloop.core.types import Array
from hotloop.lanes.native import plan_kernels as plan
from hotloop.lanes.native.matrix_kernels import transpose
from hotloop.lanes.native.network_kernels import best_action, combine_streams, expected_values, softmax, split_gradient
from hotloop.lanes.native.unit_kernels import index, mask_vector, real_vector, unit, vector, whole

Float: Any = np.float32


class Rows(NamedTuple):
    """Of all k batches, flat."""

    action: Array
    reward: Array
    discount: Array
    weight: Array
    mask: Array  # of the next actions, or empty


rows_type = types.NamedTuple((whole, vector, vector, vector, mask_vector), Rows)


@unit(whole, real_vector, vector, rows_type, index, vector, real_vector)
def loss_and_head_gradient(
    int_plan: Array, constants: Array, work: Array, batch: Rows, start: int, td_error: Array, means: Array
) -> None:
    """From both networks' head outputs: TD errors, `means` (loss, q), and `HEAD_ROWS` [B, outputs] for `backward`."""
    rows, stride, outputs = int_plan[plan.ROWS], int_plan[plan.COLUMN_STRIDE], int_plan[plan.OUTPUTS]
    combine_streams(int_plan, work, int_plan[plan.HEAD_ONLINE], stride, 2 * rows if int_plan[plan.DOUBLE] else rows)
    combine_streams(int_plan, work, int_plan[plan.HEAD_TARGET], stride, rows)
    gradient = int_plan[plan.HEAD_GRADIENT]
    work[gradient : gradient + outputs * stride] = Float(0.0)
    if int_plan[plan.ATOMS] == 1:
        _scalar_rows(int_plan, work, batch, start, td_error, means)
    else:
        categorical_rows(int_plan, constants, work, batch, start, td_error, means)
    split_gradient(int_plan, work, gradient, stride, rows)
    transpose((work, int_plan[plan.HEAD_ROWS], int_plan[plan.HEAD_STRIDE]), (work, gradient, stride), outputs, rows)


@inline_kernel
def _scalar_rows(int_plan: Array, work: Array, batch: Rows, start: int, td_error: Array, means: Array) -> None:
    action, reward, discount, weight, masks = batch
    rows, stride, actions = int_plan[plan.ROWS], int_plan[plan.COLUMN_STRIDE], int_plan[plan.ACTIONS]
    first = int_plan[plan.COMBINED] * stride
    online, target = int_plan[plan.HEAD_ONLINE] + first, int_plan[plan.HEAD_TARGET] + first
    select = online + rows if int_plan[plan.DOUBLE] else target
    loss_sum, q_sum = 0.0, 0.0
    for b in range(rows):
        row = start + b
        best = best_action(work, select + b, stride, actions, masks, row)
        taken = action[row] * stride + b
        error = work[online + taken] - (reward[row] + discount[row] * work[target + best * stride + b])
        row_loss, slope = _row_loss(error, int_plan[plan.HUBER])
        td_error[row] = abs(error)
        loss_sum += weight[row] * row_loss
        q_sum += work[online + taken]
        work[int_plan[plan.HEAD_GRADIENT] + first + taken] = weight[row] / Float(rows) * slope
    means[0], means[1] = loss_sum / rows, q_sum / rows


@inline_kernel
def _row_loss(error: float, huber: int) -> tuple[float, float]:
    """Loss and its slope."""
    if not huber:
        return error * error, Float(2.0) * error
    if error > Float(1.0):
        return error - Float(0.5), Float(1.0)
    if error < Float(-1.0):
        return -error - Float(0.5), Float(-1.0)
    return Float(0.5) * error * error, error


@unit(whole, real_vector, vector, rows_type, index, vector, real_vector)
def categorical_rows(
    int_plan: Array, constants: Array, work: Array, batch: Rows, start: int, td_error: Array, means: Array
) -> None:
    rows, stride, atoms = int_plan[plan.ROWS], int_plan[plan.COLUMN_STRIDE], int_plan[plan.ATOMS]
    first = int_plan[plan.COMBINED] * stride
    online, target = int_plan[plan.HEAD_ONLINE] + first, int_plan[plan.HEAD_TARGET] + first
    next_p = int_plan[plan.SCRATCH]
    p, projected, q = next_p + atoms * stride, next_p + 2 * atoms * stride, next_p + 3 * atoms * stride
    top, total = q + int_plan[plan.ACTIONS] * stride, q + (int_plan[plan.ACTIONS] + 1) * stride
    select = online + rows if int_plan[plan.DOUBLE] else target
    expected_values(int_plan, constants, work, select, stride, rows, q, next_p)
    best = np.empty(rows, np.int64)
    for b in range(rows):
        best[b] = best_action(work, q + b, stride, int_plan[plan.ACTIONS], batch.mask, start + b)
    _take_atoms(int_plan, work, target, best, 0, next_p)
    softmax(work, next_p, stride, atoms, rows, next_p, top, total)
    work[projected : projected + atoms * stride] = Float(0.0)
    for b in range(rows):
        move = (batch.reward[start + b], batch.discount[start + b])
        _project_row(int_plan, constants, work, move, next_p + b, projected + b, work[total + b])
    _take_atoms(int_plan, work, online, batch.action, start, p)
    softmax(work, p, stride, atoms, rows, p, top, total)
    _cross_entropy(int_plan, constants, work, batch, start, td_error, (p, projected, top, total), means)


@inline_kernel
def _take_atoms(int_plan: Array, work: Array, source: int, action: Array, start: int, out: int) -> None:
    """out [Z, B] = the logits of one action per row."""
    stride, atoms = int_plan[plan.COLUMN_STRIDE], int_plan[plan.ATOMS]
    for b in range(int_plan[plan.ROWS]):
        place = source + action[start + b] * atoms * stride + b
        for z in range(atoms):
            work[out + z * stride + b] = work[place + z * stride]


@inline_kernel
def _project_row(
    int_plan: Array, constants: Array, work: Array, move: tuple[float, float], next_p: int, projected: int, total: float
) -> None:
    """Mass at r + discount * z_j, clipped, split between the two neighboring atoms (Bellemare et al. 2017)."""
    stride, atoms = int_plan[plan.COLUMN_STRIDE], int_plan[plan.ATOMS]
    v_min, v_max = constants[plan.V_MIN], constants[plan.V_MAX]
    delta = (v_max - v_min) / (atoms - 1)
    reward, discount = move
    share, per_delta = Float(1.0) / total, 1.0 / delta
    for z in range(atoms):
        mass = work[next_p + z * stride] * share
        position = (min(max(reward + discount * (v_min + z * delta), v_min), v_max) - v_min) * per_delta
        low = min(max(int(position), 0), atoms - 2)  # both bounds: a NaN becomes any integer
        upper = Float(position - low)
        work[projected + low * stride] += mass * (Float(1.0) - upper)
        work[projected + (low + 1) * stride] += mass * upper


@inline_kernel
def _cross_entropy(
    int_plan: Array,
    constants: Array,
    work: Array,
    batch: Rows,
    start: int,
    td_error: Array,
    offsets: tuple[int, int, int, int],
    means: Array,
) -> None:
    """Rows -sum_i m_i log p_i, and the gradient p - m by the logits of the action taken."""
    rows, stride, atoms = int_plan[plan.ROWS], int_plan[plan.COLUMN_STRIDE], int_plan[plan.ATOMS]
    online, gradient = int_plan[plan.HEAD_ONLINE], int_plan[plan.HEAD_GRADIENT]
    v_min, delta = constants[plan.V_MIN], (constants[plan.V_MAX] - constants[plan.V_MIN]) / (atoms - 1)
    p, projected, top, total = offsets
    loss_sum, q_sum = 0.0, 0.0
    for b in range(rows):
        taken = (int_plan[plan.COMBINED] + batch.action[start + b] * atoms) * stride + b
        weight, log_total = batch.weight[start + b], work[top + b] + Float(math.log(work[total + b]))
        row_loss, scale, per_total = Float(0.0), weight / Float(rows), Float(1.0) / work[total + b]
        for z in range(atoms):
            mass, share = work[projected + z * stride + b], work[p + z * stride + b] * per_total
            row_loss += mass * (log_total - work[online + taken + z * stride])
            q_sum += share * (v_min + z * delta)
            work[gradient + taken + z * stride] = (share - mass) * scale
        td_error[start + b] = row_loss
        loss_sum += weight * row_loss
    means[0], means[1] = loss_sum / rows, q_sum / rows
