"""Values and best actions of N observations, without PyTorch."""

from __future__ import annotations

import numpy as np

from hotloop.core.kernels import inline_kernel, kernel
from hotloop.core.types import Array
from hotloop.lanes.native import plan_kernels as plan
from hotloop.lanes.native.activation_kernels import activate
from hotloop.lanes.native.head_kernels import best_action, combine_streams, expected_values
from hotloop.lanes.native.matrix_kernels import multiply_vector, transpose
from hotloop.lanes.native.network_kernels import forward
from hotloop.lanes.native.unit_kernels import flat, index, real_vector, unit, vector, whole

NO_MASK = np.zeros((0, 0), np.bool_)
FEW = 3
"""Up to so many rows go one by one: a matrix product would fill one lane in sixteen."""


@inline_kernel
def _forward_row(numbers: Array, parameters: Array, work: Array, obs: Array, at: int) -> None:
    """Head outputs of the one observation at `obs[at:]`, densely at `HEAD_ONLINE`."""
    torso, head = numbers[plan.TORSO], numbers[plan.HEAD_ONLINE]
    for f in range(numbers[plan.OBS_SIZE]):
        work[numbers[plan.INPUT] + f] = obs[at + f]
    source = numbers[plan.INPUT]
    for layer in range(torso + numbers[plan.HEADS]):
        row = plan.TABLE + plan.ROW * layer
        fan_in, fan_out = numbers[row + plan.FAN_IN], numbers[row + plan.FAN_OUT]
        weight, bias = (parameters, numbers[row + plan.WEIGHT]), (parameters, numbers[row + plan.BIAS])
        target = numbers[plan.VALUES_EVEN] if layer % 2 == 0 else numbers[plan.VALUES_ODD]
        if layer >= torso:
            target = head + numbers[row + plan.FIRST_OUTPUT]
        multiply_vector((work, target), weight, (work, source), bias, fan_out, fan_in)
        if layer < torso:
            slopes = numbers[plan.SLOPES]
            activate(numbers[plan.ACTIVATION], work[target : target + fan_out], work[slopes : slopes + fan_out])
            source = target


@inline_kernel
def finish_values(numbers: Array, constants: Array, work: Array, stride: int, columns: int) -> int:
    """Offset of the values [A, columns], once the head outputs are there."""
    combine_streams(numbers, work, numbers[plan.HEAD_ONLINE], stride, columns)
    outputs = numbers[plan.HEAD_ONLINE] + numbers[plan.COMBINED] * stride
    if numbers[plan.ATOMS] == 1:
        return outputs
    q = numbers[plan.SCRATCH] + (numbers[plan.ATOMS] + 2) * stride
    expected_values(numbers, constants, work, outputs, stride, columns, q, numbers[plan.SCRATCH])
    return q


@unit(whole, real_vector, vector, vector, vector, index, vector)
def compute_values(
    numbers: Array, constants: Array, work: Array, parameters: Array, obs: Array, rows: int, out: Array
) -> None:
    """out [N * A], from obs [N * F]."""
    size, actions, stride = numbers[plan.OBS_SIZE], numbers[plan.ACTIONS], numbers[plan.COLUMN_STRIDE]
    if rows <= FEW:
        for b in range(rows):
            _forward_row(numbers, parameters, work, obs, b * size)
            q = finish_values(numbers, constants, work, 1, 1)
            for a in range(actions):
                out[b * actions + a] = work[q + a]
    else:
        transpose((work, numbers[plan.INPUT], stride), (obs, 0, size), rows, size)
        forward(numbers, parameters, work, rows, numbers[plan.HEAD_ONLINE], 0)
        q = finish_values(numbers, constants, work, stride, rows)
        transpose((out, 0, actions), (work, q, stride), actions, rows)


@inline_kernel
def _check_obs(numbers: Array, parameters: Array, obs: Array, masks: Array) -> None:
    """Kernels write where the plan says; more rows than planned would be somebody else's memory."""
    if parameters.size != numbers[plan.PARAMETERS]:
        raise ValueError("parameters do not fit the native plan: expected a vector of num_parameters")
    if obs.shape[0] > numbers[plan.ROWS] or obs.shape[1] != numbers[plan.OBS_SIZE]:
        raise ValueError("observations do not fit the native plan: expected at most `rows` rows of obs_size floats")
    if masks.size > 0 and masks.shape != (obs.shape[0], numbers[plan.ACTIONS]):
        raise ValueError("action mask does not fit the observations: expected [N, num_actions]")


@kernel
def values(numbers: Array, constants: Array, work: Array, parameters: Array, obs: Array) -> Array:
    """Q [N, A] of obs [N, F]."""
    rows, actions = obs.shape[0], numbers[plan.ACTIONS]
    _check_obs(numbers, parameters, obs, NO_MASK)
    out = np.empty((rows, actions), np.float32)
    compute_values(numbers, constants, work, parameters, flat(obs), rows, flat(out))
    return out


@kernel
def greedy(numbers: Array, constants: Array, work: Array, parameters: Array, obs: Array, masks: Array) -> Array:
    """The best allowed action [N] of each row; `masks` [N, A] or empty."""
    rows, actions = obs.shape[0], numbers[plan.ACTIONS]
    _check_obs(numbers, parameters, obs, masks)
    out, best = np.empty(rows * actions, np.float32), np.empty(rows, np.int64)
    compute_values(numbers, constants, work, parameters, flat(obs), rows, out)
    for b in range(rows):
        best[b] = best_action(out, b * actions, 1, actions, flat(masks), b)
    return best
