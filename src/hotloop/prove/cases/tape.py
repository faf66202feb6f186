"""The random numbers our kernels draw, played back to a plain program behind the methods of Python's `random`.

With the same tape both programs explore, sample and reset alike, so that they can be compared step by step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hotloop.core.kernels import next_below, next_uniform


class Tape:
    """A stand-in for `random`: coins and actions from one stream, rows of the replay from another."""

    def __init__(self, seed: int, sample_seed: int | None = None) -> None:
        self._draws = np.array([seed % 2**64], dtype=np.uint64)
        self._samples = np.array([(seed if sample_seed is None else sample_seed) % 2**64], dtype=np.uint64)

    def random(self) -> float:
        return next_uniform(self._draws, 0)

    def randrange(self, bound: int) -> int:
        return next_below(self._draws, 0, bound)

    def sample(self, population: Sequence[Any], count: int) -> list[Any]:
        """With replacement, as our replay draws."""
        return [population[next_below(self._samples, 0, len(population))] for _ in range(count)]
