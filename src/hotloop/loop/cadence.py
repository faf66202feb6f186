"""When something is due. Stateless: everything follows from the counters before and after an iteration."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from hotloop.core.schedules import Counters

EARLY = 10
"""The first checkpoint comes after this part of the interval."""


def crossed(before: int, after: int, every: int) -> bool:
    """Whether a multiple of `every` lies in (before, after]."""
    return after // every > before // every


def checkpoint_due(settings: Any, before: int, after: int) -> bool:
    """At every multiple of the interval; where that is ours to choose, also once after a tenth of it, so that a run
    that is stopped early has something to resume from."""
    every = settings.checkpoint_every
    first = every if settings.checkpoint.every else max(1, every // EARLY)
    return crossed(before, after, every) or before < first <= after


def anything_due(settings: Any, before: int, after: int) -> bool:
    """A log row, an evaluation or a checkpoint."""
    is_due = crossed(before, after, settings.log_every) or crossed(before, after, settings.evaluation_every)
    return is_due or checkpoint_due(settings, before, after)


def is_over(settings: Any, counters: Counters) -> bool:
    """Whether a run has made its env steps, or its episodes where they are limited."""
    out_of_episodes = 0 < settings.total_episodes <= counters.episodes
    return counters.env_steps >= settings.total_env_steps or out_of_episodes


class UpdatePlan:
    """Updates owed per env step as an exact fraction, in bursts, in chunks that one call may make."""

    def __init__(self, ratio: Fraction, train_every: int, learning_starts: int, max_per_call: int) -> None:
        self._numerator, self._denominator = ratio.numerator, ratio.denominator
        self._train_every = train_every
        self._warmup = learning_starts
        self.max_per_call = max_per_call

    def owed(self, env_steps: int) -> int:
        """Updates owed after so many env steps, had there been no warm-up."""
        return env_steps // self._train_every * self._train_every * self._numerator // self._denominator

    def due(self, before: int, after: int) -> Sequence[int]:
        """The sizes of the calls to make now; what fell into the warm-up is skipped, not caught up."""
        if after <= self._warmup:
            return ()
        owed = self.owed(after) - self.owed(max(before, self._warmup))
        if owed <= self.max_per_call:
            return (owed,) if owed else ()
        whole_calls, rest = divmod(owed, self.max_per_call)
        return [self.max_per_call] * whole_calls + ([rest] if rest else [])
