"""The minibatches of one epoch of Stable-Baselines3's PPO in one call: gather, forward, loss, backward, clipping, Adam.

The networks, distributions and Adam are the native lane's. The terms of the loss are Stable-Baselines3's own: it scales
advantages by the sample's deviation, gives a value no gradient where it is clipped, compares with the log-probability
that was noted, estimates KL from that, and stops *before* the step whose KL is above the limit.
"""

from __future__ import annotations

import math

import numpy as np

from hotloop.core.kernels import inline_kernel, kernel
from hotloop.core.types import Array
from hotloop.lanes.native import plan_kernels as plan
from hotloop.lanes.native import policy_plan_kernels as policy
from hotloop.lanes.native.matrix_kernels import sum_of_squares
from hotloop.lanes.native.policy_kernels import Networks, networks_backward, networks_forward
from hotloop.lanes.native.policy_loss_kernels import (
    BY_ENTROPY,
    BY_LOG_PROB,
    ENTROPY,
    LOG_PROB,
    descend_choices,
    descend_numbers,
    log_softmax_rows,
    measure_choices,
    measure_continuous,
    surrogate,
)
from hotloop.lanes.native.unit_kernels import flat
from hotloop.lanes.native.update_kernels import optimize
from hotloop.lanes.native.vector_kernels import FLUSH, float_mode, set_float_mode

Float = np.float32
Columns = tuple[Array, Array, Array, Array]
"""Of all rows [M]: noted log-probabilities, advantages, noted values, returns."""
Taken = tuple[Array, Array, Array, Array]
"""Of one minibatch: observations, actions, nothing [B * O], and the numbers 0 .. B-1."""


@inline_kernel
def _advantage_scales(advantage: Array, chosen: Array, normalize: int) -> tuple[float, float]:
    """Mean and 1 / (deviation + 1e-8) of a minibatch; 0 and 1 where it is not to be normalized."""
    count, mean, variance = chosen.size, 0.0, 0.0
    if not normalize or count < 2:
        return 0.0, 1.0
    for row in chosen:
        mean += advantage[row]
    mean /= count
    for row in chosen:
        variance += (advantage[row] - mean) * (advantage[row] - mean)
    return mean, 1.0 / (math.sqrt(variance / (count - 1)) + 1e-8)


@inline_kernel
def _policy_terms(
    int_plan: Array, float_plan: Array, columns: Columns, chosen: Array, measures: Array, slopes: Array, sums: Array
) -> None:
    """Means of the policy's terms, and the loss's slopes by each row's log-probability and entropy."""
    old_log_prob, advantage, _, _ = columns
    mean, per_deviation = _advantage_scales(advantage, chosen, int_plan[policy.NORMALIZE])
    share, clip = 1.0 / chosen.size, float_plan[policy.CLIP]
    for b in range(chosen.size):
        log_ratio = measures[LOG_PROB, b] - old_log_prob[chosen[b]]
        ratio, scaled = math.exp(log_ratio), (advantage[chosen[b]] - mean) * per_deviation
        row_loss, slope = surrogate(ratio, 0.0, scaled, clip, 0)
        slopes[BY_LOG_PROB, b], slopes[BY_ENTROPY, b] = slope * share, -float_plan[policy.ENT_COEF] * share
        sums[policy.POLICY_LOSS] += share * row_loss
        sums[policy.ENTROPY] += share * measures[ENTROPY, b]
        sums[policy.KL] += share * ((ratio - 1.0) - log_ratio)
        sums[policy.CLIP_FRACTION] += share if abs(ratio - 1.0) > clip else 0.0


@inline_kernel
def _value_terms(
    float_plan: Array, columns: Columns, chosen: Array, work: Array, head: int, to: int, step: int, sums: Array
) -> None:
    """The mean of value errors, and the gradient by each row's value at `to + b * step`."""
    _, _, values, returns = columns
    share, clip = 1.0 / chosen.size, float_plan[policy.VALUE_CLIP]
    for b in range(chosen.size):
        value, old, moves = float(work[head + b]), float(values[chosen[b]]), 1.0
        if clip >= 0.0 and abs(value - old) > clip:
            value, moves = old + min(max(value - old, -clip), clip), 0.0
        error = value - returns[chosen[b]]
        sums[policy.VALUE_LOSS] += share * error * error
        work[to + b * step] = Float(float_plan[policy.VF_COEF] * share * 2.0 * error * moves)


@inline_kernel
def _loss(
    int_plan: Array, float_plan: Array, networks: Networks, parameters: Array, gradient: Array, columns: Columns,
    chosen: Array,
    taken: Taken, scratch: tuple[Array, ...], sums: Array,
) -> None:  # fmt: skip
    """From both networks' head outputs: means of all terms, and `HEAD_ROWS` of both for `backward`."""
    (numbers, work, value_numbers, value_work), (_, action, nothing, every) = networks, taken
    log_p, p, entropies, by_mean, by_log_std, measures, slopes = scratch
    stride, first, masks = numbers[plan.COLUMN_STRIDE], int_plan[policy.SHARED], np.empty(0, np.bool_)
    last = parameters.size - int_plan[policy.CONTINUOUS]
    head, log_std = numbers[plan.HEAD_ONLINE] + first * stride, parameters[last:]
    to, step = numbers[plan.HEAD_ROWS] + first, numbers[plan.HEAD_STRIDE]
    log_softmax_rows(int_plan, work, head, 1, stride, masks, every, log_p, p)
    measure_choices(int_plan, action, every, log_p, p, log_p, p, measures, entropies)
    measure_continuous(
        int_plan, work, head, stride, nothing, action, every, log_std, log_std, measures, by_mean, by_log_std
    )
    _policy_terms(int_plan, float_plan, columns, chosen, measures, slopes, sums)
    descend_choices(int_plan, action, every, log_p, p, entropies, slopes, work, to, step)
    descend_numbers(
        int_plan, work, head, stride, action, every, log_std, slopes, by_mean, by_log_std, to, step, gradient[last:]
    )
    value_head, value_to = value_numbers[plan.HEAD_ONLINE], value_numbers[plan.HEAD_ROWS]
    _value_terms(float_plan, columns, chosen, value_work, value_head, value_to, value_numbers[plan.HEAD_STRIDE], sums)
    value_loss, entropy = float_plan[policy.VF_COEF] * sums[policy.VALUE_LOSS], sums[policy.ENTROPY]
    sums[policy.LOSS] = sums[policy.POLICY_LOSS] - float_plan[policy.ENT_COEF] * entropy + value_loss


@inline_kernel
def _gather(seen: Array, action: Array, chosen: Array, taken: Taken) -> None:
    own_obs, own_action, _, _ = taken
    size, width = own_obs.size // chosen.size, own_action.size // chosen.size
    for b in range(chosen.size):
        for f in range(size):
            own_obs[b * size + f] = seen[chosen[b] * size + f]
        for i in range(width):
            own_action[b * width + i] = action[chosen[b] * width + i]


@inline_kernel
def _check(int_plan: Array, networks: Networks, vectors: tuple[Array, ...], obs: Array, action: Array, columns: Columns,
           order: Array, taken: Taken, stats: Array) -> None:  # fmt: skip
    """Kernels write where the plan says; what does not fit would be an out-of-bounds write."""
    rows, numbers, (own_obs, own_action, nothing, every) = int_plan[policy.ROWS], networks.numbers, taken
    width = int_plan[policy.CHOICES] + int_plan[policy.CONTINUOUS]
    fits = rows == numbers[plan.ROWS] and rows == networks.value_numbers[plan.ROWS]
    fits = fits and obs.shape[1] == numbers[plan.OBS_SIZE] and action.size == obs.shape[0] * width
    fits = fits and own_obs.size == rows * obs.shape[1] and own_action.size == rows * width and every.size == rows
    fits = fits and nothing.size == rows * int_plan[policy.OUTPUTS] and order.size % rows == 0
    fits = fits and stats.shape[0] > policy.GRADIENT_NORM and stats.shape[1] >= order.size // rows
    for each in vectors:
        fits = fits and each.size == int_plan[policy.PARAMETERS]
    for each in columns:
        fits = fits and each.size == obs.shape[0]
    for row in order:
        fits = fits and 0 <= row < obs.shape[0]
    for row in range(obs.shape[0] if fits else 0):
        for part in range(int_plan[policy.CHOICES]):
            fits = fits and 0 <= action[row * width + part] < int_plan[policy.COUNTS + part]
    if not fits:
        raise ValueError("the rollout does not fit the native plan")


@kernel
def run_minibatches(
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
    action: Array,
    columns: Columns,
    order: Array,
    lr: float,
    first_update: int,
    taken: Taken,
    scratch: tuple[Array, ...],
    stats: Array,
) -> tuple[int, int]:
    """An update for every minibatch of `order`: how many were measured, and how many were made.

    Fewer made than measured: the last one's KL is above the limit (`KL_STOP`, negative for none), or its loss or
    gradient is not finite; neither parameters nor moments have seen it.
    """
    networks, rows = Networks(numbers, work, value_numbers, value_work), int_plan[policy.ROWS]
    _check(int_plan, networks, (parameters, gradient, mean, square), obs, action, columns, order, taken, stats)
    mode, seen, sums = float_mode(), flat(obs), np.zeros(policy.GRADIENT_NORM + 1)
    set_float_mode(mode | FLUSH)
    measured, made = 0, 0
    for j in range(order.size // rows):
        chosen = order[j * rows : (j + 1) * rows]
        for i in range(sums.size):
            sums[i] = 0.0
        _gather(seen, action, chosen, taken)
        networks_forward(int_plan, networks, parameters, taken[0], rows, 1)
        _loss(int_plan, float_plan, networks, parameters, gradient, columns, chosen, taken, scratch, sums)
        is_far = float_plan[policy.KL_STOP] >= 0.0 and sums[policy.KL] > float_plan[policy.KL_STOP]
        if not is_far:
            networks_backward(int_plan, networks, parameters, gradient, taken[0])
            sums[policy.GRADIENT_NORM] = math.sqrt(sum_of_squares(gradient))
        for i in range(sums.size):
            stats[i, j] = sums[i]
        measured += 1
        if is_far or not (math.isfinite(sums[policy.LOSS]) and math.isfinite(sums[policy.GRADIENT_NORM])):
            break
        made += 1
        optimize(constants, parameters, gradient, (mean, square), sums[policy.GRADIENT_NORM], lr, first_update + made)
    set_float_mode(mode)
    return measured, made


@kernel
def advantages_in_place(
    rewards: Array, values: Array, episode_starts: Array, last_values: Array, dones: Array, gamma: float, lam: float,
    advantages: Array,
) -> None:  # fmt: skip
    """`RolloutBuffer.compute_returns_and_advantage` on arrays [T, N], operation by operation in float32."""
    steps, num_envs = rewards.shape
    rate, decay, one = Float(gamma), Float(gamma * lam), Float(1.0)
    for n in range(num_envs):
        running = Float(0.0)
        for t in range(steps - 1, -1, -1):
            if t == steps - 1:
                goes_on, follows = one - Float(dones[n]), last_values[n]
            else:
                goes_on, follows = one - episode_starts[t + 1, n], values[t + 1, n]
            delta = rewards[t, n] + rate * follows * goes_on - values[t, n]
            running = delta + decay * goes_on * running
            advantages[t, n] = running
