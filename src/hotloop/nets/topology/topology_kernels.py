"""Forward and backward over a whole graph, each as one call of machine code.

Values lie [V, B], so that an edge is one multiply-add over a contiguous row of the batch; four edges into a node are
added at a time, which loads and stores the sum once for four. `reassoc` lets the sums of the backward vectorize, and
`contract` fuses multiply and add; neither depends on anything but the shapes, so the same call gives the same bits.
The kernels allocate nothing and are compiled without reference counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from numba.core.options import DefaultOptions

from hotloop.core.kernels import compiled
from hotloop.core.types import Array

LINEAR, LEAKY_RELU, TANH = range(3)
CODES = {"leaky_relu": LEAKY_RELU, "tanh": TANH}
LEAK = 0.1

# Numba's own name for it has an underscore: a version that drops it compiles the same code, with counts.
_WITHOUT_COUNTS: dict[str, Any] = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}


def _graph_kernel(function: Callable[..., Any]) -> Any:
    options = {"fastmath": {"reassoc", "contract", "nsz"}, **_WITHOUT_COUNTS}
    return compiled(function, **options)


@_graph_kernel
def forward_kernel(
    obs: Array,  # [B, I]
    weight: Array,  # [E]
    bias: Array,  # [V - I]
    starts: Array,  # [V - I + 1]
    sources: Array,  # [E]
    codes: Array,  # [V - I] uint8
    outputs: Array,  # [O] positions
    values: Array,  # [V, B], written
    out: Array,  # [B, O], written
) -> None:
    num_rows, num_inputs = obs.shape
    for i in range(num_inputs):
        for b in range(num_rows):
            values[i, b] = obs[b, i]
    for i in range(len(bias)):
        row = values[num_inputs + i]
        row[:] = bias[i]
        edge, end = starts[i], starts[i + 1]
        while edge + 4 <= end:
            _add_four(row, values, sources, weight, edge)
            edge += 4
        while edge < end:
            _add_one(row, values[sources[edge]], weight[edge])
            edge += 1
        _activate(row, codes[i])
    for j in range(len(outputs)):
        row = values[outputs[j]]
        for b in range(num_rows):
            out[b, j] = row[b]


@_graph_kernel
def _add_four(row: Array, values: Array, sources: Array, weight: Array, edge: int) -> None:
    first, second = values[sources[edge]], values[sources[edge + 1]]
    third, fourth = values[sources[edge + 2]], values[sources[edge + 3]]
    w0, w1, w2, w3 = weight[edge], weight[edge + 1], weight[edge + 2], weight[edge + 3]
    for b in range(len(row)):
        row[b] += w0 * first[b] + w1 * second[b] + w2 * third[b] + w3 * fourth[b]


@_graph_kernel
def _add_one(row: Array, source: Array, weight: float) -> None:
    for b in range(len(row)):
        row[b] += weight * source[b]


@_graph_kernel
def _activate(row: Array, code: int) -> None:
    if code == LEAKY_RELU:
        leak = row.dtype.type(LEAK)
        for b in range(len(row)):
            row[b] = row[b] if row[b] > 0 else leak * row[b]
    elif code == TANH:
        for b in range(len(row)):
            row[b] = math.tanh(row[b])


@_graph_kernel
def backward_kernel(
    weight: Array,
    starts: Array,
    sources: Array,
    codes: Array,
    outputs: Array,
    values: Array,  # [V, B], as the forward left them
    out_gradient: Array,  # [B, O]
    gradient: Array,  # [V, B], written: that of every node
    weight_gradient: Array,  # [E], written
    bias_gradient: Array,  # [V - I], written
) -> None:
    num_inputs = len(values) - len(codes)
    gradient[:] = 0
    for j in range(len(outputs)):
        row = gradient[outputs[j]]
        for b in range(len(row)):
            row[b] = out_gradient[b, j]
    for i in range(len(codes) - 1, -1, -1):
        row = gradient[num_inputs + i]
        _times_slope(row, values[num_inputs + i], codes[i])
        bias_gradient[i] = _sum(row)
        for edge in range(starts[i], starts[i + 1]):  # two at a time was slower: twice the checks for overlap
            source = sources[edge]
            weight_gradient[edge] = _through(row, values[source], gradient[source], weight[edge])


@_graph_kernel
def _times_slope(row: Array, value: Array, code: int) -> None:
    """Both slopes follow from the activated value: its sign, or 1 - tanh^2."""
    if code == LEAKY_RELU:
        leak = row.dtype.type(LEAK)
        for b in range(len(row)):
            row[b] = row[b] if value[b] > 0 else leak * row[b]
    elif code == TANH:
        for b in range(len(row)):
            row[b] -= row[b] * value[b] * value[b]


@_graph_kernel
def _sum(row: Array) -> float:
    total = row.dtype.type(0)
    for b in range(len(row)):
        total += row[b]
    return total


@_graph_kernel
def _through(row: Array, value: Array, gradient: Array, weight: float) -> float:
    """Hand the gradient of a node on to one of its sources; that of the weight between them."""
    total = row.dtype.type(0)
    for b in range(len(row)):
        total += row[b] * value[b]
        gradient[b] += weight * row[b]
    return total
