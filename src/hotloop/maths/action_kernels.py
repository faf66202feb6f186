"""Actions drawn from the policy's outputs, for N envs in one call, with generators whose state can be saved.

Actions on graphs drawn from the policy's outputs, graph by graph, with a generator whose state can be saved.
"""

from __future__ import annotations

import math

from hotloop.core.kernels import inline_kernel, kernel, next_uniform

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


@inline_kernel
def _allowed(mask, row, column):
    return mask.shape[0] == 0 or mask[row, column]


@inline_kernel
def draw_choice(state, outputs, mask, row, start, count):
    """By the inverse of the cumulated probabilities."""
    top = -math.inf
    for a in range(start, start + count):
        if _allowed(mask, row, a) and outputs[row, a] > top:
            top = outputs[row, a]
    total = 0.0
    for a in range(start, start + count):
        if _allowed(mask, row, a):
            total += math.exp(outputs[row, a] - top)
    left = next_uniform(state, 0) * total
    chosen = 0
    for a in range(start, start + count):
        if _allowed(mask, row, a):
            chosen = a - start
            left -= math.exp(outputs[row, a] - top)
            if left < 0.0:
                break
    return chosen


@inline_kernel
def _best_choice(outputs, mask, row, start, count):
    best, top = 0, -math.inf
    for a in range(start, start + count):
        if _allowed(mask, row, a) and outputs[row, a] > top:
            best, top = a - start, outputs[row, a]
    return best


@inline_kernel
def next_normal(state):
    """Box and Muller's; the second number is not kept, so that the state stays one counter."""
    radius = math.sqrt(-2.0 * math.log(1.0 - next_uniform(state, 0)))
    return radius * math.cos(2.0 * math.pi * next_uniform(state, 0))


@kernel
def draw_actions(state, outputs, log_std, mask, counts, action):
    """Fill `action` [N, W] from outputs [N, O]; `mask` [N, logits], or without rows where all is allowed."""
    for row in range(outputs.shape[0]):
        start = 0
        for part in range(counts.size):
            action[row, part] = draw_choice(state, outputs, mask, row, start, counts[part])
            start += counts[part]
        for i in range(log_std.size):
            noise = math.exp(log_std[i]) * next_normal(state)
            action[row, counts.size + i] = outputs[row, start + i] + noise


@kernel
def best_actions(outputs, log_std, mask, counts, action):
    """The likeliest choices and the means."""
    for row in range(outputs.shape[0]):
        start = 0
        for part in range(counts.size):
            action[row, part] = _best_choice(outputs, mask, row, start, counts[part])
            start += counts[part]
        for i in range(log_std.size):
            action[row, counts.size + i] = outputs[row, start + i]


@kernel
def action_log_probs(outputs, log_std, mask, counts, action, log_prob):
    """Fill `log_prob` [N] with those of actions [N, W]; a mask as in `draw_actions`."""
    for row in range(outputs.shape[0]):
        start, total = 0, 0.0
        for part in range(counts.size):
            top, mass = -math.inf, 0.0
            for a in range(start, start + counts[part]):
                if _allowed(mask, row, a) and outputs[row, a] > top:
                    top = outputs[row, a]
            for a in range(start, start + counts[part]):
                if _allowed(mask, row, a):
                    mass += math.exp(outputs[row, a] - top)
            total += outputs[row, start + int(action[row, part])] - top - math.log(mass)
            start += counts[part]
        for i in range(log_std.size):
            scaled = (action[row, counts.size + i] - outputs[row, start + i]) * math.exp(-log_std[i])
            total -= 0.5 * scaled * scaled + log_std[i] + HALF_LOG_TWO_PI
        log_prob[row] = total


@kernel
def shuffle(state, order):
    """Put numbers 0 .. M-1 into each row of `order` [epochs, M], each row in an order of its own."""
    for epoch in range(order.shape[0]):
        row = order[epoch]
        for i in range(row.size):
            row[i] = i
        for i in range(row.size - 1, 0, -1):
            j = int(next_uniform(state, 0) * (i + 1))
            row[i], row[j] = row[j], row[i]


@kernel
def draw_graph_actions(state, mean, log_std, logits, no_mask, node_offsets, numbers, choices):
    """Fill `numbers` [N, C], and `choices` [nodes] from `logits` [nodes, A] where there are any."""
    num_graphs, num_numbers = mean.shape
    for g in range(num_graphs):
        for c in range(num_numbers):
            numbers[g, c] = mean[g, c] + math.exp(log_std[g, c]) * next_normal(state)
        if logits.shape[0] > 0:
            for node in range(node_offsets[g], node_offsets[g + 1]):
                choices[node] = draw_choice(state, logits, no_mask, node, 0, logits.shape[1])
