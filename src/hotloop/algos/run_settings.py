"""What every algorithm's runs have: evaluations and checkpoints."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop.core.values import Count, require_at_least


@dataclass(frozen=True, kw_only=True)
class EvaluationSettings:
    """Greedy episodes on separate envs; the best weights so far are kept."""

    every: Count = 0
    """Env steps between two evaluations; 0: a twentieth of the run, put off where evaluation would take more than a
    twentieth of the training env steps (native envs, whose evaluation is cheap, are not held to that)."""
    episodes: int = 0
    """Episodes of each; 0: 20, or what `every` has room for, but at least 5."""
    final_episodes: int = 0
    """Fresh episodes on which the best and the last weights are judged at the end; 0: 100, or fewer where evaluation
    would take more than a tenth of the training env steps (native envs are not held to that)."""
    max_episode_steps: Count = 100_000
    """An evaluation episode that has not ended by then is cut off and counts as far as it came, at least 1."""

    def __post_init__(self) -> None:
        require_at_least(1, self, "evaluation.", "max_episode_steps")
        require_at_least(0, self, "evaluation.", "every", "episodes", "final_episodes")


@dataclass(frozen=True, kw_only=True)
class CheckpointSettings:
    every: Count = 0
    """Env steps between two checkpoints; 0: a tenth of the run, and at least 1,000 of each env, since envs that cannot
    save their state are made anew at each; the first one then comes after a tenth of that."""
    keep: int = 2
    """How many of the newest are kept, at least 1."""

    def __post_init__(self) -> None:
        require_at_least(1, self, "checkpoint.", "keep")
        require_at_least(0, self, "checkpoint.", "every")
