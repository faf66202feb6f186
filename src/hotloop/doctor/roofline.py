"""How near an update comes to what its core can multiply: its floating-point work, the core's speed, and their ratio.

An update of wide networks is bounded by its matrix products, whatever the code around them: a SAC update of 256-256
networks on 256 rows is half a GFLOP, four to six milliseconds of one core. What runs near that bound gains nothing from
another library; what runs at a tenth of it does. Only linear layers are counted, which is nearly all of such work.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

SIDE = 512
"""Of the square matrices that the core's speed is measured with: large enough for its best, and it fits a cache."""
NEAR = 0.6
"""From this share on, the arithmetic itself is the cost, and only fewer or smaller products would be faster."""


@dataclass(frozen=True)
class LinearCalls:
    """What one update does with one linear layer: how often it goes forward and backward, with how many rows each."""

    num_in: int
    num_out: int
    rows: int
    forwards: int = 1
    backwards: int = 1
    weights_wanted: bool = True  # on the way back: the gradient by its weights
    inputs_wanted: bool = True  # and by its inputs; a first layer's is wanted by nobody

    @property
    def operations(self) -> float:
        """A multiplication and an addition for each weight and row, forward; the same for each gradient wanted."""
        products = self.forwards + self.backwards * (self.weights_wanted + self.inputs_wanted)
        return 2.0 * self.rows * self.num_in * self.num_out * products


def network_calls(widths: Iterable[int], rows: int, forwards: int = 1, backwards: int = 1) -> list[LinearCalls]:
    """Of a whole multilayer network with these widths, from its inputs to its outputs."""
    sizes = list(widths)
    return [
        LinearCalls(before, after, rows, forwards, backwards, inputs_wanted=index > 0)
        for index, (before, after) in enumerate(zip(sizes, sizes[1:], strict=False))
    ]


def count_operations(calls: Iterable[LinearCalls]) -> float:
    """Floating-point operations of one update."""
    return sum(call.operations for call in calls)


def measure_matrix_speed(seconds: float = 0.2) -> float:
    """Floating-point operations per second of processor time that this core makes of float32 products.

    Processor time of all threads counts, so that the answer is one core's, however many multiply.
    """
    import torch

    left, right = torch.rand(SIDE, SIDE), torch.rand(SIDE, SIDE)
    out = torch.empty(SIDE, SIDE)
    torch.mm(left, right, out=out)
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while len(taken) < 3 or time.perf_counter() < end:
        begin = time.process_time()
        for _ in range(4):
            torch.mm(left, right, out=out)
        taken.append((time.process_time() - begin) / 4)
    return LinearCalls(SIDE, SIDE, SIDE, backwards=0).operations / median(taken)


@dataclass(frozen=True)
class Roofline:
    """`seconds` of processor time for one update of so many `operations`, on a core of this `speed`."""

    operations: float
    seconds: float
    speed: float  # operations per second

    @property
    def least_seconds(self) -> float:
        """What the products alone would take."""
        return self.operations / self.speed

    @property
    def share(self) -> float:
        return self.least_seconds / self.seconds

    def sentence(self) -> str:
        """For a report."""
        took, least = f"{self.seconds * 1e3:.3g} ms", f"{self.least_seconds * 1e3:.3g} ms"
        about = (
            f"this update runs at {self.share:.0%} of your core's matrix speed: {_scaled(self.operations)} in {took}, "
            f"where {_scaled(self.speed)} a second would take {least}"
        )
        if self.share >= NEAR:
            return f"{about}; only smaller networks, smaller batches or fewer updates would be much faster"
        return f"{about}; the rest is not arithmetic"


def _scaled(operations: float) -> str:
    return f"{operations / 1e9:.3g} GFLOP" if operations >= 1e8 else f"{operations / 1e6:.3g} MFLOP"
