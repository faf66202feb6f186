"""Loss rows, TD errors and the gradient by the head outputs, for scalar values and for distributions (C51)."""

from __future__ import annotations

import math

import numpy as np

from hotloop.core.kernels import inline_kernel
from hotloop.lanes.native import plan_kernels as plan
from hotloop.lanes.native.head_kernels import best_action, combine_streams, expected_values, softmax, split_gradient
from hotloop.lanes.native.matrix_kernels import transpose
from hotloop.lanes.native.unit_kernels import mask_matrix, real_vector, unit, vector, whole

ACTIONS, ATOMS, COMBINED, OUTPUTS = plan.ACTIONS, plan.ATOMS, plan.COMBINED, plan.OUTPUTS
ROWS, COLUMN_STRIDE, DOUBLE, HUBER = plan.ROWS, plan.COLUMN_STRIDE, plan.DOUBLE, plan.HUBER
HEAD_ONLINE, HEAD_TARGET, HEAD_GRADIENT = plan.HEAD_ONLINE, plan.HEAD_TARGET, plan.HEAD_GRADIENT
HEAD_ROWS, HEAD_STRIDE, SCRATCH = plan.HEAD_ROWS, plan.HEAD_STRIDE, plan.SCRATCH
V_MIN, V_MAX = plan.V_MIN, plan.V_MAX
Float = np.float32


@unit(whole, real_vector, vector, whole, vector, vector, vector, mask_matrix, vector, real_vector)
def loss_and_head_gradient(numbers, constants, work, action, reward, discount, weight, masks, td_error, means):
    """From both networks' head outputs: TD errors, `means` (loss, q), and `HEAD_ROWS` [B, outputs] for `backward`."""
    rows, stride, outputs = numbers[ROWS], numbers[COLUMN_STRIDE], numbers[OUTPUTS]
    columns = 2 * rows if numbers[DOUBLE] else rows
    combine_streams(numbers, work, numbers[HEAD_ONLINE], stride, columns)
    combine_streams(numbers, work, numbers[HEAD_TARGET], stride, rows)
    gradient = numbers[HEAD_GRADIENT]
    work[gradient : gradient + outputs * stride] = Float(0.0)
    if numbers[ATOMS] == 1:
        loss, q = _scalar_rows(numbers, work, action, reward, discount, weight, masks, td_error)
    else:
        loss, q = _categorical_rows(numbers, constants, work, action, reward, discount, weight, masks, td_error)
    split_gradient(numbers, work, gradient, stride, rows)
    transpose(work, numbers[HEAD_ROWS], numbers[HEAD_STRIDE], work, gradient, stride, outputs, rows)
    means[0], means[1] = loss / rows, q / rows


@inline_kernel
def _scalar_rows(numbers, work, action, reward, discount, weight, masks, td_error):
    rows, stride, actions, huber = numbers[ROWS], numbers[COLUMN_STRIDE], numbers[ACTIONS], numbers[HUBER]
    first = numbers[COMBINED] * stride
    online, target, gradient = numbers[HEAD_ONLINE] + first, numbers[HEAD_TARGET] + first, numbers[HEAD_GRADIENT] + first
    select = online + rows if numbers[DOUBLE] else target
    share = Float(1.0) / Float(rows)
    loss_sum, q_sum = 0.0, 0.0
    for b in range(rows):
        best = best_action(work, select, stride, actions, b, masks, b)
        y = reward[b] + discount[b] * work[target + best * stride + b]
        taken = action[b] * stride + b
        q = work[online + taken]
        error = q - y
        row_loss, slope = _row_loss(error, huber)
        td_error[b] = abs(error)
        loss_sum += weight[b] * row_loss
        q_sum += q
        work[gradient + taken] = weight[b] * share * slope
    return loss_sum, q_sum


@inline_kernel
def _row_loss(error, huber):
    if not huber:
        return error * error, Float(2.0) * error
    if error > Float(1.0):
        return error - Float(0.5), Float(1.0)
    if error < Float(-1.0):
        return -error - Float(0.5), Float(-1.0)
    return Float(0.5) * error * error, error


@inline_kernel
def _take_atoms(numbers, work, source, columns_at, action, out):
    """out [Z, B] = the logits of one action per row."""
    stride, atoms = numbers[COLUMN_STRIDE], numbers[ATOMS]
    for b in range(numbers[ROWS]):
        start = source + action[b] * atoms * stride + columns_at + b
        for z in range(atoms):
            work[out + z * stride + b] = work[start + z * stride]


@inline_kernel
def _categorical_rows(numbers, constants, work, action, reward, discount, weight, masks, td_error):
    rows, stride, atoms = numbers[ROWS], numbers[COLUMN_STRIDE], numbers[ATOMS]
    first = numbers[COMBINED] * stride
    online, target = numbers[HEAD_ONLINE] + first, numbers[HEAD_TARGET] + first
    next_p = numbers[SCRATCH]
    p, projected = next_p + atoms * stride, next_p + 2 * atoms * stride
    q = next_p + 3 * atoms * stride
    top, total = q + numbers[ACTIONS] * stride, q + (numbers[ACTIONS] + 1) * stride
    select = online + rows if numbers[DOUBLE] else target
    expected_values(numbers, constants, work, select, stride, rows, q, next_p)
    best = np.empty(rows, np.int64)
    for b in range(rows):
        best[b] = best_action(work, q, stride, numbers[ACTIONS], b, masks, b)
    _take_atoms(numbers, work, target, 0, best, next_p)
    softmax(work, next_p, stride, atoms, rows, next_p, top, total)
    work[projected : projected + atoms * stride] = Float(0.0)
    for b in range(rows):
        _project_row(numbers, constants, work, reward[b], discount[b], next_p + b, projected + b, work[total + b])
    _take_atoms(numbers, work, online, 0, action, p)
    softmax(work, p, stride, atoms, rows, p, top, total)
    return _cross_entropy(numbers, constants, work, action, weight, td_error, p, projected, top, total)


@inline_kernel
def _project_row(numbers, constants, work, reward, discount, next_p, projected, total):
    """Mass at r + discount * z_j, clipped, split between the two neighbouring atoms (Bellemare et al. 2017)."""
    stride, atoms, v_min, v_max = numbers[COLUMN_STRIDE], numbers[ATOMS], constants[V_MIN], constants[V_MAX]
    delta = (v_max - v_min) / (atoms - 1)
    for z in range(atoms):
        mass = work[next_p + z * stride] / total
        moved = min(max(reward + discount * (v_min + z * delta), v_min), v_max)
        place = (moved - v_min) / delta
        low = min(int(place), atoms - 2)
        upper = Float(place - low)
        work[projected + low * stride] += mass * (Float(1.0) - upper)
        work[projected + (low + 1) * stride] += mass * upper


@inline_kernel
def _cross_entropy(numbers, constants, work, action, weight, td_error, p, projected, top, total):
    """Rows -sum_i m_i log p_i, and the gradient p - m by the logits of the action taken."""
    rows, stride, atoms = numbers[ROWS], numbers[COLUMN_STRIDE], numbers[ATOMS]
    online, gradient = numbers[HEAD_ONLINE], numbers[HEAD_GRADIENT]
    v_min, delta = constants[V_MIN], (constants[V_MAX] - constants[V_MIN]) / (atoms - 1)
    loss_sum, q_sum = 0.0, 0.0
    for b in range(rows):
        taken = (numbers[COMBINED] + action[b] * atoms) * stride + b
        log_total = work[top + b] + Float(math.log(work[total + b]))
        row_loss, q, scale = Float(0.0), 0.0, weight[b] / Float(rows)
        for z in range(atoms):
            mass, share = work[projected + z * stride + b], work[p + z * stride + b] / work[total + b]
            row_loss += mass * (log_total - work[online + taken + z * stride])
            q += share * (v_min + z * delta)
            work[gradient + taken + z * stride] = (share - mass) * scale
        td_error[b] = row_loss
        loss_sum += weight[b] * row_loss
        q_sum += q
    return loss_sum, q_sum
