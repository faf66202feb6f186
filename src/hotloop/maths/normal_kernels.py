"""Standard normal numbers from a generator whose state is one counter: the ziggurat of Marsaglia and Tsang (2000).

An update of an actor-critic needs thousands of them. By Box and Muller each costs a logarithm and a cosine; here most
cost one draw, a comparison and a product.
"""

from __future__ import annotations

import math

import numpy as np

from hotloop.core.kernels import kernel, next_uint64, next_uniform

LAYERS = 128
TAIL = 3.442619855899
"""Where the lowest layer ends and the tail begins."""
AREA = 9.91256303526217e-3
"""Of each layer, the tail belonging to the lowest."""


def _edges() -> np.ndarray:
    """Right edges of the layers [129], from the lowest (its tail as a rectangle) to 0 at the top."""
    density = lambda x: math.exp(-0.5 * x * x)  # noqa: E731
    edges = [AREA / density(TAIL), TAIL]
    while len(edges) < LAYERS:
        edges.append(math.sqrt(-2.0 * math.log(AREA / edges[-1] + density(edges[-1]))))
    return np.array([*edges, 0.0])


EDGES = _edges()
SURE = EDGES[1:] / EDGES[:-1]
"""Share of each layer that lies under the curve whatever the height, [128]."""


@kernel
def next_tail(state):
    """A number beyond TAIL (Marsaglia 1964)."""
    while True:
        x = -math.log(1.0 - next_uniform(state, 0)) / TAIL
        y = -math.log(1.0 - next_uniform(state, 0))
        if y + y > x * x:
            return TAIL + x


@kernel
def fill_normals(state, out):
    """Fill `out` [n] float32, advancing the generator `state` [1] uint64."""
    for i in range(out.size):
        while True:
            bits = next_uint64(state, 0)
            layer = int(bits & np.uint64(LAYERS - 1))  # the number takes the upper 53 bits: no bit serves both
            u = 2.0 * (float(bits >> np.uint64(11)) * (1.0 / 9007199254740992.0)) - 1.0
            x = u * EDGES[layer]
            if abs(u) < SURE[layer]:
                out[i] = x
                break
            if layer == 0:
                out[i] = math.copysign(next_tail(state), u)
                break
            outer, inner = EDGES[layer], EDGES[layer + 1]
            high = math.exp(-0.5 * (inner * inner - x * x))
            low = math.exp(-0.5 * (outer * outer - x * x))
            if low + next_uniform(state, 0) * (high - low) < 1.0:
                out[i] = x
                break
