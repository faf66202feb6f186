"""Rollouts of random numbers, for every lane of the actor-critic family."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.settings import build, merge
from hotloop.core.types import (
    ActionSpec,
    ArraySpec,
    BoxActions,
    DiscreteActions,
    HybridActions,
    MultiDiscreteActions,
    RolloutRow,
    RolloutSlab,
)
from hotloop.learners.ppo import PPOLearner
from hotloop.presets.ppo_settings import PPOSettings
from hotloop.replay.rollout_buffer import RolloutBuffer

STEPS, ENVS, FEATURES = 8, 4, 5
BASE: dict[str, Any] = {
    "rollout_steps": STEPS,
    "batch_size": 8,
    "n_epochs": 2,
    "env": {"num_envs": ENVS},
    "network": {"hidden": [16, 12]},
    "learner": {"lane": "eager"},
}
ACTIONS: dict[str, ActionSpec] = {
    "discrete": DiscreteActions(3),
    "several": MultiDiscreteActions((3, 2)),
    "numbers": BoxActions((-1.0, -2.0), (1.0, 2.0), (2,)),
    "both": HybridActions(MultiDiscreteActions((3,)), BoxActions((-1.0,), (1.0,), (1,))),
}


def make_learner(kind: str = "discrete", **tree: Any) -> PPOLearner:
    return PPOLearner(build(PPOSettings, merge(BASE, tree)), ArraySpec((FEATURES,)), ACTIONS[kind])


def make_rollout(learner: PPOLearner, seed: int = 0, masked: bool = False, ignored: bool = False) -> RolloutSlab:
    """Filled as acting would: outputs, values and actions are the learner's own."""
    draw = np.random.default_rng(seed)
    layout, width = learner.actions.layout, learner.actions.spec.mask_width
    buffer = RolloutBuffer((STEPS, ENVS), ArraySpec((FEATURES,)), layout, width if masked else None)
    data, state = buffer.data, np.array([seed], np.uint64)
    for t in range(STEPS):
        obs = draw.normal(size=(ENVS, FEATURES)).astype(np.float32)
        mask = draw.random((ENVS, width)) < 0.7 if masked else None
        if mask is not None:
            mask[:, 0] = mask[:, -1] = True
        data.obs[t] = obs
        row = RolloutRow(data.obs[t], data.outputs[t], data.value[t], data.action[t], None)
        learner.draw(row, state, mask)
        if data.action_mask is not None:
            data.action_mask[t] = mask
    data.advantage[:] = draw.normal(size=(STEPS, ENVS))
    data.returns[:] = data.value[:-1] + data.advantage
    data.weight[:] = 1.0
    if ignored:
        data.weight[2, 1] = data.weight[5, 3] = 0.0
        data.advantage[2, 1] = data.advantage[5, 3] = 1e4  # what an ignored row says must not count
    return data
