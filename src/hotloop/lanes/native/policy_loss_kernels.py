"""Loss terms of a minibatch's rows and their gradients by the network's outputs, in double precision.

Old and new policy go through the same arithmetic, so that equal outputs give a ratio of exactly 1. Every stage loops
over the rows itself and takes plain arrays: handing tuples of arrays to a function per row counted references for
longer than it computed (300 of 380 nanoseconds a row).
"""

from __future__ import annotations

import math

import numpy as np

from hotloop.core.kernels import inline_kernel
from hotloop.core.types import Array
from hotloop.lanes.native import policy_plan_kernels as policy
from hotloop.lanes.native.unit_kernels import index, mask_vector, real_matrix, real_vector, unit, vector, whole

LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
LOG_TWO = math.log(2.0)
NODES, SPACING = 33, 0.4
LOG_PROB, LOG_RATIO, ENTROPY, KL, MEASURES = range(5)
"""Rows of `measures` [4, B]."""
BY_LOG_PROB, BY_ENTROPY = range(2)
"""Rows of `slopes` [2, B]."""


@unit(whole, vector, index, index, index, mask_vector, whole, real_vector, real_vector)
def log_softmax_rows(
    int_plan: Array, data: Array, at: int, row_step: int, step: int, masks: Array, chosen: Array, log_p: Array, p: Array
) -> None:
    """log p and p [B * O] of every choice of every row; logit a of row b lies at `at + b * row_step + a * step`.

    `masks` is flat, row `chosen[b]` for row b, or empty where all is allowed; forbidden choices get 0 and 0.
    """
    outputs, choices = int_plan[policy.OUTPUTS], int_plan[policy.CHOICES]
    logits, masked = outputs - int_plan[policy.CONTINUOUS], masks.size > 0
    for b in range(chosen.size):
        start, first, to, mask_at = 0, at + b * row_step, b * outputs, chosen[b] * logits
        for part in range(choices):
            end, top, total = start + int_plan[policy.COUNTS + part], -math.inf, 0.0
            for a in range(start, end):
                if not masked or masks[mask_at + a]:
                    top = max(top, float(data[first + a * step]))
            for a in range(start, end):
                allowed = not masked or masks[mask_at + a]
                p[to + a] = math.exp(float(data[first + a * step]) - top) if allowed else 0.0
                total += p[to + a]
            log_total, per_total = top + math.log(total), 1.0 / total
            for a in range(start, end):
                allowed = not masked or masks[mask_at + a]
                log_p[to + a] = data[first + a * step] - log_total if allowed else 0.0
                p[to + a] *= per_total
            start = end


@unit(whole, vector, whole, *[real_vector] * 4, real_matrix, real_vector)
def measure_choices(
    int_plan: Array, action: Array, chosen: Array, log_p: Array, p: Array, old_log_p: Array, old_p: Array,
    measures: Array,
    entropies: Array,
) -> None:  # fmt: skip
    """Sums over the choices of every row into `measures`, and the entropy of each choice [B * choices]."""
    outputs, choices = int_plan[policy.OUTPUTS], int_plan[policy.CHOICES]
    width = choices + int_plan[policy.CONTINUOUS]
    for b in range(chosen.size):
        at, old_at, column, start = b * outputs, chosen[b] * outputs, chosen[b] * width, 0
        log_prob, log_ratio, entropy, kl = 0.0, 0.0, 0.0, 0.0
        for part in range(choices):
            end, taken, own = start + int_plan[policy.COUNTS + part], start + int(action[column + part]), 0.0
            log_prob += log_p[at + taken]
            log_ratio += log_p[at + taken] - old_log_p[old_at + taken]
            for a in range(start, end):
                own -= p[at + a] * log_p[at + a]
                kl += old_p[old_at + a] * (old_log_p[old_at + a] - log_p[at + a])
            entropies[b * choices + part] = own
            entropy += own
            start = end
        measures[LOG_PROB, b], measures[LOG_RATIO, b] = log_prob, log_ratio
        measures[ENTROPY, b], measures[KL, b] = entropy, kl


@unit(whole, vector, index, index, *[vector] * 2, whole, *[vector] * 2, real_matrix, *[real_vector] * 2)
def measure_continuous(
    int_plan: Array, work: Array, head: int, stride: int, old_outputs: Array, action: Array, chosen: Array,
    old_log_std: Array, log_std: Array, measures: Array, by_mean: Array, by_log_std: Array,
) -> None:  # fmt: skip
    """Add the numbers of every row to `measures`; the derivatives of the entropy [B * C] are left beside."""
    outputs, continuous, choices = int_plan[policy.OUTPUTS], int_plan[policy.CONTINUOUS], int_plan[policy.CHOICES]
    logits = outputs - continuous
    for i in range(continuous):
        old_spread, spread = float(old_log_std[i]), float(log_std[i])
        old_per_std, per_std = math.exp(-old_spread), math.exp(-spread)
        for b in range(chosen.size):
            mean = float(work[head + (logits + i) * stride + b])
            old_mean = old_outputs[chosen[b] * outputs + logits + i]
            u = float(action[chosen[b] * (choices + continuous) + choices + i])
            scaled, old_scaled = (u - mean) * per_std, (u - old_mean) * old_per_std
            density, old_density = -0.5 * scaled * scaled - spread, -0.5 * old_scaled * old_scaled - old_spread
            measures[LOG_PROB, b] += density - LOG_ROOT_TWO_PI
            measures[LOG_RATIO, b] += density - old_density
            measures[ENTROPY, b] += spread + 0.5 + LOG_ROOT_TWO_PI
            distance = 1.0 / (old_per_std * old_per_std) + (old_mean - mean) * (old_mean - mean)
            measures[KL, b] += spread - old_spread + 0.5 * (distance * per_std * per_std - 1.0)
            by_mean[b * continuous + i], by_log_std[b * continuous + i] = 0.0, 1.0
            if int_plan[policy.SQUASHED]:
                squash_number(u, mean, spread, measures, by_mean, by_log_std, b, b * continuous + i)


@inline_kernel
def squash_number(
    u: float, mean: float, log_std: float, measures: Array, by_mean: Array, by_log_std: Array, b: int, at: int
) -> None:
    """The Jacobian in the log-probability, E log(1 - tanh(u)^2) in the entropy (trapezoid rule), and its slopes."""
    std, total, mean_slope, std_slope = math.exp(log_std), 0.0, 0.0, 0.0
    measures[LOG_PROB, b] -= log_slope_of_tanh(math.exp(-2.0 * abs(u)), abs(u))
    for node in range(NODES):
        z = SPACING * (node - (NODES - 1) // 2)
        density = SPACING * math.exp(-0.5 * z * z - LOG_ROOT_TWO_PI)
        size = abs(mean + std * z)
        decay = math.exp(-2.0 * size)
        tanh = math.copysign((1.0 - decay) / (1.0 + decay), mean + std * z)
        total += density * log_slope_of_tanh(decay, size)
        mean_slope -= 2.0 * tanh * density
        std_slope -= 2.0 * tanh * density * std * z
    measures[ENTROPY, b] += total
    by_mean[at] += mean_slope
    by_log_std[at] += std_slope


@inline_kernel
def log_slope_of_tanh(decay: float, size: float) -> float:
    """log(1 - tanh(u)^2) from |u| and exp(-2 |u|)."""
    return 2.0 * (LOG_TWO - size - math.log1p(decay))


@inline_kernel
def surrogate(ratio: float, log_prob: float, advantage: float, clip: float, plain: int) -> tuple[float, float]:
    """The policy's row loss and its slope by log_prob."""
    if plain:
        return -log_prob * advantage, -advantage
    held = min(max(ratio, 1.0 - clip), 1.0 + clip)
    if held * advantage < ratio * advantage:
        return -held * advantage, 0.0
    return -ratio * advantage, -ratio * advantage


@unit(whole, real_vector, *[vector] * 2, whole, *[real_matrix] * 2, real_vector)
def policy_rows(
    int_plan: Array,
    float_plan: Array,
    advantage: Array,
    weight: Array,
    chosen: Array,
    measures: Array,
    slopes: Array,
    sums: Array,
) -> None:
    """Weighted sums of the policy's terms, and the loss's slopes by each row's log-probability and entropy."""
    mean, per_deviation, per_weight = scales_of(advantage, weight, chosen, int_plan[policy.NORMALIZE])
    clip = float_plan[policy.CLIP]
    for b in range(chosen.size):
        share, ratio = weight[chosen[b]] * per_weight, math.exp(measures[LOG_RATIO, b])
        normalized = (advantage[chosen[b]] - mean) * per_deviation
        row_loss, slope = surrogate(ratio, measures[LOG_PROB, b], normalized, clip, int_plan[policy.PLAIN])
        slopes[BY_LOG_PROB, b], slopes[BY_ENTROPY, b] = slope * share, -float_plan[policy.ENT_COEF] * share
        sums[policy.POLICY_LOSS] += share * row_loss
        sums[policy.ENTROPY] += share * measures[ENTROPY, b]
        sums[policy.KL] += share * measures[KL, b]
        sums[policy.CLIP_FRACTION] += share if abs(ratio - 1.0) > clip else 0.0


@unit(real_vector, *[vector] * 3, whole, vector, index, index, index, real_vector)
def value_rows(
    float_plan: Array, values: Array, returns: Array, weight: Array, chosen: Array, work: Array, head: int, to: int,
    step: int, sums: Array,
) -> None:  # fmt: skip
    """The weighted sum of value errors, and the gradient by each row's value at `to + b * step`."""
    total = 0.0
    for row in chosen:
        total += weight[row]
    clip = float_plan[policy.VALUE_CLIP]
    for b in range(chosen.size):
        row, value, slope = chosen[b], float(work[head + b]), 0.0
        share, error = weight[row] / max(total, 1.0), value - returns[row]
        row_loss, slope = error * error, 2.0 * error
        if clip > 0.0 and abs(value - values[row]) > clip:
            held = values[row] + min(max(value - values[row], -clip), clip) - returns[row]
            if held * held > row_loss:
                row_loss, slope = held * held, 0.0
        sums[policy.VALUE_LOSS] += share * row_loss
        work[to + b * step] = np.float32(float_plan[policy.VF_COEF] * share * slope)


@unit(whole, vector, whole, *[real_vector] * 3, real_matrix, vector, index, index)
def descend_choices(
    int_plan: Array, action: Array, chosen: Array, log_p: Array, p: Array, entropies: Array, slopes: Array, work: Array,
    to: int, step: int,
) -> None:  # fmt: skip
    """Gradient by the logits of every row, batch-major from `to`."""
    outputs, choices = int_plan[policy.OUTPUTS], int_plan[policy.CHOICES]
    width = choices + int_plan[policy.CONTINUOUS]
    for b in range(chosen.size):
        at, first, start = b * outputs, to + b * step, 0
        by_log_prob, by_entropy = slopes[BY_LOG_PROB, b], slopes[BY_ENTROPY, b]
        for part in range(choices):
            end, entropy = start + int_plan[policy.COUNTS + part], entropies[b * choices + part]
            for a in range(start, end):
                slope = -p[at + a] * (by_log_prob + by_entropy * (log_p[at + a] + entropy))
                work[first + a] = np.float32(slope)
            work[first + start + int(action[chosen[b] * width + part])] += np.float32(by_log_prob)
            start = end


@unit(whole, vector, index, index, vector, whole, vector, real_matrix, *[real_vector] * 2, index, index, vector)
def descend_numbers(
    int_plan: Array, work: Array, head: int, stride: int, action: Array, chosen: Array, log_std: Array, slopes: Array,
    by_mean: Array, by_log_std: Array, to: int, step: int, gradient: Array,
) -> None:  # fmt: skip
    """Gradient by the means of every row, batch-major from `to`, and by the log stds, into `gradient` [C]."""
    outputs, continuous, choices = int_plan[policy.OUTPUTS], int_plan[policy.CONTINUOUS], int_plan[policy.CHOICES]
    logits = outputs - continuous
    for i in range(continuous):
        per_std, total = math.exp(-float(log_std[i])), 0.0
        for b in range(chosen.size):
            u = float(action[chosen[b] * (choices + continuous) + choices + i])
            scaled = (u - work[head + (logits + i) * stride + b]) * per_std
            slope, by_entropy, at = slopes[BY_LOG_PROB, b], slopes[BY_ENTROPY, b], b * continuous + i
            work[to + b * step + logits + i] = np.float32(slope * scaled * per_std + by_entropy * by_mean[at])
            total += slope * (scaled * scaled - 1.0) + by_entropy * by_log_std[at]
        gradient[i] = np.float32(total)


@inline_kernel
def scales_of(advantage: Array, weight: Array, chosen: Array, normalize: int) -> tuple[float, float, float]:
    """Mean and 1 / deviation of a minibatch's advantages (0 and 1 if not to be normalized), and 1 / summed weights."""
    total, mean, variance = 0.0, 0.0, 0.0
    for row in chosen:
        total += weight[row]
        mean += weight[row] * advantage[row]
    total = max(total, 1.0)
    if not normalize:
        return 0.0, 1.0, 1.0 / total
    mean /= total
    for row in chosen:
        variance += weight[row] * (advantage[row] - mean) * (advantage[row] - mean)
    return mean, 1.0 / (math.sqrt(variance / total) + 1e-8), 1.0 / total
