"""The loop over time: cut into equal numbers of env steps, which shows what grows; and where its steady state begins.

Everything is counted from the start, and what came before the mark is taken off: the first updates are slow (PyTorch
sets itself up, caches are cold), and a warm-up without updates is another loop. A program that ends too soon after the
mark is told whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .order import OUTSIDE

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
    """When there are too many slices, neighbors are joined, so that a long recording costs no more memory than a short
    one."""

    def __init__(
        self,
        start: float,
        counts: tuple[int, int, int] = (0, 0, 0),
        phases: Mapping[str, float] | None = None,
        processor: Mapping[str, float] | None = None,
        shortest: float = 0.0,
    ) -> None:
        """From `start` on, at which env steps, episodes and updates, and seconds by phase, were already so many. Slices
        that are lengthened take at least `shortest` seconds."""
        self.every, self._shortest = 1, shortest
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

    def lengthen(self, now: float) -> bool:
        """Whether it is too early for the next slice, which is then made twice as long."""
        early = now - self._at < self._shortest
        self.every *= 1 + early
        return early


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


LEAST_ENV_STEPS, LEAST_UPDATES = 200, 50
"""After the mark: with fewer, the whole is told."""
NOT_SUMS = ("batch_size", "optimisers", "envs")


class Told(NamedTuple):
    """What is told of a recording: all of it, or what came after the mark."""

    began: float
    totals: dict[str, Any]
    phases: dict[str, float]
    """With the recording's own time as one."""
    parts: dict[str, float]
    processor: dict[str, float]
    modules: dict[int, int]
    slices: list[Slice]
    before: list[Slice]
    """Of what came before."""


class Mark(NamedTuple):
    """The moment when the steady state began, and all that had been counted and timed by then."""

    at: float
    past: Told

    def leaves_enough(self, totals: Mapping[str, Any]) -> bool:
        """Whether enough came after it to be told without what came before."""
        since = after(totals, self.past.totals)
        learned = since["updates"] >= LEAST_UPDATES or not self.past.totals["updates"]
        return bool(since["env_steps"] >= LEAST_ENV_STEPS and learned)

    def rest_of(self, whole: Told) -> Told:
        """What came after it."""
        past = self.past
        return Told(
            self.at,
            {**after(whole.totals, past.totals), "skipped_env_steps": past.totals["env_steps"]},
            after(whole.phases, past.phases),
            after(whole.parts, past.parts),
            after(whole.processor, past.processor),
            after(whole.modules, past.modules),
            whole.slices,
            past.slices,
        )

    def with_rest(self, whole: Told) -> Told:
        """All of it: the slices of both, on one axis."""
        later = self.at - whole.began
        moved = [one._replace(start_seconds=one.start_seconds + later) for one in whole.slices]
        return whole._replace(slices=self.past.slices + moved)


def after(totals: Mapping[Any, Any], before: Mapping[Any, Any]) -> dict[Any, Any]:
    """What came since; what is no sum stays as it is."""
    return {name: value if name in NOT_SUMS else max(0, value - before.get(name, 0)) for name, value in totals.items()}
