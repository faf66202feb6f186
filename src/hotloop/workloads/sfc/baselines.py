"""The rules of `baseline_kernels` as policies. They look at the whole network, so each belongs to its own envs."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from hotloop.core.types import Array, Obs
from hotloop.workloads.sfc.baseline_kernels import choose_all


class PlacementRule:
    """Serves requests by the time they have left.

    `along_path`: each wants the centre on the path from its source to its destination with the best score (100 where it
    runs already, plus the share of CPU that is free), or else the nearest that can have it. Otherwise always the
    nearest.
    """

    def __init__(self, envs: Any, along_path: bool) -> None:
        self._worlds = envs.worlds
        self._along_path = along_path

    def act(self, obs: Obs, action_mask: Array | None) -> Array:
        action = np.empty(len(self._worlds), np.int64)
        choose_all(self._worlds, self._along_path, action)
        return action


BASELINES = {"heuristic": partial(PlacementRule, along_path=True), "nearest": partial(PlacementRule, along_path=False)}
