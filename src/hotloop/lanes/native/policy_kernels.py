"""All epochs of a PPO or A2C update in one call: gather, forward, loss, backward, clipping, Adam.

Both networks of an actor-critic go forward and backward by the kernels of any multilayer network.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hotloop.core.kernels import inline_kernel, kernel
from hotloop.core.types import Array
from hotloop.lanes.native import plan_kernels as plan
from hotloop.lanes.native import policy_plan_kernels as policy
from hotloop.lanes.native.matrix_kernels import sum_of_squares, transpose
from hotloop.lanes.native.network_kernels import backward, forward
from hotloop.lanes.native.policy_loss_kernels import (
    descend_choices,
    descend_numbers,
    log_softmax_rows,
    measure_choices,
    measure_continuous,
    policy_rows,
    value_rows,
)
from hotloop.lanes.native.unit_kernels import flat
from hotloop.lanes.native.update_kernels import optimize
from hotloop.lanes.native.vector_kernels import FLUSH, float_mode, set_float_mode
from hotloop.maths.action_kernels import draw_actions


class Networks(NamedTuple):
    """Plan and workspace of the policy's network and of the value's; when shared, the same twice."""

    numbers: Array
    work: Array
    value_numbers: Array
    value_work: Array


class KernelRollout(NamedTuple):
    """Flat."""

    outputs: Array
    action: Array
    values: Array
    returns: Array
    advantage: Array
    weight: Array


Old = tuple[Array, Array, Array, Array]
"""The policy that acted: log p and p of its choices in all rows [M * O], its log stds [C]; and numbers 0 .. M-1."""
Scratch = tuple[Array, ...]
"""Of one minibatch: log p, p, entropies, the entropy's slopes by mean and log std, `measures`, `slopes`."""


@inline_kernel
def networks_forward(int_plan: Array, networks: Networks, parameters: Array, obs: Array, rows: int, keep: int) -> None:
    """Head outputs of obs [rows * F] in both workspaces."""
    numbers, work, value_numbers, value_work = networks
    size, end = numbers[plan.OBS_SIZE], int_plan[policy.POLICY_PARAMETERS]
    transpose((work, numbers[plan.INPUT], numbers[plan.COLUMN_STRIDE]), (obs, 0, size), rows, size)
    forward(numbers, parameters[:end], work, rows, numbers[plan.HEAD_ONLINE], keep)
    if not int_plan[policy.SHARED]:
        stride = value_numbers[plan.COLUMN_STRIDE]
        transpose((value_work, value_numbers[plan.INPUT], stride), (obs, 0, size), rows, size)
        own = parameters[end : end + int_plan[policy.VALUE_PARAMETERS]]
        forward(value_numbers, own, value_work, rows, value_numbers[plan.HEAD_ONLINE], keep)


@inline_kernel
def networks_backward(int_plan: Array, networks: Networks, parameters: Array, gradient: Array, obs: Array) -> None:
    """Gradients of all but the log stds, from those by the head outputs (`HEAD_ROWS`) in both workspaces."""
    numbers, work, value_numbers, value_work = networks
    end = int_plan[policy.POLICY_PARAMETERS]
    backward(numbers, parameters[:end], work, gradient[:end], obs, 0)
    if not int_plan[policy.SHARED]:
        last = end + int_plan[policy.VALUE_PARAMETERS]
        backward(value_numbers, parameters[end:last], value_work, gradient[end:last], obs, 0)


@inline_kernel
def _compute_rows(
    int_plan: Array, networks: Networks, parameters: Array, obs: Array, outputs: Array, values: Array
) -> None:
    """Every row goes through the tiles, even a single one: a row's numbers then do not depend on how many there are."""
    numbers, work, value_numbers, value_work = networks
    rows, count, stride = obs.shape[0], int_plan[policy.OUTPUTS], numbers[plan.COLUMN_STRIDE]
    if rows > numbers[plan.ROWS] or obs.shape[1] != numbers[plan.OBS_SIZE]:
        raise ValueError("observations do not fit the native plan: expected at most `rows` rows of obs_size floats")
    if outputs.shape != (rows, count) or values.size != rows or parameters.size != int_plan[policy.PARAMETERS]:
        raise ValueError("arrays do not fit the native plan: expected outputs [N, O], values [N] and all parameters")
    networks_forward(int_plan, networks, parameters, flat(obs), rows, 0)
    head = numbers[plan.HEAD_ONLINE] + int_plan[policy.SHARED] * stride
    transpose((flat(outputs), 0, count), (work, head, stride), count, rows)
    for b in range(rows):
        values[b] = value_work[value_numbers[plan.HEAD_ONLINE] + b]


@kernel
def run_networks(
    int_plan: Array,
    numbers: Array,
    work: Array,
    value_numbers: Array,
    value_work: Array,
    parameters: Array,
    obs: Array,
    outputs: Array,
    values: Array,
) -> None:
    """outputs [N, O] and values [N] of obs [N, F]."""
    _compute_rows(int_plan, Networks(numbers, work, value_numbers, value_work), parameters, obs, outputs, values)


@kernel
def run_and_draw(
    int_plan: Array,
    numbers: Array,
    work: Array,
    value_numbers: Array,
    value_work: Array,
    parameters: Array,
    obs: Array,
    outputs: Array,
    values: Array,
    state: Array,
    mask: Array,
    counts: Array,
    action: Array,
) -> None:
    """The same, and actions [N, W] drawn from the outputs."""
    _compute_rows(int_plan, Networks(numbers, work, value_numbers, value_work), parameters, obs, outputs, values)
    draw_actions(state, outputs, parameters[parameters.size - int_plan[policy.CONTINUOUS] :], mask, counts, action)


@inline_kernel
def _loss(
    int_plan: Array, float_plan: Array, networks: Networks, parameters: Array, gradient: Array, rollout: KernelRollout,
    masks: Array,
    chosen: Array, old: Old, scratch: Scratch, sums: Array,
) -> None:  # fmt: skip
    """From both networks' head outputs: sums of all terms, and `HEAD_ROWS` of both for `backward`."""
    (numbers, work, value_numbers, value_work), (old_log_p, old_p, old_log_std, _) = networks, old
    outputs, action, values, returns, advantage, weight = rollout
    log_p, p, entropies, by_mean, by_log_std, measures, slopes = scratch
    stride, first = numbers[plan.COLUMN_STRIDE], int_plan[policy.SHARED]
    last = parameters.size - int_plan[policy.CONTINUOUS]
    head, log_std = numbers[plan.HEAD_ONLINE] + first * stride, parameters[last:]
    to, step = numbers[plan.HEAD_ROWS] + first, numbers[plan.HEAD_STRIDE]
    log_softmax_rows(int_plan, work, head, 1, stride, masks, chosen, log_p, p)
    measure_choices(int_plan, action, chosen, log_p, p, old_log_p, old_p, measures, entropies)
    measure_continuous(
        int_plan, work, head, stride, outputs, action, chosen, old_log_std, log_std, measures, by_mean, by_log_std
    )
    policy_rows(int_plan, float_plan, advantage, weight, chosen, measures, slopes, sums)
    descend_choices(int_plan, action, chosen, log_p, p, entropies, slopes, work, to, step)
    descend_numbers(
        int_plan, work, head, stride, action, chosen, log_std, slopes, by_mean, by_log_std, to, step, gradient[last:]
    )
    value_head, value_to = value_numbers[plan.HEAD_ONLINE], value_numbers[plan.HEAD_ROWS]
    value_step = value_numbers[plan.HEAD_STRIDE]
    value_rows(float_plan, values, returns, weight, chosen, value_work, value_head, value_to, value_step, sums)


@inline_kernel
def _minibatch(
    int_plan: Array, float_plan: Array, networks: Networks, parameters: Array, gradient: Array, seen: Array,
    gathered: Array,
    rollout: KernelRollout, masks: Array, chosen: Array, old: Old, scratch: Scratch, sums: Array,
) -> None:  # fmt: skip
    """Gradient of one minibatch, and its means into `sums`."""
    for i in range(sums.size):
        sums[i] = 0.0
    size = networks.numbers[plan.OBS_SIZE]
    for b in range(chosen.size):
        for f in range(size):
            gathered[b * size + f] = seen[chosen[b] * size + f]
    networks_forward(int_plan, networks, parameters, gathered, chosen.size, 1)
    _loss(int_plan, float_plan, networks, parameters, gradient, rollout, masks, chosen, old, scratch, sums)
    networks_backward(int_plan, networks, parameters, gradient, gathered)
    value_loss, entropy = float_plan[policy.VF_COEF] * sums[policy.VALUE_LOSS], sums[policy.ENTROPY]
    sums[policy.LOSS] = sums[policy.POLICY_LOSS] + value_loss - float_plan[policy.ENT_COEF] * entropy


@inline_kernel
def _check(
    int_plan: Array, networks: Networks, vectors: tuple[Array, ...], obs: Array, order: Array, lr: Array
) -> None:
    """Kernels write where the plan says; what does not fit would be an out-of-bounds write."""
    for each in vectors:
        if each.size != int_plan[policy.PARAMETERS]:
            raise ValueError("vectors do not fit the native plan: expected as many floats as parameters")
    rows, numbers = int_plan[policy.ROWS], networks.numbers
    fits = rows == numbers[plan.ROWS] and rows == networks.value_numbers[plan.ROWS]
    if not fits or obs.shape[1] != numbers[plan.OBS_SIZE]:
        raise ValueError("observations do not fit the native plan")
    if order.shape[1] != obs.shape[0] or obs.shape[0] % rows or lr.size != order.size // rows:
        raise ValueError("the order does not fit the rollout: expected [epochs, M] and a rate for every minibatch")
    for row in flat(order):
        if row < 0 or row >= obs.shape[0]:
            raise ValueError("the order names a row outside the rollout")


@inline_kernel
def _check_rollout(int_plan: Array, count: int, rollout: KernelRollout, masks: Array) -> None:
    outputs, action, values, returns, advantage, weight = rollout
    continuous = int_plan[policy.CONTINUOUS]
    width, logits = int_plan[policy.CHOICES] + continuous, int_plan[policy.OUTPUTS] - continuous
    fits = outputs.size == count * int_plan[policy.OUTPUTS] and action.size == count * width
    for each in (values, returns, advantage, weight):
        fits = fits and each.size == count
    if not fits or (masks.size > 0 and masks.size != count * logits):
        raise ValueError("the rollout does not fit the native plan: expected M rows of everything")
    for row in range(count):
        for part in range(int_plan[policy.CHOICES]):
            if not 0 <= action[row * width + part] < int_plan[policy.COUNTS + part]:
                raise ValueError("the rollout holds a choice that does not exist")


@kernel
def run_epochs(
    int_plan: Array,
    float_plan: Array,
    numbers: Array,
    work: Array,
    value_numbers: Array,
    value_work: Array,
    constants: Array,
    parameters: Array,
    gradient: Array,
    mean: Array,
    square: Array,
    obs: Array,
    outputs: Array,
    action: Array,
    values: Array,
    returns: Array,
    advantage: Array,
    weight: Array,
    masks: Array,
    order: Array,
    lr: Array,
    first_update: int,
    gathered: Array,
    old: Old,
    scratch: Scratch,
    stats: Array,
) -> tuple[int, bool]:
    """An update for every minibatch of `order` [epochs, M]: how many were made, and whether all went well.

    `obs` is [M, F], everything else of the rollout flat. Fewer than asked: an epoch's mean KL was above the limit, or,
    where not all went well, a loss or gradient is not finite, and neither parameters nor moments have seen it.
    """
    networks = Networks(numbers, work, value_numbers, value_work)
    rollout = KernelRollout(outputs, action, values, returns, advantage, weight)
    _check(int_plan, networks, (parameters, gradient, mean, square), obs, order, lr)
    _check_rollout(int_plan, obs.shape[0], rollout, masks)
    mode = float_mode()
    set_float_mode(mode | FLUSH)
    old_log_p, old_p, old_log_std, every = old
    for i in range(int_plan[policy.CONTINUOUS]):
        old_log_std[i] = parameters[parameters.size - int_plan[policy.CONTINUOUS] + i]
    log_softmax_rows(int_plan, outputs, 0, int_plan[policy.OUTPUTS], 1, masks, every, old_log_p, old_p)
    seen, chosen_rows, sums = flat(obs), flat(order), np.zeros(policy.GRADIENT_NORM + 1)
    rows, count = int_plan[policy.ROWS], obs.shape[0]
    made, per_epoch, good = 0, count // rows, True
    for epoch in range(order.shape[0]):
        kl = 0.0
        for batch in range(per_epoch):
            first = epoch * count + batch * rows
            chosen = chosen_rows[first : first + rows]
            _minibatch(
                int_plan,
                float_plan,
                networks,
                parameters,
                gradient,
                seen,
                gathered,
                rollout,
                masks,
                chosen,
                old,
                scratch,
                sums,
            )
            norm = math.sqrt(sum_of_squares(gradient))
            sums[policy.GRADIENT_NORM] = norm
            for i in range(sums.size):
                stats[i, made] = sums[i]
            good = math.isfinite(sums[policy.LOSS]) and math.isfinite(norm)
            if not good:
                break
            optimize(constants, parameters, gradient, (mean, square), norm, lr[made], first_update + made + 1)
            made += 1
            kl += sums[policy.KL]
        if not good or (float_plan[policy.KL_STOP] > 0.0 and kl / per_epoch > float_plan[policy.KL_STOP]):
            break
    set_float_mode(mode)
    return made, good
