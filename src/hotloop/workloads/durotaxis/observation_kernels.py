"""What a policy sees of every colony, laid end to end."""

from __future__ import annotations

import math

import numpy as np

from hotloop.core.kernels import lean_inline_kernel, lean_kernel
from hotloop.core.types import Array
from hotloop.workloads.durotaxis.layout_kernels import (
    AGE,
    HULL,
    INS,
    INTENSITY,
    OUTS,
    SCALED,
    SEEN_INTENSITY,
    WORD,
    Colony,
    Rules,
    Scratch,
    X,
    Y,
)
from hotloop.workloads.durotaxis.link_kernels import ZERO, lowest_bit, place_of, words_of
from hotloop.workloads.durotaxis.selection_kernels import whole_blocks

NUM_NODE_FEATURES, NUM_EDGE_FEATURES, NUM_GRAPH_FEATURES = 11, 3, 19
MOST_CENTRAL = 10.0


@lean_kernel
def observe_all(
    colonies: tuple[Array, ...],
    scratch_arrays: tuple[Array, ...],
    rules_row: Array,
    wanted: Array,  # [N] bool: whom to look at
    offsets: Array,  # [2, N + 1] int64
    nodes: Array,  # [V, 11] float32, and so on down: written
    edges: Array,  # [E, 2] int32
    edge_features: Array,  # [E, 3] float32
    graph: Array,  # [N, 19] float32
) -> None:
    records, places, counts, links = colonies
    scratch, rules = Scratch(*scratch_arrays), rules_row[0]
    for env in range(records.shape[0]):
        if wanted[env]:
            colony = Colony(records[env], places[env], counts[env], links[env])
            observe_nodes(colony, rules, scratch.sums, nodes[offsets[0, env] : offsets[0, env + 1]])
            first, last = offsets[1, env], offsets[1, env + 1]
            observe_edges(colony, rules, edges[first:last], edge_features[first:last])
            observe_graph(colony, rules, graph[env])


@lean_inline_kernel
def observe_nodes(colony: Colony, rules: Rules, sums: Array, out: Array) -> None:
    record, places, counts = colony.record, colony.places, colony.counts
    num_nodes, x, y = record.num_nodes, places[X], places[Y]
    sum_distances(x, y, num_nodes, sums)
    for node in range(num_nodes):
        aside, along = x[node] - record.centroid[0], y[node] - record.centroid[1]
        age = counts[AGE, node]
        out[node, 0], out[node, 1] = x[node] / rules.width, y[node] / rules.height
        out[node, 2] = places[SEEN_INTENSITY, node]
        out[node, 3], out[node, 4] = SCALED[counts[INS, node]], SCALED[counts[OUTS, node]]
        central = 1.0 / (sums[node] / (num_nodes - 1) + 1e-6) if num_nodes > 1 else 1.0
        out[node, 5] = min(central * rules.width, MOST_CENTRAL)
        out[node, 6] = math.sqrt(aside * aside + along * along) / rules.width
        out[node, 7], out[node, 8] = counts[HULL, node], age == 0
        out[node, 9], out[node, 10] = age / 100.0, max(age - 1, 0) / 50.0


@lean_inline_kernel
def sum_distances(x: Array, y: Array, num_nodes: int, sums: Array) -> None:
    """Of each node to all others.

    Every pair is taken twice, which leaves the inner loop without a running sum: the compiler then does it for several
    nodes at once. Roots of single precision are twice as fast and as exact as the observation, which is single too.
    """
    end = whole_blocks(num_nodes)
    for node in range(end):
        sums[node] = 0.0
    for node in range(num_nodes):
        here_x, here_y = x[node], y[node]
        for other in range(end):
            aside, along = x[other] - here_x, y[other] - here_y
            sums[other] += np.sqrt(np.float32(aside * aside + along * along))


@lean_inline_kernel
def observe_edges(colony: Colony, rules: Rules, edges: Array, features: Array) -> None:
    """Sorted by where they lead from, then where to."""
    num_nodes, links, x, y = colony.record.num_nodes, colony.links, colony.places[X], colony.places[Y]
    words, at = words_of(num_nodes), 0
    for node in range(num_nodes):
        for word in range(words):
            waiting = links[node, word]
            while waiting != ZERO:
                bit = lowest_bit(waiting)
                waiting ^= bit
                to = word * WORD + place_of(bit)
                aside, along = x[to] - x[node], y[to] - y[node]
                length = math.sqrt(aside * aside + along * along)
                scale = 1.0 / length if length > 0.0 else 0.0
                edges[at, 0], edges[at, 1] = node, to
                features[at, 0], features[at, 1], features[at, 2] = length / rules.width, aside * scale, along * scale
                at += 1


@lean_inline_kernel
def observe_graph(colony: Colony, rules: Rules, out: Array) -> None:
    record, counts = colony.record, colony.counts
    num_nodes, num_edges = record.num_nodes, record.num_edges
    intensity, seen = colony.places[INTENSITY], colony.places[SEEN_INTENSITY]
    for column in range(NUM_GRAPH_FEATURES):
        out[column] = 0.0
    if num_nodes == 0:
        return
    most_links, stiffest, stiffness = 0, 0.0, 0.0
    for node in range(num_nodes):
        most_links = max(most_links, counts[INS, node] + counts[OUTS, node])
        stiffest = max(stiffest, seen[node])
        stiffness += intensity[node]
    out[0], out[1] = SCALED[num_nodes], scaled_count(num_edges)
    out[2] = num_edges / (num_nodes * (num_nodes - 1)) if num_nodes > 1 else 0.0
    out[3], out[4] = record.centroid[0] / rules.width, record.centroid[1] / rules.height
    observe_box(colony, rules, out)
    out[12] = record.hull_area / (rules.width * rules.height)
    out[13], out[14] = scaled(2.0 * num_edges / num_nodes), SCALED[most_links]
    out[15] = scaled_count(2 * num_edges)
    out[16], out[17], out[18] = scaled(stiffness / num_nodes), stiffest, scaled(stiffness)


@lean_inline_kernel
def observe_box(colony: Colony, rules: Rules, out: Array) -> None:
    x, y = colony.places[X], colony.places[Y]
    left, right, bottom, top = x[0], x[0], y[0], y[0]
    for node in range(colony.record.num_nodes):
        left, right = min(left, x[node]), max(right, x[node])
        bottom, top = min(bottom, y[node]), max(top, y[node])
    out[5], out[6] = left / rules.width, bottom / rules.height
    out[7], out[8] = right / rules.width, top / rules.height
    out[9], out[10] = (right - left) / rules.width, (top - bottom) / rules.height
    out[11] = (right - left) * (top - bottom) / (rules.width * rules.height)


@lean_inline_kernel
def scaled(value: float) -> float:
    return math.log1p(value) / 6.0


@lean_inline_kernel
def scaled_count(count: int) -> float:
    return SCALED[count] if count < len(SCALED) else scaled(count)


@lean_kernel
def copy_others(
    wanted: Array,  # [N] bool: everybody else is copied, from one `Graphs` to another
    nodes: Array, edges: Array, edge_features: Array, graph: Array, at_node: Array, at_edge: Array,
    to_nodes: Array, to_edges: Array, to_edge_features: Array, to_graph: Array, to_node: Array, to_edge: Array,
) -> None:  # fmt: skip
    for env in range(wanted.shape[0]):
        if not wanted[env]:
            copy_rows(nodes, at_node[env], at_node[env + 1], to_nodes, to_node[env])
            copy_rows(edges, at_edge[env], at_edge[env + 1], to_edges, to_edge[env])
            copy_rows(edge_features, at_edge[env], at_edge[env + 1], to_edge_features, to_edge[env])
            copy_rows(graph, env, env + 1, to_graph, env)


@lean_inline_kernel
def copy_rows(values: Array, first: int, end: int, out: Array, at: int) -> None:
    for row in range(end - first):
        for column in range(values.shape[1]):
            out[at + row, column] = values[first + row, column]
