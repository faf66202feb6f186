"""How an actor-critic agent acts: by drawing while it learns, by its likeliest action when it is judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hotloop.algos.ppo import PPOLearner
from hotloop.core.types import Array, Obs, RolloutRow


class Sampling:
    """Draws from the policy, and writes down what learning will need, where `row` says."""

    def __init__(self, learner: PPOLearner, row: Callable[[], RolloutRow], seed: int) -> None:
        self._learner = learner
        self._row = row
        self._rng = np.array([seed], dtype=np.uint64)

    def act(self, obs: Obs, action_mask: Array | None) -> Array:
        learner, row = self._learner, self._row()
        learner.see(obs, row.obs)
        learner.draw(row, self._rng, action_mask)
        if row.action_mask is not None:
            row.action_mask[:] = action_mask
        return learner.actions.to_env(row.action)

    def state(self) -> dict[str, Any]:
        return {"rng": self._rng.copy()}

    def load_state(self, state: dict[str, Any]) -> None:
        self._rng[:] = state["rng"]


class Likeliest:
    """The likeliest choices and the means of numbers: for evaluation."""

    def __init__(self, learner: PPOLearner) -> None:
        self._learner = learner

    def act(self, obs: Obs, action_mask: Array | None) -> Array:
        learner = self._learner
        outputs, _ = learner.lane.infer(learner.seen(obs))
        log_std = learner.network.log_std.detach().cpu().numpy()
        return learner.actions.to_env(learner.actions.best(outputs, log_std, action_mask))
