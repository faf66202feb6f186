"""How near an update comes to PyTorch's own matrix products: its floating-point work, their speed, and the ratio.

That speed is PyTorch's and not the core's limit: on an AMD EPYC with AVX-512 it makes 115 GFLOP per second where XLA
and our own products make 250 to 280. So a share of it is always told as PyTorch's.

An update of wide networks is bounded by its matrix products, whatever the code around them: a SAC update of 256-256
networks on 256 rows is half a GFLOP, four to six milliseconds of one core. What runs near that bound gains nothing from
another library; what runs at a tenth of it does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hotloop.doctor.trace import UPDATE, Trace
from hotloop.render.numbers import percent

NEAR = 0.6
"""From this share on the arithmetic itself is the cost, and only fewer or smaller products would be faster."""


@dataclass(frozen=True)
class Roofline:
    """`seconds` for one update of so many `operations`, on `cores` of this `speed` each."""

    operations: float
    seconds: float
    speed: float  # operations per second of one core
    cores: int = 1

    @property
    def least_seconds(self) -> float:
        """What the products alone would take."""
        return self.operations / (self.speed * self.cores)

    @property
    def share(self) -> float:
        return min(1.0, self.least_seconds / self.seconds)

    @property
    def near(self) -> bool:
        return self.share >= NEAR

    def sentence(self) -> str:
        """For a report."""
        where = "this core" if self.cores == 1 else f"these {self.cores} cores"
        about = (
            f"Updates run at {percent(self.share)} of the speed of PyTorch's own matrix products on {where}: "
            f"{_scaled(self.operations)} in {self.seconds * 1e3:.3g} ms, where its products of 512 x 512 make "
            f"{_scaled(self.speed * self.cores)} per second (other code may multiply faster)"
        )
        if self.near:
            return (
                f"{about}. PyTorch has little to gain on {where} but by fewer products (a smaller network, a smaller "
                "batch, fewer updates) or by more cores."
            )
        return f"{about}. The rest of an update is not arithmetic."

    def as_json(self) -> dict[str, Any]:
        return {
            "share": self.share,
            "operations_per_update": self.operations,
            "seconds_per_update": self.seconds,
            "operations_per_core_second": self.speed,
            "cores": self.cores,
            "near": self.near,
            "sentence": self.sentence(),
        }


def roofline(trace: Trace) -> Roofline | None:
    """Of the updates of a trace; None where their products were not counted."""
    counted, updates, seconds = trace.counted, trace.counts.updates, trace.phases.get(UPDATE, 0.0)
    if not (counted.update_operations and counted.matrix_speed and updates and seconds > 0):
        return None
    cores = max(1, min(trace.machine.get("torch_threads") or 1, trace.machine.get("cores") or 1))
    return Roofline(counted.update_operations, seconds / updates, counted.matrix_speed, cores)


def arithmetic_share(trace: Trace) -> float:
    """The part of loop time that the products of updates would take by themselves: no code takes it away."""
    found = roofline(trace)
    return trace.share(UPDATE) * found.share if found is not None else 0.0


def matrix_speed(seconds: float = 0.2) -> float:
    """Operations per second of processor time that this core makes of float32 products."""
    import torch

    from hotloop.doctor.recorder.learning import measure_matrix_speed

    return measure_matrix_speed(torch, seconds)


def count_products(work: Callable[[], Any]) -> float:
    """Floating-point operations of the matrix products that PyTorch makes while `work` runs in this thread."""
    import torch

    from hotloop.doctor.recorder.learning import counting_mode

    found = [0.0]

    def add(operations: float) -> None:
        found[0] += operations

    with counting_mode(torch, add):
        work()
    return found[0]


def _scaled(operations: float) -> str:
    return f"{operations / 1e9:.3g} GFLOP" if operations >= 1e8 else f"{operations / 1e6:.3g} MFLOP"
