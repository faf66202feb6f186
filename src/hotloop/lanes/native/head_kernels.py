"""From head outputs to values, on feature-major matrices [outputs, rows]: inner loops run along rows and vectorise."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.kernels import inline_kernel
from hotloop.core.types import Array
from hotloop.lanes.native import plan_kernels as plan
from hotloop.lanes.native.activation_kernels import exp
from hotloop.lanes.native.unit_kernels import index, real_vector, unit, vector, whole

Float: Any = np.float32
LOWEST = Float(-np.inf)


@inline_kernel
def _add(target: Array, source: Array, factor: float) -> None:
    for i in range(target.size):
        target[i] += factor * source[i]


@unit(whole, vector, index, index, index)
def combine_streams(numbers: Array, work: Array, head: int, stride: int, columns: int) -> None:
    """Dueling: advantage + value - mean advantage, in place of the advantages (Wang et al. 2016)."""
    actions, atoms, shared = numbers[plan.ACTIONS], numbers[plan.ATOMS], Float(-1.0) / Float(numbers[plan.ACTIONS])
    if numbers[plan.COMBINED] > 0:
        for z in range(atoms):
            value = work[head + z * stride : head + z * stride + columns]
            for a in range(actions):
                _add(value, _line(work, head, (1 + a) * atoms + z, stride, columns), shared)
            for a in range(actions):
                _add(_line(work, head, (1 + a) * atoms + z, stride, columns), value, Float(1.0))


@unit(whole, vector, index, index, index)
def split_gradient(numbers: Array, work: Array, head: int, stride: int, columns: int) -> None:
    """The reverse: value gets the sum over actions, each advantage its own less the mean."""
    actions, atoms, shared = numbers[plan.ACTIONS], numbers[plan.ATOMS], Float(-1.0) / Float(numbers[plan.ACTIONS])
    if numbers[plan.COMBINED] > 0:
        for z in range(atoms):
            value = _line(work, head, z, stride, columns)
            value[:] = Float(0.0)
            for a in range(actions):
                _add(value, _line(work, head, (1 + a) * atoms + z, stride, columns), Float(1.0))
            for a in range(actions):
                _add(_line(work, head, (1 + a) * atoms + z, stride, columns), value, shared)


@inline_kernel
def _line(work: Array, start: int, index: int, stride: int, columns: int) -> Array:
    return work[start + index * stride : start + index * stride + columns]


@inline_kernel
def _raise_to(top: Array, source: Array) -> None:
    for i in range(top.size):
        top[i] = top[i] if source[i] < top[i] else source[i]


@inline_kernel
def _exp_below(target: Array, source: Array, top: Array) -> None:
    for i in range(target.size):
        target[i] = exp(source[i] - top[i])


@inline_kernel
def _divide(target: Array, source: Array) -> None:
    for i in range(target.size):
        target[i] /= source[i]


@unit(vector, index, index, index, index, index, index, index)
def softmax(work: Array, logits: int, stride: int, atoms: int, columns: int, out: int, top: int, total: int) -> None:
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


@unit(whole, real_vector, vector, index, index, index, index, index)
def expected_values(
    numbers: Array, constants: Array, work: Array, logits: int, stride: int, columns: int, q: int, scratch: int
) -> None:
    """q [A, columns] = sum_i p_i z_i from logits [A * Z, columns]; scratch [Z + 2, columns]."""
    atoms, v_min = numbers[plan.ATOMS], constants[plan.V_MIN]
    delta = (constants[plan.V_MAX] - v_min) / (atoms - 1)
    top, total = scratch + atoms * stride, scratch + (atoms + 1) * stride
    for a in range(numbers[plan.ACTIONS]):
        softmax(work, logits + a * atoms * stride, stride, atoms, columns, scratch, top, total)
        mean = _line(work, q, a, stride, columns)
        mean[:] = Float(0.0)
        for z in range(atoms):
            _add(mean, _line(work, scratch, z, stride, columns), Float(v_min + z * delta))
        _divide(mean, work[total : total + columns])


@inline_kernel
def best_action(work: Array, q: int, stride: int, actions: int, masks: Array, row: int) -> int:
    """Of the values at q, q + stride, ... the largest allowed; `masks` flat [rows * A] or empty.

    NaN counts as largest, so that it reaches the loss.
    """
    best, best_value = 0, LOWEST
    for a in range(actions):
        value = work[q + a * stride]
        if masks.size > 0 and not masks[row * actions + a]:
            continue
        if value > best_value or value != value:
            best, best_value = a, value
    return best
