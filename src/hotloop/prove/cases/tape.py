"""The random numbers our kernels draw, played back to a plain program behind the methods of Python's `random`.

With the same tape both programs explore, sample and reset alike, so that they can be compared step by step.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hotloop.core.kernels import next_below, next_uniform


class Tape:
    """A stand-in for `random`: coins and actions from one stream, rows of the replay from another.

    `oldest` says in which row of a full ring the oldest transition lies, which is the first of the plain deque.
    """

    def __init__(self, seed: int, sample_seed: int | None = None, oldest: Callable[[], int] | None = None) -> None:
        self._draws = np.array([seed % 2**64], dtype=np.uint64)
        self._samples = np.array([(seed if sample_seed is None else sample_seed) % 2**64], dtype=np.uint64)
        self._oldest = oldest

    def random(self) -> float:
        return next_uniform(self._draws, 0)

    def randrange(self, bound: int) -> int:
        return next_below(self._draws, 0, bound)

    def sample(self, population: Sequence[Any], count: int) -> list[Any]:
        """With replacement, as our replay draws."""
        size, oldest = len(population), 0 if self._oldest is None else self._oldest()
        return [population[(next_below(self._samples, 0, size) - oldest) % size] for _ in range(count)]

    def end(self) -> None:
        """From now on it is Python's `random`, at its cost: what a plain program is timed with."""
        self.random, self.randrange, self.sample = random.random, random.randrange, random.sample  # type: ignore[method-assign,assignment]
