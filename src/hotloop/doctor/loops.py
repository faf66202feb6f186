"""The doctor's interface to a training loop, an interval at a time; recording one, and comparing two interleaved."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from hotloop.core.intervals import median_interval
from hotloop.doctor.trace import Slice

STRETCH_SECONDS = 0.04
MIN_PAIRS = 7


@dataclass(frozen=True, kw_only=True)
class LoopInterval:
    """Time and counts of one interval of a loop."""

    seconds: float
    env_steps: int
    episodes: int
    updates: int
    phases: dict[str, float] = field(default_factory=dict)

    @property
    def cost(self) -> float:
        """Seconds per env step."""
        return self.seconds / max(1, self.env_steps)


class Loop(Protocol):
    def advance(self, env_steps: int) -> LoopInterval:
        """Go on for at least so many env steps; fewer only where the loop has come to its end."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class LoopRatio:
    """Cost per env step of the first loop over that of the second, with a 95 % interval; and both costs."""

    ratio: float
    low: float
    high: float
    first_cost: float
    second_cost: float


def compare_loops(first: Loop, second: Loop, seconds: float) -> LoopRatio:
    """Both interleaved in this process for about `seconds`: the machine's drift meets them alike."""
    lengths = (stretch_length(first), stretch_length(second))
    costs: list[tuple[float, float]] = []
    spent = 0.0
    while len(costs) < MIN_PAIRS or spent < seconds:
        pair = first.advance(lengths[0]), second.advance(lengths[1])
        if not pair[0].env_steps or not pair[1].env_steps:
            break
        costs.append((pair[0].cost, pair[1].cost))
        spent += pair[0].seconds + pair[1].seconds
    ratios = [one / other for one, other in costs]
    low, high = median_interval(ratios)
    middle = len(ratios) // 2
    return LoopRatio(sorted(ratios)[middle], low, high, *(sorted(side)[middle] for side in zip(*costs, strict=True)))


def stretch_length(loop: Loop) -> int:
    """Env steps that take long enough to be timed; finding out is the loop's warm-up."""
    env_steps = 1
    while True:
        stretch = loop.advance(env_steps)
        if stretch.seconds >= STRETCH_SECONDS or not stretch.env_steps:
            return max(1, stretch.env_steps)
        env_steps = max(2 * env_steps, stretch.env_steps)


def record(loop: Loop, seconds: float, slices: int = 100) -> list[Slice]:
    """Run a loop for about `seconds`, cut into slices of equal env steps."""
    recorded: list[Slice] = []
    length, start = 1, 0.0
    while start < seconds:
        stretch = loop.advance(length)
        if not stretch.env_steps:
            break
        recorded.append(as_slice(start, stretch))
        start += stretch.seconds
        if stretch.seconds < seconds / (2 * slices):
            length = max(length * 2, stretch.env_steps)
    return recorded


def as_slice(start: float, stretch: LoopInterval) -> Slice:
    return Slice(
        start_seconds=start,
        seconds=stretch.seconds,
        env_steps=stretch.env_steps,
        episodes=stretch.episodes,
        updates=stretch.updates,
        phases=stretch.phases,
    )
