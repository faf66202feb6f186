"""A colony on its substrate: how it begins, is pruned, grows and is measured.

The convex hull of a colony: which nodes are its corners, and its area (Andrew's monotone chain).
"""

from __future__ import annotations

import math

from hotloop.core.kernels import lean_inline_kernel, lean_kernel, next_uniform
from hotloop.core.types import Array
from hotloop.workloads.durotaxis.layout_kernels import (
    AGE,
    ALPHA,
    EXPONENTIAL,
    GAMMA,
    HULL,
    INTENSITY,
    LINEAR,
    NOISE,
    NUM_NUMBERS,
    RANDOM,
    RUNS,
    SEEN_INTENSITY,
    THETA,
    Colony,
    Rules,
    Scratch,
    X,
    Y,
)
from hotloop.workloads.durotaxis.link_kernels import count_edges, link_chain
from hotloop.workloads.durotaxis.selection_kernels import RANKED, fill_block, rank_of, sort_by_x, whole_blocks

GAPS = (701, 301, 132, 57, 23, 10, 4, 1)  # of a shell sort (Ciura 2001)


@lean_inline_kernel
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


@lean_inline_kernel
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


@lean_inline_kernel
def insert_all(x: Array, y: Array, num_nodes: int, order: Array, gap: int) -> None:
    """Put every `gap`-th in order."""
    for start in range(gap, num_nodes):
        node, at = order[start], start
        while at >= gap and is_before(x, y, node, order[at - gap]):
            order[at] = order[at - gap]
            at -= gap
        order[at] = node


@lean_inline_kernel
def drop_equal(x: Array, y: Array, num_nodes: int, order: Array) -> int:
    """Of nodes at the same place keep the oldest; returns how many places there are."""
    places = 0
    for at in range(num_nodes):
        node = order[at]
        if places == 0 or x[node] != x[order[places - 1]] or y[node] != y[order[places - 1]]:
            order[places] = node
            places += 1
    return places


RESPAWN_RADIUS = 10.0
GRID = 1024.0
STEEPER = 2.5  # by how much stiffer a child's place has to be for spawning to have been worth it


@lean_kernel
def start(colony: Colony, rules: Rules, scratch: Scratch) -> None:
    """A new episode: a chain of nodes at the left, on a substrate that may be drawn."""
    record = colony.record
    record.steps = record.drift = record.milestones = record.recoveries = record.over = 0
    record.outcome = RUNS
    for index in range(NUM_NUMBERS):
        record.action[index] = 0.0
    draw_substrate(record, rules)
    record.num_nodes = rules.start_nodes
    for node in range(record.num_nodes):
        x = 0.1 * rules.width * next_uniform(record.generator, 0)
        y = (0.4 + 0.2 * next_uniform(record.generator, 0)) * rules.height
        settle(colony, node, x, y)
    link_and_measure(colony, rules, scratch)


@lean_inline_kernel
def draw_substrate(record, rules: Rules) -> None:
    record.substrate, record.m, record.b = rules.substrate, rules.m, rules.b
    if rules.substrate == RANDOM:
        is_linear = next_uniform(record.generator, 0) < 0.5
        slope, height = next_uniform(record.generator, 0), next_uniform(record.generator, 0)
        if is_linear:
            record.substrate, record.m, record.b = LINEAR, 0.01 + 0.09 * slope, 0.5 + 1.5 * height
        else:
            record.substrate, record.m, record.b = EXPONENTIAL, 0.002 + 0.008 * slope, 0.5 + height


@lean_inline_kernel
def respawn(colony: Colony, rules: Rules, scratch: Scratch) -> None:
    """An empty colony starts again on a circle round its last centroid.

    On a fine grid, so that nodes above each other have the same x whatever the rounding: the older comes first.
    """
    record = colony.record
    centre_x, centre_y = record.centroid[0], record.centroid[1]
    record.recoveries += 1
    record.num_nodes = rules.start_nodes
    for node in range(record.num_nodes):
        angle = 2.0 * math.pi * node / record.num_nodes
        x = into_field(on_grid(centre_x + RESPAWN_RADIUS * math.cos(angle)), rules.margin_x, rules.width)
        y = into_field(on_grid(centre_y + RESPAWN_RADIUS * math.sin(angle)), rules.margin_y, rules.height)
        settle(colony, node, x, y)
    link_and_measure(colony, rules, scratch)


@lean_inline_kernel
def on_grid(value: float) -> float:
    return math.floor(value * GRID + 0.5) / GRID


@lean_inline_kernel
def link_and_measure(colony: Colony, rules: Rules, scratch: Scratch) -> None:
    sort_by_x(colony.places[X], colony.record.num_nodes, scratch.order)
    link_chain(colony.links, scratch.order, colony.record.num_nodes)
    measure(colony, rules, scratch)


@lean_inline_kernel
def into_field(value: float, margin: float, size: float) -> float:
    return min(max(value, margin), size - margin)


@lean_kernel
def settle(colony: Colony, node: int, x: float, y: float) -> None:
    """A newborn node. What it feels is kept: nodes do not move."""
    record, places = colony.record, colony.places
    intensity = record.m * x + record.b if record.substrate == LINEAR else record.b * math.exp(record.m * x)
    places[X, node], places[Y, node], places[INTENSITY, node] = x, y, intensity
    places[SEEN_INTENSITY, node] = math.log1p(intensity) / 6.0
    colony.counts[AGE, node] = 0


@lean_inline_kernel
def plan_moves(num_nodes: int, chosen: Array, moved: Array) -> int:
    """Where each survivor goes when the chosen ones leave no gaps; returns how many survive."""
    kept = 0
    for node in range(num_nodes):
        moved[node] = kept
        kept += 1 - chosen[node]
    return kept


@lean_inline_kernel
def keep_survivors(colony: Colony, scratch: Scratch, kept: int) -> None:
    """Close the gaps among the nodes; those who stay are a step older."""
    places, ages = colony.places, colony.counts[AGE]
    for node in range(colony.record.num_nodes):
        if not scratch.chosen[node]:
            to = scratch.moved[node]
            for row in range(SEEN_INTENSITY + 1):
                places[row, to] = places[row, node]
            ages[to] = ages[node] + 1
    colony.record.num_nodes = kept


@lean_kernel
def spawn(colony: Colony, rules: Rules) -> int:
    """Every node has a child behind it in order; returns how many are on ground enough stiffer than their parents'."""
    record, places = colony.record, colony.places
    gamma, alpha, noise = record.action[GAMMA], record.action[ALPHA], record.action[NOISE]
    angle = record.action[THETA] * (math.pi / 180.0)
    cosine, sine = math.cos(angle), math.sin(angle)
    parents, steeper = record.num_nodes, 0
    for node in range(parents):
        ratio = alpha / places[INTENSITY, node]
        reach = gamma / (1.0 + ratio * ratio) + noise
        x = into_field(places[X, node] + reach * cosine, rules.margin_x, rules.width)
        y = into_field(places[Y, node] + reach * sine, rules.margin_y, rules.height)
        settle(colony, parents + node, x, y)
        steeper += places[INTENSITY, parents + node] - places[INTENSITY, node] >= STEEPER
    record.num_nodes = 2 * parents
    return steeper


@lean_kernel
def measure(colony: Colony, rules: Rules, scratch: Scratch) -> tuple[int, int]:
    """Centroid, hull, degrees and edges; returns how many edges lead right, and how many left."""
    record, x, y = colony.record, colony.places[X], colony.places[Y]
    fill_block(x, record.num_nodes)
    if record.num_nodes > 0:
        sum_x = sum_y = 0.0
        for node in range(record.num_nodes):
            sum_x += x[node]
            sum_y += y[node]
        record.centroid[0], record.centroid[1] = sum_x / record.num_nodes, sum_y / record.num_nodes
    find_hull(colony, rules, scratch)
    return count_edges(colony)
