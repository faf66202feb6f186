"""The convex hull of a colony: which nodes are its corners, and its area (Andrew's monotone chain)."""

from __future__ import annotations

from hotloop.core.types import Array
from hotloop.envs.durotaxis.layout_kernels import HULL, Colony, Rules, Scratch, X, Y
from hotloop.envs.durotaxis.selection_kernels import RANKED, rank_of, whole_blocks
from hotloop.envs.lean_kernels import lean_kernel

GAPS = (701, 301, 132, 57, 23, 10, 4, 1)  # of a shell sort (Ciura 2001)


@lean_kernel
def find_hull(colony: Colony, rules: Rules, scratch: Scratch) -> None:
    """Where all nodes lie on a line, or there are fewer than three, everybody is a corner and the area is 0."""
    record, x, y, is_corner = colony.record, colony.places[X], colony.places[Y], colony.counts[HULL]
    corners = wrap(x, y, record.num_nodes, rules.flatness, scratch.order, scratch.stack)
    for node in range(record.num_nodes):
        is_corner[node] = corners < 3
    record.hull_area = 0.0
    if corners >= 3:
        twice = 0.0
        for at in range(corners):
            one, other = scratch.stack[at], scratch.stack[at + 1]  # behind the last corner lies the first again
            twice += x[one] * y[other] - x[other] * y[one]
            is_corner[one] = 1
        record.hull_area = 0.5 * twice


@lean_kernel
def wrap(x: Array, y: Array, num_nodes: int, flat: float, order: Array, stack: Array) -> int:
    """Corners anticlockwise into `stack`, closed by the first; returns how many, below 3 where there is no area."""
    sort_by_place(x, y, num_nodes, order)
    places = drop_equal(x, y, num_nodes, order)
    if places < 3:
        return places
    size = 0
    for at in range(places):
        size = push(x, y, order[at], flat, stack, size, 2)
    least = size + 1
    for at in range(places - 2, -1, -1):
        size = push(x, y, order[at], flat, stack, size, least)
    return size - 1


@lean_kernel
def push(x: Array, y: Array, node: int, flat: float, stack: Array, size: int, least: int) -> int:
    """Add a node, without those before it that then lie inside or on a line; keeps `least` - 1 of them."""
    while size >= least:
        one, two = stack[size - 2], stack[size - 1]
        turn = (x[two] - x[one]) * (y[node] - y[one]) - (y[two] - y[one]) * (x[node] - x[one])
        if turn > flat:
            break
        size -= 1
    stack[size] = node
    return size + 1


@lean_kernel
def is_before(x: Array, y: Array, one: int, other: int) -> bool:
    if x[one] != x[other]:
        return x[one] < x[other]
    if y[one] != y[other]:
        return y[one] < y[other]
    return one < other


@lean_kernel
def sort_by_place(x: Array, y: Array, num_nodes: int, order: Array) -> None:
    """By x, then y, then age."""
    if num_nodes <= RANKED:
        end = whole_blocks(num_nodes)
        for node in range(num_nodes):
            order[rank_of(x, node, end)] = node
        insert_all(x, y, num_nodes, order, 1)  # by x and age they are in order already
        return
    for node in range(num_nodes):
        order[node] = node
    for gap in GAPS:
        insert_all(x, y, num_nodes, order, gap)


@lean_kernel
def insert_all(x: Array, y: Array, num_nodes: int, order: Array, gap: int) -> None:
    """Put every `gap`-th in order."""
    for start in range(gap, num_nodes):
        node, at = order[start], start
        while at >= gap and is_before(x, y, node, order[at - gap]):
            order[at] = order[at - gap]
            at -= gap
        order[at] = node


@lean_kernel
def drop_equal(x: Array, y: Array, num_nodes: int, order: Array) -> int:
    """Of nodes at the same place keep the oldest; returns how many places there are."""
    places = 0
    for at in range(num_nodes):
        node = order[at]
        if places == 0 or x[node] != x[order[places - 1]] or y[node] != y[order[places - 1]]:
            order[places] = node
            places += 1
    return places
