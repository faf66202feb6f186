"""Replay the slow way: a list of rows that overwrites its oldest, and a cumulative sum instead of a tree."""

from __future__ import annotations

from typing import Any

import numpy as np


class RingOracle:
    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.rows: list[Any] = []
        self.position = 0

    def add(self, row: Any) -> None:
        if len(self.rows) < self.capacity:
            self.rows.append(row)
        else:
            self.rows[self.position] = row
        self.position = (self.position + 1) % self.capacity


def find_by_cumulative_sum(values: np.ndarray, target: float) -> int:
    """The first leaf at which the running sum exceeds `target`."""
    return int(np.searchsorted(np.cumsum(values), target, side="right"))


def importance_weights(priorities: np.ndarray, drawn: np.ndarray, beta: float) -> np.ndarray:
    """(size P(i))^-beta, divided by the largest of the batch."""
    probability = priorities / priorities.sum()
    weight = (len(priorities) * probability[drawn]) ** -beta
    return weight / weight.max()
