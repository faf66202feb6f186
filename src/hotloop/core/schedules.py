"""A value over a unit: env steps, updates or episodes, always stated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hotloop.core.errors import SettingsError
from hotloop.core.values import Count, require_finite

Unit = Literal["env_steps", "updates", "episodes"]


@dataclass(slots=True)
class Counters:
    """How far a run has come. `env_steps` counts transitions over all envs, `updates` optimiser steps."""

    env_steps: int = 0
    updates: int = 0
    episodes: int = 0
    iterations: int = 0

    def copy(self) -> Counters:
        """Ten times cheaper than `copy.copy`, which the loop would feel."""
        return Counters(self.env_steps, self.updates, self.episodes, self.iterations)

    def state(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in Counters.__slots__}

    def load_state(self, state: Mapping[str, Any]) -> None:
        for name in Counters.__slots__:
            setattr(self, name, int(state[name]))


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """`constant`: start. `linear`: start to end over `over` units. `decay`: start x factor^(units // every)."""

    kind: Literal["constant", "linear", "decay"] = "constant"
    """How it moves: `constant`, `linear` (start to end over `over`) or `decay` (times `factor` every `every`)."""
    start: float = 1.0
    """Value at the beginning."""
    end: float = 0.0
    """Value that `linear` reaches and that `decay` does not pass."""
    over: Count = 10_000
    """`linear` only: units until `end` is reached, at least 1."""
    factor: float = 0.995
    """`decay` only: multiplier, above 0 and at most 1."""
    every: Count = 1
    """`decay` only: units between two multiplications, at least 1."""
    unit: Unit = "env_steps"
    """What is counted: `env_steps`, `updates` or `episodes`."""

    def __post_init__(self) -> None:
        require_finite(self, "a schedule's ")
        if self.over < 1 or self.every < 1:
            raise SettingsError(f"a schedule's `over` ({self.over}) and `every` ({self.every}) must be at least 1")
        if not 0.0 < self.factor <= 1.0:
            raise SettingsError(f"a schedule's `factor` is {self.factor}, expected above 0 and at most 1")

    def at(self, count: int) -> float:
        """The value after `count` units."""
        if self.kind == "linear":
            return self.end if count >= self.over else self.start + (self.end - self.start) * (count / self.over)
        if self.kind == "decay":
            return max(self.end, self.start * self.factor ** (count // self.every))
        return self.start

    def now(self, counters: Counters) -> float:
        return self.at(getattr(counters, self.unit))
