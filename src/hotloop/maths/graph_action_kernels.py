"""Actions on graphs drawn from the policy's outputs, graph by graph, with a generator whose state can be saved."""

from __future__ import annotations

import math

from hotloop.core.kernels import kernel
from hotloop.maths.action_kernels import draw_choice, next_normal


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
