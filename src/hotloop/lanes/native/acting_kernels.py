"""Values and best actions of N observations, without PyTorch."""

from __future__ import annotations

import numpy as np

from hotloop.core.kernels import inline_kernel, kernel
from hotloop.lanes.native import plan_kernels as plan
from hotloop.lanes.native.activation_kernels import activate
from hotloop.lanes.native.head_kernels import best_action, combine_streams, expected_values
from hotloop.lanes.native.matrix_kernels import multiply_vector, transpose
from hotloop.lanes.native.network_kernels import forward
from hotloop.lanes.native.unit_kernels import index, real_vector, unit, vector, whole

TORSO, HEADS, ACTIVATION, ACTIONS, ATOMS = plan.TORSO, plan.HEADS, plan.ACTIVATION, plan.ACTIONS, plan.ATOMS
OBS_SIZE, COMBINED, COLUMN_STRIDE, INPUT = plan.OBS_SIZE, plan.COMBINED, plan.COLUMN_STRIDE, plan.INPUT
VALUES_EVEN, VALUES_ODD, SLOPES = plan.VALUES_EVEN, plan.VALUES_ODD, plan.SLOPES
HEAD_ONLINE, SCRATCH = plan.HEAD_ONLINE, plan.SCRATCH
TABLE, ROW, FAN_IN, FAN_OUT, WEIGHT, BIAS = plan.TABLE, plan.ROW, plan.FAN_IN, plan.FAN_OUT, plan.WEIGHT, plan.BIAS
FIRST_OUTPUT = plan.FIRST_OUTPUT
FEW = 3
"""Up to so many rows go one by one: a matrix product would fill one lane in sixteen."""


@inline_kernel
def _forward_row(numbers, parameters, work, obs, at):
    """Head outputs of the one observation at `obs[at:]`, densely at `HEAD_ONLINE`."""
    torso, head = numbers[TORSO], numbers[HEAD_ONLINE]
    for f in range(numbers[OBS_SIZE]):
        work[numbers[INPUT] + f] = obs[at + f]
    source = numbers[INPUT]
    for layer in range(torso + numbers[HEADS]):
        row = TABLE + ROW * layer
        fan_in, fan_out, weight, bias = numbers[row], numbers[row + FAN_OUT], numbers[row + WEIGHT], numbers[row + BIAS]
        target = numbers[VALUES_EVEN] if layer % 2 == 0 else numbers[VALUES_ODD]
        if layer >= torso:
            target = head + numbers[row + FIRST_OUTPUT]
        multiply_vector(work, target, parameters, weight, work, source, parameters, bias, fan_out, fan_in)
        if layer < torso:
            slopes = numbers[SLOPES]
            activate(numbers[ACTIVATION], work[target : target + fan_out], work[slopes : slopes + fan_out])
            source = target


@inline_kernel
def _finish_values(numbers, constants, work, stride, columns):
    """Offset of the values [A, columns], once the head outputs are there."""
    combine_streams(numbers, work, numbers[HEAD_ONLINE], stride, columns)
    outputs = numbers[HEAD_ONLINE] + numbers[COMBINED] * stride
    if numbers[ATOMS] == 1:
        return outputs
    q = numbers[SCRATCH] + (numbers[ATOMS] + 2) * stride
    expected_values(numbers, constants, work, outputs, stride, columns, q, numbers[SCRATCH])
    return q


@unit(whole, real_vector, vector, vector, vector, index, vector)
def compute_values(numbers, constants, work, parameters, obs, rows, out):
    """out [N * A], from obs [N * F]."""
    size, actions, stride = numbers[OBS_SIZE], numbers[ACTIONS], numbers[COLUMN_STRIDE]
    if rows <= FEW:
        for b in range(rows):
            _forward_row(numbers, parameters, work, obs, b * size)
            q = _finish_values(numbers, constants, work, 1, 1)
            for a in range(actions):
                out[b * actions + a] = work[q + a]
    else:
        transpose(work, numbers[INPUT], stride, obs, 0, size, rows, size)
        forward(numbers, parameters, work, rows, numbers[HEAD_ONLINE], 0)
        q = _finish_values(numbers, constants, work, stride, rows)
        transpose(out, 0, actions, work, q, stride, actions, rows)


@kernel
def values(numbers, constants, work, parameters, obs):
    """Q [N, A] of obs [N, F]."""
    rows, actions = obs.shape[0], numbers[ACTIONS]
    out = np.empty(rows * actions, np.float32)
    compute_values(numbers, constants, work, parameters, obs.reshape(-1), rows, out)
    return out.reshape(rows, actions)


@kernel
def greedy(numbers, constants, work, parameters, obs, masks):
    """The best allowed action [N] of each row; `masks` [N, A] or empty."""
    rows, actions = obs.shape[0], numbers[ACTIONS]
    out, best = np.empty(rows * actions, np.float32), np.empty(rows, np.int64)
    compute_values(numbers, constants, work, parameters, obs.reshape(-1), rows, out)
    for b in range(rows):
        best[b] = best_action(out, b * actions, 1, actions, 0, masks, b)
    return best
