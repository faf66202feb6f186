"""Machine code of the sum tree.

Eight children per node rather than two: a node's children are one cache line, and 100,000 leaves need 6 levels
instead of 17. `nodes` holds the levels one after another, leaves first; `levels` [L] says where each starts. A parent
is always the sum of its children in a fixed order, never adjusted by a difference: sums cannot drift, and a
tree restored from its leaves is bit-identical.
"""

from __future__ import annotations

from typing import Any

from hotloop.core.kernels import inline_kernel, kernel


@inline_kernel
def sum_children(nodes: Any, first: int) -> float:
    left = (nodes[first] + nodes[first + 1]) + (nodes[first + 2] + nodes[first + 3])
    right = (nodes[first + 4] + nodes[first + 5]) + (nodes[first + 6] + nodes[first + 7])
    return left + right


@kernel
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
