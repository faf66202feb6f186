"""The DQN learner: what an update computes, as a `QObjective`, and a lane that executes it."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.algos.dqn_settings import DQNSettings
from hotloop.core.rng import derive_seed
from hotloop.core.schedules import Counters
from hotloop.core.types import Array, Batch, ObsSpec, UpdateStats
from hotloop.core.values import exact_fraction
from hotloop.lanes.choice import LaneJob, build_lane, choose_lane
from hotloop.lanes.q_objective import QObjective, QSpec
from hotloop.nets.branches import BranchLayout, branch_layout
from hotloop.nets.build import MLPLayout, build_q_network, mlp_layout

TOPOLOGY_UNTRACEABLE = "the network is a graph of nodes, one compiled operation already"


def q_spec(settings: DQNSettings) -> QSpec:
    """The settings that decide what one update computes."""
    network, optimiser, target = settings.network, settings.optimiser, settings.target
    return QSpec(
        loss=settings.loss,
        double=settings.double,
        atoms=network.atoms,
        v_min=network.v_min,
        v_max=network.v_max,
        noisy=network.noisy,
        max_gradient_norm=optimiser.max_gradient_norm,
        accumulate=optimiser.accumulate,
        beta1=optimiser.beta1,
        beta2=optimiser.beta2,
        epsilon=optimiser.epsilon,
        target_tau=target.tau,
        target_every=target.every if target.unit == "updates" else 0,
    )


class DQNLearner:
    """Learns: `update` makes k sequential optimiser steps, `follow` moves a target that counts other units."""

    def __init__(self, settings: DQNSettings, obs_spec: ObsSpec, num_actions: int) -> None:
        self.settings = settings
        self._constant_rates: dict[int, Array] = {}
        self.rows_per_update = settings.batch_size * settings.optimiser.accumulate
        self.network = build_q_network(settings.network, obs_spec, num_actions, derive_seed(settings.seed, "init"))
        specs = (settings.network, obs_spec, num_actions)
        job = self._lane_job(mlp_layout(*specs) or branch_layout(*specs))
        self.measures = job.objective.measures
        self.choice = choose_lane(settings.learner.lane, job)
        self.lane = build_lane(self.choice, job, self.network)

    def _lane_job(self, layout: MLPLayout | BranchLayout | None) -> LaneJob:
        settings = self.settings
        return LaneJob(
            objective=QObjective(q_spec(settings)),
            layout=layout,
            batch_size=self.rows_per_update,
            device=settings.device,
            seed=derive_seed(settings.seed, "noise"),
            precision=settings.learner.precision,
            num_envs=settings.env.num_envs,
            planned_updates=int(settings.total_env_steps * exact_fraction(settings.updates_per_env_step)),
            untraceable=TOPOLOGY_UNTRACEABLE if settings.network.torso == "topology" else "",
        )

    def prepare(self, example: Batch, most_updates: int) -> None:
        """Let the lane compile what it will need for batches shaped like `example`."""
        self.lane.prepare(example, most_updates)

    def update(self, batches: Batch, counters: Counters) -> UpdateStats:
        return self.lane.update(batches, self.learning_rates(counters, len(batches.reward)), counters.updates)

    def learning_rates(self, counters: Counters, k: int) -> Array:
        """The learning rate of each of the next k updates."""
        optimiser, schedule = self.settings.optimiser, self.settings.optimiser.lr_schedule
        if schedule.kind == "constant":
            rates = self._constant_rates.get(k)
            if rates is None:
                rates = self._constant_rates[k] = np.full(k, optimiser.lr * schedule.start)
            return rates
        if schedule.unit == "updates":
            return np.array([optimiser.lr * schedule.at(counters.updates + j) for j in range(k)])
        return np.full(k, optimiser.lr * schedule.now(counters))

    def follow(self, before: Counters, now: Counters) -> None:
        """Move the target once for every multiple of `target.every` passed, where it counts env steps or episodes."""
        target = self.settings.target
        if target.unit != "updates":
            passed = getattr(now, target.unit) // target.every - getattr(before, target.unit) // target.every
            for _ in range(passed):
                self.lane.move_target(target.tau)

    def state(self) -> dict[str, Any]:
        return self.lane.state()

    def load_state(self, state: dict[str, Any]) -> None:
        self.lane.load_state(state)
