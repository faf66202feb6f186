"""Nodes and edges of all colonies laid end to end for a saved state, and back."""

from __future__ import annotations

from hotloop.core.kernels import lean_kernel
from hotloop.core.types import Array
from hotloop.workloads.durotaxis.colony_kernels import measure, settle
from hotloop.workloads.durotaxis.layout_kernels import AGE, WORD, Colony, Scratch, X, Y
from hotloop.workloads.durotaxis.link_kernels import ZERO, bit_of, clear_rows, lowest_bit, place_of, words_of


@lean_kernel
def pack_all(colonies: tuple[Array, ...], positions: Array, ages: Array, edges: Array) -> None:
    """Into `positions` [V, 2], `ages` [V] and `edges` [E, 2]."""
    records, places, counts, links = colonies
    at = edge = 0
    for env in range(records.shape[0]):
        num_nodes = records[env].num_nodes
        for node in range(num_nodes):
            positions[at + node, 0], positions[at + node, 1] = places[env, X, node], places[env, Y, node]
            ages[at + node] = counts[env, AGE, node]
            for word in range(words_of(num_nodes)):
                left = links[env, node, word]
                while left != ZERO:
                    bit = lowest_bit(left)
                    left ^= bit
                    edges[edge, 0], edges[edge, 1] = node, word * WORD + place_of(bit)
                    edge += 1
        at += num_nodes


@lean_kernel
def unpack_all(
    colonies: tuple[Array, ...], scratch_arrays: tuple[Array, ...], rules_row: Array,
    positions: Array, ages: Array, edges: Array,
) -> None:  # fmt: skip
    """Nodes and edges of colonies whose records are set already."""
    records, places, counts, links = colonies
    at = edge = 0
    for env in range(records.shape[0]):
        colony = Colony(records[env], places[env], counts[env], links[env])
        num_nodes, num_edges = colony.record.num_nodes, colony.record.num_edges
        clear_rows(colony.links, 0, num_nodes, words_of(num_nodes))
        for node in range(num_nodes):
            settle(colony, node, positions[at + node, 0], positions[at + node, 1])
            colony.counts[AGE, node] = ages[at + node]
        for index in range(edge, edge + num_edges):
            colony.links[edges[index, 0], edges[index, 1] // WORD] |= bit_of(edges[index, 1])
        measure(colony, rules_row[0], Scratch(*scratch_arrays))
        at += num_nodes
        edge += num_edges
