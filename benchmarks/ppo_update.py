"""PPO's update: some epochs of minibatches over a rollout, on every lane."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

import hotloop
from benchmarks.learners import lane_problem
from benchmarks.witnesses.ppo_parts import PPOAgent
from hotloop.core.types import (
    ActionSpec,
    Array,
    ArraySpec,
    BoxActions,
    DiscreteActions,
    RolloutRow,
    RolloutSlab,
    UpdateStats,
)
from hotloop.lanes.policy_objective import Minibatches
from hotloop.learners.ppo import PPOLearner
from hotloop.presets.env_settings import EnvSettings
from hotloop.presets.network_settings import ActorCriticSettings
from hotloop.presets.ppo_settings import PolicyLearnerSettings, PolicyOptimizerSettings, PPOSettings
from hotloop.proof.case import Case, Programs, TwoSizes
from hotloop.proof.equivalence import Equality, compare, compare_sequences
from hotloop.replay.rollout_buffer import RolloutBuffer

OBS_SIZE, LR, CLIP, ENT_COEF = 4, 1e-3, 0.2, 0.01
ACTIONS: dict[str, ActionSpec] = {
    "discrete": DiscreteActions(2),
    "continuous": BoxActions((-1.0, -1.0), (1.0, 1.0), (2,)),
}
ROLLOUTS = 10
"""Whole updates compared from the same start."""
TOLERANCE = 1e-4
"""Per optimizer step, in float32."""


@dataclass(frozen=True)
class Size:
    hidden: tuple[int, ...]
    batch: int
    steps: int = 128
    num_envs: int = 8
    epochs: int = 4

    @property
    def name(self) -> str:
        return f"{'x'.join(map(str, self.hidden))}-b{self.batch}"

    @property
    def updates(self) -> int:
        return self.epochs * (self.steps * self.num_envs // self.batch)


SIZES = (Size((64, 64), 64), Size((64, 64), 256), Size((256, 256), 256))
SMALL = Size((8, 8), 16, steps=8, num_envs=4, epochs=2)


@hotloop.cases("all epochs of a PPO update on a rollout")
def ppo_update_cases(small: bool = False) -> list[Case]:
    sizes = (SMALL,) if small else SIZES
    return [
        Case(
            family="ppo-update",
            variant=kind,
            lane=lane,
            unavailable=lane_problem(lane),
            size=size.name,
            build=partial(_build, kind, lane, size),
            tolerance=TOLERANCE * size.updates,
            quick=size in SIZES[:2],
        )
        for kind in ACTIONS
        for lane in ("eager", "native")
        for size in sizes
    ]


class _Pair:
    """A learner and the plain agent from the same start, on the same rollouts in the same orders."""

    def __init__(self, kind: str, lane: str, size: Size) -> None:
        self.size, self.made = size, 0
        settings = PPOSettings(
            rollout_steps=size.steps,
            n_epochs=size.epochs,
            batch_size=size.batch,
            ent_coef=ENT_COEF,
            env=EnvSettings(num_envs=size.num_envs),
            network=ActorCriticSettings(hidden=size.hidden),
            optimizer=PolicyOptimizerSettings(learning_rate=LR),
            learner=PolicyLearnerSettings(lane=lane),  # type: ignore[arg-type]
        )
        self.learner = PPOLearner(settings, ArraySpec((OBS_SIZE,)), ACTIONS[kind])
        layout = self.learner.actions.layout
        continuous = layout.continuous > 0
        self.agent = PPOAgent(OBS_SIZE, size.hidden, layout.num_outputs, continuous, LR, CLIP, ENT_COEF)
        self._copy_parameters()
        self.rollouts = [self._rollout(seed) for seed in range(2)]

    def _copy_parameters(self) -> None:
        """Both orders: policy, value, log stds; the agent's own log stds come first, as its other parameters do not."""
        ours = [parameter.detach() for parameter in self.learner.network.parameters()]
        theirs = [*self.agent.actor.parameters(), *self.agent.critic.parameters()]
        theirs += [self.agent.log_std] if self.agent.continuous else []
        for target, source in zip(theirs, ours, strict=True):
            target.data.copy_(source)

    def _rollout(self, seed: int) -> tuple[RolloutSlab, dict[str, Any]]:
        size, draw = self.size, np.random.default_rng(seed)
        shape = (size.steps, size.num_envs)
        data = RolloutBuffer(shape, ArraySpec((OBS_SIZE,)), self.learner.actions.layout, None).data
        assert isinstance(data.obs, np.ndarray)
        data.obs[:] = draw.normal(size=data.obs.shape)
        parts = (data.obs, data.outputs, data.value[:-1, :, None], data.action)
        obs, outputs, values, action = (part.reshape(-1, part.shape[2]) for part in parts)
        self.learner.draw(RolloutRow(obs, outputs, values[:, 0], action, None), np.array([seed], np.uint64), None)
        data.advantage[:], data.weight[:] = draw.normal(size=shape), 1.0
        data.returns[:] = data.value[:-1] + data.advantage
        names = ("obs", "outputs", "action", "returns", "advantage")
        return data, {name: torch.from_numpy(getattr(data, name)).flatten(0, 1) for name in names}

    def orders(self, seed: int) -> Array:
        draw, rows = np.random.default_rng(seed), self.size.steps * self.size.num_envs
        return np.stack([draw.permutation(rows) for _ in range(self.size.epochs)])

    def fast(self, j: int = 0) -> UpdateStats:
        rates = np.full(self.size.updates, LR)
        stats = self.learner.lane.update(Minibatches(self.rollouts[j % 2][0], self.orders(j), CLIP), rates, self.made)
        self.made += self.size.updates
        return stats

    def plain(self, j: int = 0) -> None:
        self.agent.update(self.rollouts[j % 2][1], torch.from_numpy(self.orders(j)), self.size.batch)

    def plain_parameters(self) -> Array:
        parts = [*self.agent.actor.parameters(), *self.agent.critic.parameters()]
        parts += [self.agent.log_std] if self.agent.continuous else []
        return np.concatenate([part.detach().numpy().reshape(-1) for part in parts])


def _build(kind: str, lane: str, size: Size) -> Programs:
    pair = _Pair(kind, lane, size)

    def growth() -> TwoSizes:
        wider = _Pair(kind, lane, Size(size.hidden, size.batch, size.steps, 8 * size.num_envs, size.epochs))
        return TwoSizes(pair.fast, wider.fast, 8.0, f"N {size.num_envs}", str(8 * size.num_envs))

    return Programs(
        plain=pair.plain,
        fast=pair.fast,
        compare=lambda fast, plain: compare(
            [("parameters after a timed update", pair.learner.lane.parameters(), pair.plain_parameters())]
        ),
        further=partial(_check, kind, lane, size),
        growth=growth,
    )


def _check(kind: str, lane: str, size: Size) -> Equality:
    pair = _Pair(kind, lane, size)

    def fast(j: int) -> dict[str, Array]:
        pair.fast(j)
        return {"parameters": pair.learner.lane.parameters()}

    def plain(j: int) -> dict[str, Array]:
        pair.plain(j)
        return {"parameters": pair.plain_parameters()}

    return compare_sequences(fast, plain, ROLLOUTS)
