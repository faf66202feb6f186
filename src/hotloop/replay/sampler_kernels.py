"""Machine code of the samplers. `index` and `weight` are [k, B]; batch b repeats the previous one unless b % repeat
is 0; `newest` is the row to put last in each batch, or -1.

Machine code of the sum tree.

Eight children per node rather than two: a node's children are one cache line, and 100,000 leaves need 6 levels
instead of 17. `nodes` holds the levels one after another, leaves first; `levels` [L] says where each starts. A parent
is always the sum of its children in a fixed order, never adjusted by a difference: sums cannot drift, and a
tree restored from its leaves is bit-identical.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.kernels import inline_kernel, kernel, next_below, next_uniform


@inline_kernel
def sum_children(nodes: Any, first: int) -> float:
    left = (nodes[first] + nodes[first + 1]) + (nodes[first + 2] + nodes[first + 3])
    right = (nodes[first + 4] + nodes[first + 5]) + (nodes[first + 6] + nodes[first + 7])
    return left + right


@inline_kernel
def refresh_parents(nodes: Any, levels: Any, index: Any) -> None:
    """Recompute every ancestor of the leaves `index` [M], level by level.

    Stratified draws are sorted, so equal parents mostly stand side by side and are summed once.
    """
    for level in range(1, levels.shape[0]):
        previous = -1
        for leaf in index:
            node = leaf >> (3 * level)
            if node != previous:
                nodes[levels[level] + node] = sum_children(nodes, levels[level - 1] + 8 * node)
                previous = node


@kernel
def set_leaves(nodes: Any, levels: Any, index: Any, value: Any) -> None:
    """Set leaves `index` [M] to `value` [M]; of equal indices the last wins."""
    for entry in range(index.shape[0]):
        nodes[index[entry]] = value[entry]
    refresh_parents(nodes, levels, index)


@inline_kernel
def refresh_range(nodes: Any, levels: Any, first: int, stop: int) -> None:
    for level in range(1, levels.shape[0]):
        for node in range(first >> (3 * level), ((stop - 1) >> (3 * level)) + 1):
            nodes[levels[level] + node] = sum_children(nodes, levels[level - 1] + 8 * node)


@kernel
def fill_range(nodes: Any, levels: Any, first: int, count: int, capacity: int, value: float) -> None:
    """Set `count` leaves from `first` on, wrapping at `capacity`."""
    count = min(count, capacity)
    stop = min(first + count, capacity)
    nodes[first:stop] = value
    refresh_range(nodes, levels, first, stop)
    wrapped = first + count - stop
    if wrapped > 0:
        nodes[:wrapped] = value
        refresh_range(nodes, levels, 0, wrapped)


@kernel
def find_leaf(nodes: Any, levels: Any, target: float) -> int:
    """The leaf whose stretch of the cumulative sum holds `target` (0 <= target < total).

    Without branches on the data, so that the processor overlaps several searches. Where rounding points past the
    last filled child, the last filled one is taken: an empty leaf is never found in a tree that holds anything.
    """
    node = 0
    for level in range(levels.shape[0] - 2, -1, -1):
        first = levels[level] + 8 * node
        child, before, total = 0, 0.0, 0.0
        for candidate in range(7):
            total += nodes[first + candidate]
            child += 1 if target >= total else 0
            before = total if target >= total else before
        target -= before
        while child > 0 and nodes[first + child] <= 0.0:
            child -= 1
            target = nodes[first + child]
        node = 8 * node + child
    return node


@inline_kernel
def repeat_row(rows: Any, batch: int) -> None:
    """rows[batch] = rows[batch - 1], for which numba would spend two seconds on compiling an error message."""
    for row in range(rows.shape[1]):
        rows[batch, row] = rows[batch - 1, row]


@kernel
def draw_uniform(generator: Any, index: Any, repeat: int, size: int, newest: int) -> None:
    """Rows 0 .. size-1 with replacement."""
    for batch in range(index.shape[0]):
        if batch % repeat != 0:
            repeat_row(index, batch)
            continue
        for row in range(index.shape[1]):
            index[batch, row] = next_below(generator, 0, size)
        if newest >= 0:
            index[batch, index.shape[1] - 1] = newest


@kernel
def draw_prioritized(
    generator: Any, nodes: Any, levels: Any, index: Any, weight: Any, repeat: int, newest: int, beta: float
) -> None:
    """Row j of a batch comes from the j-th of B equal stretches of the cumulative priority."""
    rows = index.shape[1]
    total = nodes[levels[-1]]
    for batch in range(index.shape[0]):
        if batch % repeat != 0:
            repeat_row(index, batch)
            repeat_row(weight, batch)
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
