"""The k left-most of n nodes by partial selection: linear time, and other nodes where two lie equally far left.

    hotloop prove examples/pairs/leftmost.py

`argpartition` promises which values are the k smallest, not in which order they come, nor which of equal ones. The
first pair differs by order, on some machines only where there are ties. The second sorts what it found and differs
where there are ties, which no given input has: `prove` makes them. The third breaks ties by age, as plain does.
"""

import numpy as np

import hotloop

K = 20


def by_sorting(x):
    """Nodes by position, older ones first among equals."""
    return np.sort(np.argsort(x, kind="stable")[:K])


def in_order(x):
    return np.argsort(x, kind="stable")[:K]


def make(size):
    return np.random.default_rng(0).uniform(0.0, 600.0, size=size)


@hotloop.pair(in_order, make, sizes=(64, 4096), name="argpartition as it comes")
def as_it_comes(x):
    return np.argpartition(x, K)[:K] if len(x) > K else np.argsort(x, kind="stable")


@hotloop.pair(by_sorting, make, sizes=(64, 4096), name="argpartition, sorted")
def sorted_afterwards(x):
    return np.sort(np.argpartition(x, K)[:K]) if len(x) > K else np.arange(len(x))


@hotloop.pair(by_sorting, make, sizes=(64, 4096), name="argpartition, ties by age")
def ties_by_age(x):
    if len(x) <= K:
        return np.arange(len(x))
    last = np.partition(x, K - 1)[K - 1]
    surely = np.flatnonzero(x < last)
    return np.sort(np.concatenate([surely, np.flatnonzero(x == last)[: K - len(surely)]]))
