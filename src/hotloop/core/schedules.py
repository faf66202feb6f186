"""A value over a unit: env steps, updates or episodes, always stated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from hotloop.core.errors import SettingsError
from hotloop.core.values import Count, Stretch, require_finite, share_of_run, shortened

Unit = Literal["env_steps", "updates", "episodes"]


@dataclass(slots=True)
class Counters:
    """How far a run has come. `env_steps` counts transitions over all envs, `updates` optimizer steps."""

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
    over: Stretch = 10_000
    """`linear` only: units until `end` is reached, at least 1; `10%`: a share of the env steps that the run was begun
    for (of exploration: at least twice its warm-up)."""
    factor: float = 0.995
    """`decay` only: multiplier, above 0 and at most 1."""
    every: Count = 1
    """`decay` only: units between two multiplications, at least 1."""
    unit: Unit = "env_steps"
    """What is counted: `env_steps`, `updates` or `episodes`."""

    def __post_init__(self) -> None:
        require_finite(self, "a schedule's ")
        self._check_over()
        if self.every < 1:
            raise SettingsError(f"a schedule's `every` is {self.every}, expected at least 1")
        if not 0.0 < self.factor <= 1.0:
            raise SettingsError(f"a schedule's `factor` is {self.factor}, expected above 0 and at most 1")

    def _check_over(self) -> None:
        try:
            fits = share_of_run(self.over) is not None if isinstance(self.over, str) else self.over >= 1
        except (ValueError, ArithmeticError):
            fits = False
        if not fits:
            raise SettingsError(
                f"a schedule's `over` is {shortened(self.over)}, expected at least 1, or a share above 0% up to 100%"
            )
        if isinstance(self.over, str) and self.unit != "env_steps":
            raise SettingsError(
                f"a schedule's `over` is {self.over} of the run's env steps, but its `unit` is {self.unit}",
                "give `over` in that unit, or count `env_steps`",
            )

    def resolve(self, planned_env_steps: int) -> Schedule:
        """The same with `over` as a number, in a run that was begun for so many env steps."""
        share = share_of_run(self.over)
        return self if share is None else replace(self, over=max(1, int(share * planned_env_steps)))

    def at(self, count: int) -> float:
        """The value after `count` units."""
        if self.kind == "linear":
            assert isinstance(self.over, int), "settled when a run is built"
            return self.end if count >= self.over else self.start + (self.end - self.start) * (count / self.over)
        if self.kind == "decay":
            return max(self.end, self.start * self.factor ** (count // self.every))
        return self.start

    def now(self, counters: Counters) -> float:
        return self.at(getattr(counters, self.unit))
