"""Machine code of the samplers. `index` and `weight` are [k, B]; batch b repeats the previous one unless b % repeat
is 0; `newest` is the row to put last in each batch, or -1."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.kernels import kernel, next_below, next_uniform
from hotloop.replay.sum_tree_kernels import find_leaf, refresh_parents


@kernel
def draw_uniform(generator: Any, index: Any, repeat: int, size: int, newest: int) -> None:
    """Rows 0 .. size-1 with replacement."""
    for batch in range(index.shape[0]):
        if batch % repeat != 0:
            index[batch] = index[batch - 1]
            continue
        for row in range(index.shape[1]):
            index[batch, row] = next_below(generator, 0, size)
        if newest >= 0:
            index[batch, index.shape[1] - 1] = newest


@kernel
def draw_prioritised(
    generator: Any, nodes: Any, levels: Any, index: Any, weight: Any, repeat: int, newest: int, beta: float
) -> None:
    """Row j of a batch comes from the j-th of B equal stretches of the cumulative priority."""
    rows = index.shape[1]
    total = nodes[levels[-1]]
    for batch in range(index.shape[0]):
        if batch % repeat != 0:
            index[batch] = index[batch - 1]
            weight[batch] = weight[batch - 1]
            continue
        for row in range(rows):
            target = (row + next_uniform(generator, 0)) / rows * total
            index[batch, row] = find_leaf(nodes, levels, target)
        if newest >= 0:
            index[batch, rows - 1] = newest
        # (size P(i))^-beta over its maximum is (p_min / p_i)^beta: size and total cancel.
        smallest = np.inf
        for row in range(rows):
            smallest = min(smallest, nodes[index[batch, row]])
        for row in range(rows):
            weight[batch, row] = (smallest / nodes[index[batch, row]]) ** beta


@kernel
def set_priorities(
    nodes: Any, levels: Any, index: Any, td_error: Any, size: int, alpha: float, epsilon: float, largest: float
) -> float:
    """priority = (|td| + epsilon)^alpha; the largest so far, or NaN (nothing written) for a bad index or TD error."""
    rows, errors = index.reshape(-1), td_error.reshape(-1)
    for entry in range(rows.shape[0]):
        if not (np.isfinite(errors[entry]) and 0 <= rows[entry] < size):
            return np.nan
    for entry in range(rows.shape[0]):
        priority = (abs(np.float64(errors[entry])) + epsilon) ** alpha
        nodes[rows[entry]] = priority
        largest = max(largest, priority)
    refresh_parents(nodes, levels, rows)
    return largest
