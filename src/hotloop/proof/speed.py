"""How much faster: both programs interleaved in one process, since a machine's speed drifts while it is measured.

One sample repeats a call for about ten milliseconds; samples alternate A B, B A, A B ...; each neighboring
pair gives one ratio. The answer is their median, with the interval that order statistics give it: no assumption
about the noise, and outliers of a busy machine move it little. The clock is the processor time of this process:
both programs run on one thread and wait for nothing, so on a quiet machine it is the time on the wall, and on a shared
one it leaves out what others took.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from hotloop.core.intervals import median_interval

Call = Callable[[], Any]
Clock = Callable[[], float]

SAMPLE_SECONDS = 0.01
UNCOUNTED = 2
"""One call goes uncounted for so many counted ones: right after another program, an update may cost half more."""
WARM_UP_SECONDS = 0.1
MIN_PAIRS = 7
MAX_PAIRS = 301


@dataclass(frozen=True)
class Speed:
    """`ratio` above 1: the second call is that many times faster; `low` and `high` enclose it with 95 %."""

    ratio: float
    low: float
    high: float
    first_seconds: float
    second_seconds: float


def measure(first: Call, second: Call, seconds: float, clock: Clock = time.process_time) -> Speed:
    """The time of `first` over that of `second`, in about `seconds` (more where seven pairs need longer)."""
    counts = (_warm_up(first, clock), _warm_up(second, clock))
    gc.collect()
    times: list[tuple[float, float]] = []
    end = clock() + seconds
    while len(times) < MIN_PAIRS or (clock() < end and len(times) < MAX_PAIRS):
        if len(times) % 2:
            slower = _sample(second, counts[1], clock)
            times.append((_sample(first, counts[0], clock), slower))
        else:
            times.append((_sample(first, counts[0], clock), _sample(second, counts[1], clock)))
    ratios = [one / other for one, other in times]
    low, high = median_interval(ratios)
    return Speed(median(ratios), low, high, median(one for one, _ in times), median(other for _, other in times))


def _warm_up(call: Call, clock: Clock) -> int:
    """Run until caches and code are warm; how many calls make one sample."""
    call()  # the first one may compile: for seconds that must not decide how many calls a sample has
    count, start = 1, clock()
    while True:
        taken = _sample(call, count, clock)
        if clock() - start >= WARM_UP_SECONDS:
            return max(1, round(SAMPLE_SECONDS / taken)) if taken > 0 else count
        if taken * count < SAMPLE_SECONDS:
            count *= 2


def _sample(call: Call, count: int, clock: Clock) -> float:
    """Seconds per call, after a few that are not counted: the other program left the caches to itself."""
    for _ in range(count // UNCOUNTED):
        call()
    start = clock()
    for _ in range(count):
        call()
    return (clock() - start) / count
