"""The update of SAC and of TD3: critics, actor, temperature and targets, on every lane."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

import hotloop
from benchmarks.learners import lane_problem
from benchmarks.witnesses.sac_update import SACAgent, TD3Agent
from hotloop.core.types import Array, ArraySpec, BoxActions, UpdateStats
from hotloop.lanes.sac_objective import SACBatch
from hotloop.learners.sac import SoftActorCriticLearner
from hotloop.presets.dqn_settings import LearnerSettings
from hotloop.presets.sac_network_settings import SACNetworkSettings
from hotloop.presets.sac_settings import SACOptimizerSettings, SACSettings, SACTargetSettings
from hotloop.proof.case import Case, Programs, TwoSizes
from hotloop.proof.equivalence import Equality, compare, compare_sequences

OBS_SIZE, ACTIONS, LR, GAMMA = 17, 6, 3e-4, 0.99
"""Observations and actions as large as HalfCheetah's."""
K, CALLS = 4, 25
"""Updates of a call; calls compared from the same start."""
TOLERANCE = 1e-6
"""Per update, in float32."""


@dataclass(frozen=True)
class Size:
    hidden: tuple[int, ...]
    batch: int

    @property
    def name(self) -> str:
        return f"{'x'.join(map(str, self.hidden))}-b{self.batch}"


SIZES = (Size((64, 64), 64), Size((256, 256), 256), Size((400, 300), 256))
SMALL = Size((8, 8), 16)


@hotloop.cases("4 updates of SAC or TD3: critics, actor, temperature and targets")
def sac_update_cases(small: bool = False) -> list[Case]:
    return [
        Case(
            family="sac-update",
            variant=kind,
            lane=lane,
            unavailable=lane_problem(lane),
            size=size.name,
            build=partial(_build, kind, lane, size),
            tolerance=TOLERANCE * K * CALLS,
            quick=lane != "compiled" and size in SIZES[:2],
        )
        for kind in ("sac", "td3")
        for lane in (("eager", "native") if small else ("eager", "compiled", "native"))
        for size in ((SMALL,) if small else SIZES)
    ]


def _settings(kind: str, lane: str, size: Size) -> SACSettings:
    td3 = kind == "td3"
    return SACSettings(
        policy="deterministic" if td3 else "stochastic",
        policy_delay=2 if td3 else 1,
        batch_size=size.batch,
        gamma=GAMMA,
        network=SACNetworkSettings(hidden=size.hidden),
        optimizer=SACOptimizerSettings(learning_rate=LR),
        target=SACTargetSettings(every=2 if td3 else 1),
        learner=LearnerSettings(lane=lane),  # type: ignore[arg-type]
    )


class _Pair:
    """A learner and the plain agent from the same start, on the same batches with the same noise."""

    def __init__(self, kind: str, lane: str, size: Size) -> None:
        self.kind, self.size, self.made = kind, size, 0
        actions = BoxActions((-1.0,) * ACTIONS, (1.0,) * ACTIONS, (ACTIONS,))
        self.learner = SoftActorCriticLearner(_settings(kind, lane, size), ArraySpec((OBS_SIZE,)), actions)
        make: Any = TD3Agent if kind == "td3" else SACAgent
        self.agent = make(OBS_SIZE, ACTIONS, size.hidden, LR, GAMMA)
        self._copy_parameters()
        self.batches = [self._batches(seed) for seed in range(2)]
        self.tensors = [self._plain_rows(batches) for batches in self.batches]

    def _copy_parameters(self) -> None:
        network, agent = self.learner.network, self.agent
        with torch.no_grad():
            actors = [agent.actor, *([agent.target_actor] if self.kind == "td3" else [])]
            for actor in actors:
                for theirs, ours in zip(actor.parameters(), network.actor.parameters(), strict=True):
                    theirs.copy_(ours)
            for place, critics in enumerate(((agent.critic1, agent.target1), (agent.critic2, agent.target2))):
                for critic in critics:
                    for theirs, ours in zip(critic.parameters(), network.critics.parameters(), strict=True):
                        theirs.copy_(ours[place])

    def _batches(self, seed: int) -> SACBatch:
        draw, shape = np.random.default_rng(seed), (K, self.size.batch)

        def normal(*last: int) -> Array:
            return draw.normal(size=(*shape, *last)).astype(np.float32)

        discount = np.where(draw.random(shape) < 0.1, 0.0, GAMMA).astype(np.float32)
        noise = normal(ACTIONS) if self.kind == "sac" else None
        obs, next_obs, action = normal(OBS_SIZE), normal(OBS_SIZE), np.tanh(normal(ACTIONS))
        weight = np.ones(shape, np.float32)
        rows = (obs, action, normal(), discount, next_obs, weight)
        return SACBatch(*rows, next_noise=normal(ACTIONS), noise=noise)

    def _plain_rows(self, batches: SACBatch) -> list[tuple[torch.Tensor, ...]]:
        done = (batches.discount == 0.0).astype(np.float32)
        fields = (batches.obs, batches.action, batches.reward, batches.next_obs, done, batches.next_noise)
        fields += () if batches.noise is None else (batches.noise,)
        return [tuple(torch.from_numpy(field[j]) for field in fields) for j in range(K)]

    def fast(self, call: int = 0) -> UpdateStats:
        stats = self.learner.lane.update(self.batches[call % 2], np.full(K, LR), self.made)
        self.made += K
        return stats

    def plain(self, call: int = 0) -> None:
        for rows in self.tensors[call % 2]:
            self.agent.update(*rows)

    def plain_parameters(self) -> Array:
        """In the order of `lane.parameters()`."""
        agent = self.agent
        both = zip(agent.critic1.parameters(), agent.critic2.parameters(), strict=True)
        parts = [*agent.actor.parameters(), *(torch.stack(pair) for pair in both)]
        parts += [] if self.kind == "td3" else [agent.log_alpha]
        return np.concatenate([part.detach().numpy().reshape(-1) for part in parts])


def _build(kind: str, lane: str, size: Size) -> Programs:
    pair = _Pair(kind, lane, size)

    def growth() -> TwoSizes:
        wider = _Pair(kind, lane, Size(size.hidden, 8 * size.batch))
        return TwoSizes(pair.fast, wider.fast, 8.0, f"B {size.batch}", str(8 * size.batch))

    return Programs(
        plain=pair.plain,
        fast=pair.fast,
        compare=lambda fast, plain: compare(
            [("parameters after a timed call", pair.learner.lane.parameters(), pair.plain_parameters())]
        ),
        further=partial(_check, kind, lane, size),
        growth=growth if lane != "compiled" else None,
    )


def _check(kind: str, lane: str, size: Size) -> Equality:
    pair = _Pair(kind, lane, size)

    def fast(call: int) -> dict[str, Array]:
        pair.fast(call)
        return {"parameters": pair.learner.lane.parameters()}

    def plain(call: int) -> dict[str, Array]:
        pair.plain(call)
        return {"parameters": pair.plain_parameters()}

    return compare_sequences(fast, plain, CALLS)
