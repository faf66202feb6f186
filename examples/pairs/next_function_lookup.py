"""Which request waits for this function? A look-up instead of a scan, and requests filed under the wrong name.

    hotloop prove examples/pairs/next_function_lookup.py

A request is a chain of functions to be placed in order; each offer of a function goes to the oldest request that needs
it next. The first look-up files a request under the function just placed rather than under the one that comes next, so
that chains are built in a wrong order. The second files it where it belongs.
"""

import heapq

import numpy as np

import hotloop

CHAINS = [("nat", "fw", "ids"), ("nat", "fw"), ("fw", "nat", "ids"), ("nat", "ids", "fw")]


def make(size):
    generator = np.random.default_rng(0)
    chains = [CHAINS[number] for number in generator.integers(len(CHAINS), size=size)]
    offers = [("nat", "fw", "ids")[number] for number in generator.integers(3, size=6 * size + 1)]
    return {"chains": chains, "offers": offers}


def by_scan(chains, offers):
    """What was placed for each request, in order."""
    placed = [[] for _ in chains]
    for offer in offers:
        for chain, own in zip(chains, placed, strict=True):
            if len(own) < len(chain) and chain[len(own)] == offer:
                own.append(offer)
                break
    return placed


def by_look_up(chains, offers, file_under):
    waiting = {name: [] for chain in chains for name in chain}
    for number, chain in enumerate(chains):
        heapq.heappush(waiting[chain[0]], number)
    placed = [[] for _ in chains]
    for offer in offers:
        if waiting.get(offer):
            number = heapq.heappop(waiting[offer])
            placed[number].append(offer)
            if len(placed[number]) < len(chains[number]):
                heapq.heappush(waiting[file_under(chains[number], placed[number])], number)
    return placed


@hotloop.pair(by_scan, make, name="filed under the function just placed")
def filed_under_the_last(chains, offers):
    return by_look_up(chains, offers, lambda chain, placed: placed[-1])


@hotloop.pair(by_scan, make, name="filed under the next function")
def filed_under_the_next(chains, offers):
    return by_look_up(chains, offers, lambda chain, placed: chain[len(placed)])
