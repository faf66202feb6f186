"""Drawing by priority: a sum over all of them for every batch, and a tree of sums, which is written to at every batch.

    hotloop prove examples/cases/sum_tree.py

What a call answers depends on the calls before it, so that this is a case and no pair of functions.
"""

from functools import partial

import numpy as np

import hotloop

BATCH = 32


class PlainPriorities:
    def __init__(self, capacity):
        self.priority = np.ones(capacity)

    def draw_and_set(self, shares, new):
        """The rows at these shares of the whole; then they get new priorities."""
        sums = np.cumsum(self.priority)
        rows = np.searchsorted(sums, shares * sums[-1], side="right")
        self.priority[rows] = new
        return {"rows": rows, "total": sums[-1]}


class SumTree:
    """Each node holds the sum of its two children; the leaves are the priorities."""

    def __init__(self, capacity):
        self.num_leaves = 1 << (capacity - 1).bit_length()
        self.sums = np.zeros(2 * self.num_leaves)
        self.sums[self.num_leaves :][:capacity] = 1.0
        for node in range(self.num_leaves - 1, 0, -1):
            self.sums[node] = self.sums[2 * node] + self.sums[2 * node + 1]

    def draw_and_set(self, shares, new):
        total = self.sums[1]
        left, node = shares * total, np.ones(len(shares), np.int64)
        while node[0] < self.num_leaves:
            node = 2 * node
            is_beyond = left >= self.sums[node]
            left = np.where(is_beyond, left - self.sums[node], left)
            node = node + is_beyond
        self.sums[node] = new
        rows = node - self.num_leaves
        while node[0] > 1:
            node = np.unique(node // 2)
            self.sums[node] = self.sums[2 * node] + self.sums[2 * node + 1]
        return {"rows": rows, "total": total}


def build(capacity):
    def calls(priorities):
        rng = np.random.default_rng(0)  # whole priorities: then sums are exact in any order
        return lambda: priorities.draw_and_set(rng.random(BATCH), rng.integers(1, 100, BATCH).astype(float))

    return hotloop.Programs(plain=calls(PlainPriorities(capacity)), fast=calls(SumTree(capacity)), calls=200)


@hotloop.cases("a batch drawn by priority, then new priorities for it")
def sum_tree_cases():
    return [hotloop.Case("sum-tree", f"n{capacity}", partial(build, capacity)) for capacity in (1_000, 1_000_000)]
