"""Edges as bits: bit j of row i is the edge from node i to node j."""

from __future__ import annotations

import numpy as np

from hotloop.core.kernels import lean_inline_kernel
from hotloop.core.types import Array
from hotloop.workloads.durotaxis.layout_kernels import INS, OUTS, WORD, Colony, Scratch, X

LEVEL = 0.01  # an edge that leads no further aside than this leads neither right nor left
ZERO, ONE = np.uint64(0), np.uint64(1)
SPREAD = np.uint64(0x03F79D71B4CB0A89)  # each of its 64 windows of six bits is another number (de Bruijn)
TOP_SIX = np.uint64(58)
PLACE = np.zeros(64, np.int64)
for _place in range(64):
    PLACE[((int(SPREAD) << _place) & (2**64 - 1)) >> 58] = _place


@lean_inline_kernel
def lowest_bit(word: np.uint64) -> np.uint64:
    return word & (~word + ONE)


@lean_inline_kernel
def place_of(bit: np.uint64) -> int:
    """0 to 63, of a word with one bit."""
    return PLACE[np.int64((bit * SPREAD) >> TOP_SIX)]


@lean_inline_kernel
def words_of(num_nodes: int) -> int:
    return (num_nodes + WORD - 1) // WORD


@lean_inline_kernel
def bit_of(node: int) -> np.uint64:
    return ONE << np.uint64(node % WORD)


@lean_inline_kernel
def clear_rows(links: Array, first: int, end: int, words: int) -> None:
    for row in range(first, end):
        for word in range(words):
            links[row, word] = ZERO


@lean_inline_kernel
def link_chain(links: Array, order: Array, num_nodes: int) -> None:
    """Edges from each node of `order` to the next, and no others."""
    clear_rows(links, 0, num_nodes, words_of(num_nodes))
    for at in range(num_nodes - 1):
        links[order[at], order[at + 1] // WORD] |= bit_of(order[at + 1])


@lean_inline_kernel
def bypass_chosen(colony: Colony, scratch: Scratch) -> None:
    """Survivors are linked to whatever they reach through chosen nodes alone, and not to those any more.

    That is what connecting the predecessors to the successors of each chosen node in turn comes to, in any order.
    """
    num_nodes, links = colony.record.num_nodes, colony.links
    words = words_of(num_nodes)
    chosen = scratch.words[0]
    for word in range(words):
        chosen[word] = ZERO
    for node in range(num_nodes):
        if scratch.chosen[node]:
            chosen[node // WORD] |= bit_of(node)
    for node in range(num_nodes):
        if scratch.chosen[node]:
            continue
        touched = ZERO
        for word in range(words):
            touched |= links[node, word] & chosen[word]
        if touched != ZERO:
            follow_chosen(links, node, words, chosen, scratch.words[1])
            links[node, node // WORD] &= ~bit_of(node)


@lean_inline_kernel
def follow_chosen(links: Array, node: int, words: int, chosen: Array, done: Array) -> None:
    row = links[node]
    for word in range(words):
        done[word] = ZERO
    again = True
    while again:  # a chosen node may lead back to an earlier word
        again = False
        for word in range(words):
            waiting = row[word] & chosen[word] & ~done[word]
            while waiting != ZERO:
                again = words > 1
                bit = lowest_bit(waiting)
                done[word] |= bit
                through = word * WORD + place_of(bit)
                for other in range(words):
                    row[other] |= links[through, other]
                waiting = row[word] & chosen[word] & ~done[word]
    for word in range(words):
        row[word] &= ~chosen[word]


@lean_inline_kernel
def move_links(links: Array, scratch: Scratch, num_nodes: int, kept: int) -> None:
    """Close the gaps that chosen nodes leave in rows and bits, and give each of the `kept` an edge to its child."""
    words, new_words, moved, fresh = words_of(num_nodes), words_of(2 * kept), scratch.moved, scratch.words[2]
    for node in range(num_nodes):
        if scratch.chosen[node]:
            continue
        for word in range(new_words):
            fresh[word] = ZERO
        for word in range(words):
            left = links[node, word]
            while left != ZERO:
                bit = lowest_bit(left)
                left ^= bit
                to = moved[word * WORD + place_of(bit)]
                fresh[to // WORD] |= bit_of(to)
        child = kept + moved[node]
        fresh[child // WORD] |= bit_of(child)
        for word in range(new_words):
            links[moved[node], word] = fresh[word]
    clear_rows(links, kept, 2 * kept, new_words)


@lean_inline_kernel
def count_edges(colony: Colony) -> tuple[int, int]:
    """Degrees and the number of edges; returns how many edges lead right, and how many left."""
    record, links, x = colony.record, colony.links, colony.places[X]
    ins, outs = colony.counts[INS], colony.counts[OUTS]
    num_nodes = record.num_nodes
    edges = right = left = 0
    for node in range(num_nodes):
        ins[node] = 0
    for node in range(num_nodes):
        before = edges
        for word in range(words_of(num_nodes)):
            waiting = links[node, word]
            while waiting != ZERO:
                bit = lowest_bit(waiting)
                waiting ^= bit
                to = word * WORD + place_of(bit)
                ins[to] += 1
                edges += 1
                right += x[to] - x[node] > LEVEL
                left += x[to] - x[node] < -LEVEL
        outs[node] = edges - before
    record.num_edges = edges
    return right, left
