"""The loop cut into equal numbers of env steps: shows what grows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .phases import OUTSIDE

MOST = 200


class Slice(NamedTuple):
    """One stretch of the loop, as `doctor/trace.py` has it."""

    start_seconds: float
    seconds: float
    env_steps: int
    episodes: int
    updates: int
    phases: dict[str, float]
    processor: dict[str, float]


class Timeline:
    """When there are too many slices, neighbours are joined, so that a long recording costs no more memory than a short
    one."""

    def __init__(
        self,
        start: float,
        counts: tuple[int, int, int] = (0, 0, 0),
        phases: Mapping[str, float] | None = None,
        processor: Mapping[str, float] | None = None,
    ) -> None:
        """From `start` on, at which env steps, episodes and updates, and seconds by phase, were already so many."""
        self.every = 1
        self.slices: list[Slice] = []
        self._origin = start
        self._at, self._counts = start, counts
        self._phases, self._processor = dict(phases or {}), dict(processor or {})

    def look(
        self,
        now: float,
        env_steps: int,
        episodes: int,
        updates: int,
        phases: Mapping[str, float],
        processor: Mapping[str, float] | None = None,
    ) -> None:
        """Close a slice; all values are totals so far."""
        if env_steps == self._counts[0]:
            return
        spent = _since(phases, self._phases)
        outside = sum(spent.pop(name, 0.0) for name in OUTSIDE)
        self.slices.append(
            Slice(
                start_seconds=self._at - self._origin,
                seconds=now - self._at - outside,
                env_steps=env_steps - self._counts[0],
                episodes=episodes - self._counts[1],
                updates=updates - self._counts[2],
                phases=spent,
                processor=_since(processor or {}, self._processor),
            )
        )
        self._at, self._counts = now, (env_steps, episodes, updates)
        self._phases, self._processor = dict(phases), dict(processor or {})
        if len(self.slices) >= MOST:
            self.slices = [join(*pair) for pair in zip(self.slices[::2], self.slices[1::2])]
            self.every *= 2

    @property
    def next_at(self) -> int:
        """Total of env steps at which the next slice is due."""
        return self._counts[0] + self.every


def _since(totals: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    spent = {name: value - before.get(name, 0.0) for name, value in totals.items()}
    return {name: value for name, value in spent.items() if value > 0}


def join(first: Slice, second: Slice) -> Slice:
    return Slice(
        start_seconds=first.start_seconds,
        seconds=first.seconds + second.seconds,
        env_steps=first.env_steps + second.env_steps,
        episodes=first.episodes + second.episodes,
        updates=first.updates + second.updates,
        phases=_added(first.phases, second.phases),
        processor=_added(first.processor, second.processor),
    )


def _added(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
    return {name: first.get(name, 0.0) + second.get(name, 0.0) for name in sorted({*first, *second})}
