"""Graphs to wire networks by: small worlds, dense layers, and dense layers turned into small worlds.

Ids are numbers: inputs first, hidden nodes next, outputs last. The same arguments always give the same graph
(numpy's `RandomState`, whose stream is fixed for good).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hotloop.nets.topology.graph import Topology, TopologyError, make_topology

TRIES = 100
"""Draws of a new target before a rewired edge is given up."""
Edges = dict[tuple[int, int], None]  # a set that keeps its order


def small_world(inputs: int, hidden: int, outputs: int, ring_degree: int, rewiring: float, seed: int) -> Topology:
    """A lattice of hidden nodes, each connected to its next `ring_degree // 2` (a ring cut open), some of whose edges
    are rewired to any later hidden node; inputs feed the first `ring_degree` hidden nodes, the last feed the outputs.

    After Watts & Strogatz 1998, with every edge pointing forward.
    """
    _check(inputs, outputs, rewiring)
    if not 2 <= ring_degree < hidden:
        raise TopologyError(
            f"the ring degree is {ring_degree} with {hidden} hidden nodes",
            "it must be at least 2 and below their number",
        )
    first, last = inputs, inputs + hidden - 1
    lattice = [
        (source, source + ahead)
        for source in range(first, last + 1)
        for ahead in range(1, ring_degree // 2 + 1)
        if source + ahead <= last
    ]
    edges = _rewired(lattice, rewiring, seed, lambda source: (source + 1, last + 1))
    ends = min(ring_degree, hidden)
    edges |= {(source, target): None for source in range(inputs) for target in range(first, first + ends)}
    output_ids = range(last + 1, last + 1 + outputs)
    edges |= {(source, target): None for source in range(last + 1 - ends, last + 1) for target in output_ids}
    return make_topology(range(last + 1 + outputs), edges, range(inputs), output_ids)


def dense(inputs: int, hidden: Sequence[int], outputs: int) -> Topology:
    """Layers of the widths `hidden`, every node connected to every node of the next layer."""
    layers = _layers(inputs, hidden, outputs)
    return make_topology(range(layers[-1].stop), _between(layers), layers[0], layers[-1])


def dense_small_world(inputs: int, hidden: Sequence[int], outputs: int, rewiring: float, seed: int) -> Topology:
    """Dense layers, some of whose edges are rewired to any node of any later layer: shortcuts."""
    _check(inputs, outputs, rewiring)
    layers = _layers(inputs, hidden, outputs)
    next_layer = {node: after.start for layer, after in zip(layers, layers[1:], strict=False) for node in layer}
    end = layers[-1].stop
    edges = _rewired(_between(layers), rewiring, seed, lambda source: (next_layer[source], end))
    return make_topology(range(end), edges, layers[0], layers[-1])


def _rewired(
    lattice: list[tuple[int, int]], rewiring: float, seed: int, later: Callable[[int], tuple[int, int]]
) -> Edges:
    """Each edge of `lattice` with probability `rewiring` replaced by one to a node of `later(source)` that is not
    there yet; lost where there is none, or none is found."""
    draw = np.random.RandomState(seed)
    edges = dict.fromkeys(lattice)
    for source, target in lattice:
        if draw.rand() >= rewiring:
            continue
        del edges[source, target]
        start, end = later(source)
        for _ in range(TRIES if start < end else 0):
            edge = (source, int(draw.randint(start, end)))
            if edge not in edges:
                edges[edge] = None
                break
    return edges


def _layers(inputs: int, hidden: Sequence[int], outputs: int) -> list[range]:
    _check(inputs, outputs, 0.0)
    if any(width < 1 for width in hidden):
        raise TopologyError(f"the layers have {list(hidden)} nodes", "every layer needs at least one")
    ends = np.cumsum([inputs, *hidden, outputs]).tolist()
    return [range(start, end) for start, end in zip([0, *ends], ends, strict=False)]


def _between(layers: list[range]) -> list[tuple[int, int]]:
    pairs = zip(layers, layers[1:], strict=False)
    return [(source, target) for layer, after in pairs for source in layer for target in after]


def _check(inputs: int, outputs: int, rewiring: float) -> None:
    if inputs < 1 or outputs < 1:
        raise TopologyError(f"{inputs} inputs and {outputs} outputs", "there must be at least one of each")
    if not 0.0 <= rewiring <= 1.0:
        raise TopologyError(f"the rewiring probability is {rewiring}", "it must be between 0 and 1")
