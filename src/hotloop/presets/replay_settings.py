"""What a user may choose about replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hotloop.core.errors import SettingsError
from hotloop.core.values import Count


@dataclass(frozen=True, kw_only=True)
class ReplaySettings:
    buffer_size: Count = 100_000
    """Transitions kept; the oldest give way to new ones. 0: all of the run that it was begun for, but no more than a
    million, nor than 2 GiB hold."""
    prioritized: bool = False
    """Draw transitions in proportion to their last TD error (Schaul et al. 2015) rather than uniformly."""
    alpha: float = 0.6
    """How strongly the TD error shapes the draw: 0 is uniform, 1 fully proportional. Prioritized only."""
    beta_start: float = 0.4
    """Exponent of the importance weights at the first env step, 0 to 1. Prioritized only."""
    beta_end: float = 1.0
    """Exponent of the importance weights once annealed, 0 to 1; 1 corrects the bias fully. Prioritized only."""
    beta_env_steps: Count = 100_000
    """Env steps over which beta moves linearly from `beta_start` to `beta_end`. At least 1. Prioritized only."""
    priority_epsilon: float = 1e-6
    """Added to |TD error| so that every transition can still be drawn; above 0. Prioritized only."""
    combined: bool = False
    """Combined experience replay (Zhang & Sutton 2017): the last row of each batch is the newest transition."""
    prioritized_batches: int = 1
    """Batches drawn from the same priorities, at least 1; above 1 the later ones see stale priorities, for speed."""
    memory: Literal["ram", "disk"] = "ram"
    """Where transitions lie: `ram`, or `disk` for more of them than memory can hold, in a file that is given back when
    the run ends. What is learned is the same to the last bit; priorities stay in memory."""
    folder: str = ""
    """Folder on whose disk they lie with `memory = "disk"`; empty: the disk that `run_dir` is on."""

    def __post_init__(self) -> None:
        _require(self.buffer_size >= 0, "buffer_size", self.buffer_size, "0 or more")
        for name in ("beta_env_steps", "prioritized_batches"):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
        for name in ("alpha", "beta_start", "beta_end"):
            _require(0.0 <= getattr(self, name) <= 1.0, name, getattr(self, name), "between 0 and 1")
        _require(0.0 < self.priority_epsilon < float("inf"), "priority_epsilon", self.priority_epsilon, "above 0")
        _require(self.memory in ("ram", "disk"), "memory", self.memory, "`ram` or `disk`")
        if self.folder and self.memory != "disk":
            raise SettingsError(
                f"`replay.folder` is {self.folder}, but `replay.memory` is {self.memory}",
                'set replay.memory to "disk", or leave replay.folder empty',
            )

    def beta(self, env_steps: int) -> float:
        """The importance exponent after `env_steps`."""
        progress = min(1.0, env_steps / self.beta_env_steps)
        return self.beta_start + (self.beta_end - self.beta_start) * progress


def _require(holds: bool, name: str, value: object, expected: str) -> None:
    if not holds:
        raise SettingsError(
            f"`replay.{name}` is {value}, expected {expected}", f"set replay.{name} to a value {expected}"
        )
