"""What is remembered of an episode, for the panels that show it over time."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.types import Array
from hotloop.envs.durotaxis.layout_kernels import HIGH, LOW, RATIO

NAMES = ("delete ratio", "gamma", "alpha", "noise", "theta")


class Past:
    """One row for each moment of an episode, the first at its start."""

    def __init__(self, highest_ratio: float = 1.0) -> None:
        self.low, self.high = LOW, HIGH.copy()
        self.high[RATIO] = highest_ratio
        self._places: list[tuple[float, float, float]] = []
        self._actions: list[list[float]] = []

    def add(self, now: dict[str, Any]) -> None:
        """`now` is a snapshot."""
        x, centroid = now["positions"][:, 0], now["centroid"][0]
        self._places.append((centroid, x.min(), x.max()) if len(x) else (centroid, centroid, centroid))
        self._actions.append(now["action"])

    def __len__(self) -> int:
        """Steps made."""
        return len(self._places) - 1

    @property
    def places(self) -> Array:
        """[steps + 1, 3]: x of the centroid, of the left-most and of the right-most node."""
        return np.array(self._places)

    @property
    def actions(self) -> Array:
        """[steps, 5] as carried out."""
        return np.array(self._actions[1:]).reshape(-1, len(NAMES))

    @property
    def shares(self) -> Array:
        """The same from 0 at the lower end of a number's range to 1 at its upper."""
        return (self.actions - self.low) / np.maximum(self.high - self.low, 1e-9)
