"""Actions, log-probabilities, targets and gradients by head outputs of SAC and TD3, in loops along the batch.

All matrices are feature-major, so every loop reads and writes whole lines of separate arrays and vectorizes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hotloop.core.kernels import inline_kernel
from hotloop.core.types import Array
from hotloop.lanes.native.activation_kernels import exp, tanh
from hotloop.lanes.native.unit_kernels import index, real, unit, vector

Float: Any = np.float32
LOG_2 = Float(math.log(2.0))
HALF_LOG_2_PI = Float(0.5 * math.log(2.0 * math.pi))
LOWEST_LOG_STD, HIGHEST_LOG_STD = Float(-20.0), Float(2.0)
ZERO, ONE, TWO = Float(0.0), Float(1.0), Float(2.0)


@inline_kernel
def log_one_plus(z: float) -> float:
    """log(1 + z) for z between 0 and 1, as 2 atanh(s) with s = z / (2 + z) at most a third; the rest a fit of our own.

    Largest relative error measured: 1.6e-7.
    """
    s = z / (TWO + z)
    t = s * s
    p = Float(0.10853288) + t * Float(0.11612164)
    p = Float(0.14296179) + t * p
    p = Float(0.19999853) + t * p
    p = Float(0.33333334) + t * p
    return TWO * (s + s * t * p)


@inline_kernel
def log_slope(u: float) -> float:
    """log(1 - tanh(u)^2) = 2 (log 2 - |u| - log(1 + e^(-2 |u|)))."""
    size = -u if u < ZERO else u
    return TWO * (LOG_2 - size - log_one_plus(exp(Float(-2.0) * size)))


@inline_kernel
def bounded_log_std(x: float) -> float:
    x = LOWEST_LOG_STD if x < LOWEST_LOG_STD else x
    return HIGHEST_LOG_STD if x > HIGHEST_LOG_STD else x


@inline_kernel
def _draw(mean: Array, log_std: Array, noise: Array, action: Array, log_prob: Array) -> None:
    for b in range(action.size):
        bounded = bounded_log_std(log_std[b])
        u = mean[b] + exp(bounded) * noise[b]
        action[b] = tanh(u)
        log_prob[b] -= Float(0.5) * noise[b] * noise[b] + bounded + HALF_LOG_2_PI + log_slope(u)


@inline_kernel
def _draw_near_exact(mean: Array, log_std: Array, noise: Array, action: Array, log_prob: Array, epsilon: float) -> None:
    """With Stable-Baselines3's Jacobian."""
    for b in range(action.size):
        bounded = bounded_log_std(log_std[b])
        action[b] = tanh(mean[b] + exp(bounded) * noise[b])
        slope = Float(math.log(ONE - action[b] * action[b] + epsilon))
        log_prob[b] -= Float(0.5) * noise[b] * noise[b] + bounded + HALF_LOG_2_PI + slope


@unit(vector, vector, vector, vector, vector, real)
def draw_action(mean: Array, log_std: Array, noise: Array, action: Array, log_prob: Array, epsilon: float) -> None:
    """One number of the action: tanh(mean + std * noise), and its share of log p subtracted from `log_prob`."""
    if epsilon > ZERO:
        _draw_near_exact(mean, log_std, noise, action, log_prob, epsilon)
    else:
        _draw(mean, log_std, noise, action, log_prob)


@inline_kernel
def _squash(outputs: Array, action: Array) -> None:
    for b in range(action.size):
        action[b] = tanh(outputs[b])


@inline_kernel
def _smooth(action: Array, noise: Array, deviation: float, clip: float) -> None:
    for b in range(action.size):
        n = deviation * noise[b]
        n = -clip if n < -clip else n
        n = clip if n > clip else n
        a = action[b] + n
        a = -ONE if a < -ONE else a
        action[b] = ONE if a > ONE else a


@unit(vector, vector, vector, real, real)
def squash_action(outputs: Array, noise: Array, action: Array, deviation: float, clip: float) -> None:
    """tanh(outputs), for a deterministic policy; with clipped noise on it and bounds, where `deviation` is above 0."""
    _squash(outputs, action)
    if deviation > ZERO:
        _smooth(action, noise, deviation, clip)


@inline_kernel
def _lower_to(lowest: Array, source: Array) -> None:
    """NaN counts as lowest, so that it reaches the loss."""
    for b in range(lowest.size):
        lowest[b] = source[b] if source[b] < lowest[b] or source[b] != source[b] else lowest[b]


@unit(vector, vector, index, index, index)
def lowest_value(lowest: Array, work: Array, q: int, stride: int, critics: int) -> None:
    """The lowest over critics of their values, C lines at `q`."""
    for b in range(lowest.size):
        lowest[b] = work[q + b]
    for c in range(1, critics):
        _lower_to(lowest, work[q + c * stride : q + c * stride + lowest.size])


@unit(vector, vector, vector, vector, vector, real)
def td_target(y: Array, reward: Array, discount: Array, lowest: Array, log_prob: Array, alpha: float) -> None:
    """y = r + discount * (lowest Q - alpha * log p)."""
    for b in range(y.size):
        y[b] = reward[b] + discount[b] * (lowest[b] - alpha * log_prob[b])


@unit(vector, vector, vector, vector, vector, real, real)
def descend_errors(
    q: Array, y: Array, weight: Array, gradient: Array, td_error: Array, factor: float, share: float
) -> None:
    """The gradient of factor / 2 * sum of weight (y - q)^2 by one critic's q; its share of |y - q| to `td_error`."""
    for b in range(q.size):
        error = q[b] - y[b]
        gradient[b] = factor * weight[b] * error
        td_error[b] += share * (-error if error < ZERO else error)


@unit(vector, vector, vector, vector, real)
def descend_lowest(q: Array, lowest: Array, share: Array, gradient: Array, factor: float) -> None:
    """The gradient of factor * lowest by one critic's q; `share` says how many critics are equally low."""
    for b in range(q.size):
        gradient[b] = factor / share[b] if q[b] == lowest[b] else ZERO


@unit(vector, vector, vector)
def count_lowest(q: Array, lowest: Array, share: Array) -> None:
    for b in range(q.size):
        share[b] += ONE if q[b] == lowest[b] else ZERO


@unit(vector, vector, vector, vector, vector, vector, real, real)
def descend_draw(
    log_std: Array,
    noise: Array,
    action: Array,
    by_action: Array,
    by_mean: Array,
    by_log_std: Array,
    weight: float,
    epsilon: float,
) -> None:
    """Gradients by mean and log std of one number of the action: through tanh, and of weight * log p.

    d log p / du = 2 a of the exact Jacobian; the normal's own term does not depend on the mean, and falls by 1 with the
    log std. Where a bound held the log std, its gradient is 0.
    """
    for b in range(action.size):
        a, bounded = action[b], bounded_log_std(log_std[b])
        slope = ONE - a * a
        jacobian = TWO * a if epsilon <= ZERO else TWO * a * slope / (slope + epsilon)
        by_mean[b] = by_action[b] * slope + weight * jacobian
        inside = by_mean[b] * exp(bounded) * noise[b] - weight
        by_log_std[b] = ZERO if log_std[b] < LOWEST_LOG_STD or log_std[b] > HIGHEST_LOG_STD else inside


@unit(vector, vector, vector)
def descend_squash(action: Array, by_action: Array, by_output: Array) -> None:
    for b in range(action.size):
        by_output[b] = by_action[b] * (ONE - action[b] * action[b])
