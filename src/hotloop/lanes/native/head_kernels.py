"""From head outputs to values, on feature-major matrices [outputs, rows]: loops over rows innermost, so they vectorise."""

from __future__ import annotations

import numpy as np

from hotloop.core.kernels import inline_kernel
from hotloop.lanes.native import plan_kernels as plan
from hotloop.lanes.native.activation_kernels import exp

ACTIONS, ATOMS, COMBINED = plan.ACTIONS, plan.ATOMS, plan.COMBINED
V_MIN, V_MAX = plan.V_MIN, plan.V_MAX
Float = np.float32
LOWEST = Float(-np.inf)


@inline_kernel
def _add(target, source, factor):
    for i in range(target.size):
        target[i] += factor * source[i]


@inline_kernel
def combine_streams(numbers, work, head, stride, columns):
    """Dueling: advantage + value - mean advantage, in place of the advantages (Wang et al. 2016)."""
    actions, atoms, shared = numbers[ACTIONS], numbers[ATOMS], Float(-1.0) / Float(numbers[ACTIONS])
    if numbers[COMBINED] > 0:
        for z in range(atoms):
            value = work[head + z * stride : head + z * stride + columns]
            for a in range(actions):
                _add(value, _line(work, head, (1 + a) * atoms + z, stride, columns), shared)
            for a in range(actions):
                _add(_line(work, head, (1 + a) * atoms + z, stride, columns), value, Float(1.0))


@inline_kernel
def split_gradient(numbers, work, head, stride, columns):
    """The reverse: value gets the sum over actions, each advantage its own less the mean."""
    actions, atoms, shared = numbers[ACTIONS], numbers[ATOMS], Float(-1.0) / Float(numbers[ACTIONS])
    if numbers[COMBINED] > 0:
        for z in range(atoms):
            value = _line(work, head, z, stride, columns)
            value[:] = Float(0.0)
            for a in range(actions):
                _add(value, _line(work, head, (1 + a) * atoms + z, stride, columns), Float(1.0))
            for a in range(actions):
                _add(_line(work, head, (1 + a) * atoms + z, stride, columns), value, shared)


@inline_kernel
def _line(work, start, index, stride, columns):
    return work[start + index * stride : start + index * stride + columns]


@inline_kernel
def _raise_to(top, source):
    for i in range(top.size):
        top[i] = top[i] if source[i] < top[i] else source[i]


@inline_kernel
def _exp_below(target, source, top):
    for i in range(target.size):
        target[i] = exp(source[i] - top[i])


@inline_kernel
def _divide(target, source):
    for i in range(target.size):
        target[i] /= source[i]


@inline_kernel
def softmax(work, logits, stride, atoms, columns, out, top, total):
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


@inline_kernel
def expected_values(numbers, constants, work, logits, stride, columns, q, scratch):
    """q [A, columns] = sum_i p_i z_i from logits [A * Z, columns]; scratch [Z + 2, columns]."""
    atoms, v_min = numbers[ATOMS], constants[V_MIN]
    delta = (constants[V_MAX] - v_min) / (atoms - 1)
    top, total = scratch + atoms * stride, scratch + (atoms + 1) * stride
    for a in range(numbers[ACTIONS]):
        softmax(work, logits + a * atoms * stride, stride, atoms, columns, scratch, top, total)
        mean = _line(work, q, a, stride, columns)
        mean[:] = Float(0.0)
        for z in range(atoms):
            _add(mean, _line(work, scratch, z, stride, columns), Float(v_min + z * delta))
        _divide(mean, work[total : total + columns])


@inline_kernel
def best_action(work, q, stride, actions, column, masks, mask_row):
    """argmax over allowed actions; NaN counts as largest, so that it reaches the loss. `masks` [rows, A] or empty."""
    best, best_value = 0, LOWEST
    for a in range(actions):
        value = work[q + a * stride + column]
        if masks.size > 0 and not masks[mask_row, a]:
            continue
        if value > best_value or value != value:
            best, best_value = a, value
    return best
