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


class Timeline:
    """When there are too many slices, neighbours are joined, so that a long recording costs no more memory than a short
    one."""

    def __init__(self, start: float) -> None:
        self.every = 1
        self.slices: list[Slice] = []
        self._origin = start
        self._before: tuple[float, int, int, int, dict[str, float]] = (start, 0, 0, 0, {})

    def look(self, now: float, env_steps: int, episodes: int, updates: int, phases: Mapping[str, float]) -> None:
        """Close a slice; all values are totals so far."""
        start, steps_before, episodes_before, updates_before, phases_before = self._before
        if env_steps == steps_before:
            return
        spent = {name: value - phases_before.get(name, 0.0) for name, value in phases.items()}
        outside = sum(spent.pop(name, 0.0) for name in OUTSIDE)
        self.slices.append(
            Slice(
                start_seconds=start - self._origin,
                seconds=now - start - outside,
                env_steps=env_steps - steps_before,
                episodes=episodes - episodes_before,
                updates=updates - updates_before,
                phases={name: value for name, value in spent.items() if value > 0},
            )
        )
        self._before = (now, env_steps, episodes, updates, dict(phases))
        if len(self.slices) >= MOST:
            self.slices = [join(*pair) for pair in zip(self.slices[::2], self.slices[1::2])]
            self.every *= 2

    @property
    def next_at(self) -> int:
        """Total of env steps at which the next slice is due."""
        return self._before[1] + self.every


def join(first: Slice, second: Slice) -> Slice:
    names = {*first.phases, *second.phases}
    return Slice(
        start_seconds=first.start_seconds,
        seconds=first.seconds + second.seconds,
        env_steps=first.env_steps + second.env_steps,
        episodes=first.episodes + second.episodes,
        updates=first.updates + second.updates,
        phases={name: first.phases.get(name, 0.0) + second.phases.get(name, 0.0) for name in sorted(names)},
    )
