"""Which nodes lie left-most, without sorting all of them."""

from __future__ import annotations

import math

from hotloop.core.kernels import lean_inline_kernel, lean_kernel
from hotloop.core.types import Array
from hotloop.workloads.durotaxis.layout_kernels import BLOCK

RANKED = 128  # nodes


@lean_inline_kernel
def whole_blocks(num_nodes: int) -> int:
    """`num_nodes` or a little more."""
    return (num_nodes + BLOCK - 1) & ~(BLOCK - 1)


@lean_kernel
def fill_block(x: Array, num_nodes: int) -> None:
    for node in range(num_nodes, whole_blocks(num_nodes)):
        x[node] = math.inf


@lean_inline_kernel
def rank_of(x: Array, node: int, end: int) -> int:
    """How many of all up to a whole block lie left of it: by x, of equal ones the older.

    To count them for every node takes n * n comparisons, but none that the processor has to guess the outcome of:
    up to a hundred nodes and more that is quicker than any sorting or selecting.
    """
    here, rank = x[node], 0
    for other in range(end):
        rank += (x[other] < here) | ((x[other] == here) & (other < node))
    return rank


@lean_kernel
def mark_leftmost(x: Array, num_nodes: int, count: int, order: Array, chosen: Array) -> None:
    """1 in `chosen` for the `count` left-most nodes, 0 for the others."""
    if num_nodes <= RANKED:
        end = whole_blocks(num_nodes)
        for node in range(num_nodes):
            chosen[node] = rank_of(x, node, end) < count
        return
    select_leftmost(x, num_nodes, count, order)
    for node in range(num_nodes):
        chosen[node] = 0
    for at in range(count):
        chosen[order[at]] = 1


@lean_inline_kernel
def is_left(x: Array, one: int, other: int) -> bool:
    """Whether `one` comes first: by x, of equal ones the older."""
    return x[one] < x[other] or (x[one] == x[other] and one < other)


@lean_inline_kernel
def middle_of(x: Array, one: int, two: int, three: int) -> int:
    if is_left(x, two, one):
        one, two = two, one
    if is_left(x, two, three):
        return two
    return one if is_left(x, three, one) else three


@lean_kernel
def select_leftmost(x: Array, num_nodes: int, count: int, order: Array) -> None:
    """Put the `count` left-most first in `order`, in any order among themselves (Hoare's selection, O(n) expected).

    A new colony is two rising runs, survivors and children: the middle of three is a good pivot for those.
    """
    for node in range(num_nodes):
        order[node] = node
    if count <= 0 or count >= num_nodes:
        return
    low, high = 0, num_nodes - 1
    while low < high:
        pivot = middle_of(x, order[low], order[(low + high) // 2], order[high])
        left, right = low, high
        while left <= right:
            while is_left(x, order[left], pivot):
                left += 1
            while is_left(x, pivot, order[right]):
                right -= 1
            if left <= right:
                order[left], order[right] = order[right], order[left]
                left += 1
                right -= 1
        if count - 1 <= right:
            high = right
        elif count - 1 >= left:
            low = left
        else:
            return


@lean_inline_kernel
def sort_by_x(x: Array, num_nodes: int, order: Array) -> None:
    """All nodes from left to right, of equal ones the older first; for the few of a new colony."""
    for node in range(num_nodes):
        at = node
        while at > 0 and x[node] < x[order[at - 1]]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = node
