"""A colony on its substrate: how it begins, is pruned, grows and is measured."""

from __future__ import annotations

import math

from hotloop.core.kernels import next_uniform
from hotloop.core.types import Array
from hotloop.envs.durotaxis.hull_kernels import find_hull
from hotloop.envs.durotaxis.layout_kernels import (
    AGE,
    ALPHA,
    EXPONENTIAL,
    GAMMA,
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
from hotloop.envs.durotaxis.link_kernels import count_edges, link_chain
from hotloop.envs.durotaxis.selection_kernels import fill_block, sort_by_x
from hotloop.envs.lean_kernels import lean_kernel

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


@lean_kernel
def draw_substrate(record, rules: Rules) -> None:
    record.substrate, record.m, record.b = rules.substrate, rules.m, rules.b
    if rules.substrate == RANDOM:
        is_linear = next_uniform(record.generator, 0) < 0.5
        slope, height = next_uniform(record.generator, 0), next_uniform(record.generator, 0)
        if is_linear:
            record.substrate, record.m, record.b = LINEAR, 0.01 + 0.09 * slope, 0.5 + 1.5 * height
        else:
            record.substrate, record.m, record.b = EXPONENTIAL, 0.002 + 0.008 * slope, 0.5 + height


@lean_kernel
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


@lean_kernel
def on_grid(value: float) -> float:
    return math.floor(value * GRID + 0.5) / GRID


@lean_kernel
def link_and_measure(colony: Colony, rules: Rules, scratch: Scratch) -> None:
    sort_by_x(colony.places[X], colony.record.num_nodes, scratch.order)
    link_chain(colony.links, scratch.order, colony.record.num_nodes)
    measure(colony, rules, scratch)


@lean_kernel
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


@lean_kernel
def plan_moves(num_nodes: int, chosen: Array, moved: Array) -> int:
    """Where each survivor goes when the chosen ones leave no gaps; returns how many survive."""
    kept = 0
    for node in range(num_nodes):
        moved[node] = kept
        kept += 1 - chosen[node]
    return kept


@lean_kernel
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
