"""The stages of one SAC, TD3 or DDPG update: what the critics should say, their gradient, and the actor's.

The actor's stage takes only the gradient by the action from the critics, none by their weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from hotloop.core.kernels import inline_kernel
from hotloop.core.types import Array
from hotloop.lanes.native import sac_plan_kernels as sac
from hotloop.lanes.native import stack_plan_kernels as plan
from hotloop.lanes.native.sac_loss_kernels import (
    count_lowest,
    descend_draw,
    descend_errors,
    descend_lowest,
    descend_squash,
    draw_action,
    lowest_value,
    squash_action,
    td_target,
)
from hotloop.lanes.native.stack_kernels import backward_stack, forward_stack, input_gradient
from hotloop.lanes.native.unit_kernels import index, real_vector, unit, vector, whole

Float: Any = np.float32
double = types.float64


@inline_kernel
def vector_of(int_plan: Array, vectors: Array, group: int, which: int) -> Array:
    """The values, gradient, moments or slowly moving copy of a group."""
    first = int_plan[group + sac.START] + which * int_plan[group + sac.STEP]
    return vectors[first : first + int_plan[group + sac.SIZE]]


@inline_kernel
def line(int_plan: Array, work: Array, start: int, number: int) -> Array:
    """One line [B] of a matrix with the critics' stride."""
    first = start + number * int_plan[int_plan[sac.CRITICS_PLAN] + plan.STRIDE]
    return work[first : first + int_plan[sac.ROWS]]


@inline_kernel
def own_line(int_plan: Array, work: Array, number: int) -> Array:
    return line(int_plan, work, int_plan[sac.LINES], number)


@inline_kernel
def actor_line(int_plan: Array, work: Array, start: int, number: int) -> Array:
    """One line [B] of a matrix with the actor's stride."""
    first = start + number * int_plan[int_plan[sac.ACTOR_PLAN] + plan.STRIDE]
    return work[first : first + int_plan[sac.ROWS]]


@inline_kernel
def actor_plan(int_plan: Array) -> Array:
    return int_plan[int_plan[sac.ACTOR_PLAN] : int_plan[sac.CRITICS_PLAN]]


@inline_kernel
def critics_plan(int_plan: Array) -> Array:
    return int_plan[int_plan[sac.CRITICS_PLAN] :]


@inline_kernel
def last_layer(network: Array, part: int) -> int:
    """Offset of the last layer's values or gradient."""
    return network[plan.TABLE + plan.ROW * (network[plan.LAYERS] - 1) + part]


@inline_kernel
def taken_actions(int_plan: Array) -> int:
    """Offset of the actions in the critics' input."""
    critics = int_plan[sac.CRITICS_PLAN]
    return int_plan[critics + plan.INPUT] + int_plan[sac.OBS_SIZE] * int_plan[critics + plan.STRIDE]


@unit(whole, real_vector, vector, index, double)
def take_actions(int_plan: Array, float_plan: Array, work: Array, column: int, deviation: float) -> None:
    """The policy's actions into the critics' input, from the actor's outputs from `column` on and the `NOISE` lines.

    `LOG_PROB` where they are drawn; noise of this `deviation` on them where they are not.
    """
    actions, log_prob = int_plan[sac.ACTIONS], own_line(int_plan, work, sac.LOG_PROB)
    head, taken = last_layer(actor_plan(int_plan), plan.VALUES) + column, taken_actions(int_plan)
    for b in range(log_prob.size):
        log_prob[b] = Float(0.0)
    for i in range(actions):
        action, mean = line(int_plan, work, taken, i), actor_line(int_plan, work, head, i)
        noise = own_line(int_plan, work, sac.NOISE + i)
        if int_plan[sac.STOCHASTIC]:
            log_std = actor_line(int_plan, work, head, actions + i)
            draw_action(mean, log_std, noise, action, log_prob, Float(float_plan[sac.SLOPE_EPSILON]))
        else:
            squash_action(mean, noise, action, Float(deviation), Float(float_plan[sac.SMOOTHING_CLIP]))


@unit(whole, vector, vector, vector, vector, double)
def set_target(int_plan: Array, work: Array, vectors: Array, reward: Array, discount: Array, alpha: float) -> None:
    """`TARGET`, from next_obs and the policy's actions there in the critics' input."""
    critics, network = int_plan[sac.CRITICS], critics_plan(int_plan)
    lowest, log_prob = own_line(int_plan, work, sac.LOWEST), own_line(int_plan, work, sac.LOG_PROB)
    forward_stack(network, vector_of(int_plan, vectors, sac.CRITIC, sac.SLOW), work, critics, lowest.size, 0)
    lowest_value(lowest, work, last_layer(network, plan.VALUES), network[plan.STRIDE], critics)
    td_target(own_line(int_plan, work, sac.TARGET), reward, discount, lowest, log_prob, Float(alpha))


@inline_kernel
def _mean(values: Array) -> float:
    total = 0.0
    for b in range(values.size):
        total += values[b]
    return total / values.size


@inline_kernel
def _weighted_error(q: Array, y: Array, weight: Array) -> float:
    total = 0.0
    for b in range(q.size):
        error = q[b] - y[b]
        total += weight[b] * error * error
    return total / q.size


@unit(whole, real_vector, vector, vector, vector, vector, real_vector)
def critics_gradient(
    int_plan: Array, float_plan: Array, work: Array, vectors: Array, weight: Array, td_error: Array, report: Array
) -> None:
    """Of the critics' squared errors, from obs and the actions taken there in their input; loss and mean q."""
    critics, factor, network = int_plan[sac.CRITICS], float_plan[sac.CRITIC_WEIGHT], critics_plan(int_plan)
    y, values = own_line(int_plan, work, sac.TARGET), vector_of(int_plan, vectors, sac.CRITIC, sac.VALUES)
    forward_stack(network, values, work, critics, y.size, 1)
    head, by_head = last_layer(network, plan.VALUES), last_layer(network, plan.GRADIENT)
    report[sac.STAGE_LOSS], report[sac.STAGE_MEAN] = 0.0, 0.0
    for b in range(y.size):
        td_error[b] = Float(0.0)
    for c in range(critics):
        q, by_q = line(int_plan, work, head, c), line(int_plan, work, by_head, c)
        descend_errors(q, y, weight, by_q, td_error, Float(2.0 * factor / y.size), Float(1.0 / critics))
        report[sac.STAGE_LOSS] += factor * _weighted_error(q, y, weight)
        report[sac.STAGE_MEAN] += _mean(q) / critics
    backward_stack(network, values, work, vector_of(int_plan, vectors, sac.CRITIC, sac.GRADIENT))


@inline_kernel
def _climb_critics(int_plan: Array, work: Array, vectors: Array) -> float:
    """The gradient by the policy's actions of minus the mean of the lowest critic, or of the first; that mean."""
    network, values = critics_plan(int_plan), vector_of(int_plan, vectors, sac.CRITIC, sac.VALUES)
    critics = int_plan[sac.CRITICS] if int_plan[sac.STOCHASTIC] else 1
    lowest, share = own_line(int_plan, work, sac.LOWEST), own_line(int_plan, work, sac.SHARE)
    forward_stack(network, values, work, critics, lowest.size, 0)
    head, by_head = last_layer(network, plan.VALUES), last_layer(network, plan.GRADIENT)
    lowest_value(lowest, work, head, network[plan.STRIDE], critics)
    for b in range(share.size):
        share[b] = Float(0.0)
    for c in range(critics):
        count_lowest(line(int_plan, work, head, c), lowest, share)
    for c in range(critics):
        q, by_q = line(int_plan, work, head, c), line(int_plan, work, by_head, c)
        descend_lowest(q, lowest, share, by_q, Float(-1.0 / share.size))
    input_gradient(network, values, work, 0, critics, share.size)
    return _mean(lowest)


@unit(whole, real_vector, vector, vector, double, real_vector)
def actor_gradient(
    int_plan: Array, float_plan: Array, work: Array, vectors: Array, alpha: float, report: Array
) -> None:
    """Of the actor's loss, from obs and the policy's actions there in the critics' input; loss and mean log p."""
    network, actions, taken = actor_plan(int_plan), int_plan[sac.ACTIONS], taken_actions(int_plan)
    value, log_prob = _climb_critics(int_plan, work, vectors), _mean(own_line(int_plan, work, sac.LOG_PROB))
    report[sac.STAGE_LOSS], report[sac.STAGE_MEAN] = alpha * log_prob - value, log_prob
    head, by_head = last_layer(network, plan.VALUES), last_layer(network, plan.GRADIENT)
    weight, epsilon = Float(alpha / int_plan[sac.ROWS]), Float(float_plan[sac.SLOPE_EPSILON])
    for i in range(actions):
        action = line(int_plan, work, taken, i)
        by_action = line(int_plan, work, int_plan[int_plan[sac.CRITICS_PLAN] + plan.INPUT_GRADIENT], i)
        by_mean = actor_line(int_plan, work, by_head, i)
        if int_plan[sac.STOCHASTIC]:
            log_std, noise = actor_line(int_plan, work, head, actions + i), own_line(int_plan, work, sac.NOISE + i)
            by_log_std = actor_line(int_plan, work, by_head, actions + i)
            descend_draw(log_std, noise, action, by_action, by_mean, by_log_std, weight, epsilon)
        else:
            descend_squash(action, by_action, by_mean)
    values, gradient = vector_of(int_plan, vectors, sac.ACTOR, sac.VALUES), sac.GRADIENT
    backward_stack(network, values, work, vector_of(int_plan, vectors, sac.ACTOR, gradient))
