"""DQN: the learner (a `QObjective` and the lane that executes it), then the policies, greedy and epsilon-greedy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from torch import nn

from hotloop.core.errors import SettingsError
from hotloop.core.rng import derive_seed
from hotloop.core.schedules import Counters, Schedule
from hotloop.core.types import Array, Batch, Obs, ObsSpec, UpdateStats
from hotloop.core.values import exact_fraction
from hotloop.lanes.choice import LaneJob, build_lane, choose_lane, untraceable_torso
from hotloop.lanes.q_objective import QObjective, QSpec
from hotloop.lanes.spec import Lane
from hotloop.learners.derived import resolve
from hotloop.learners.learning import Drawing, LearningRates, ObsNormalization, moves_due
from hotloop.learners.own_network import GivenModule
from hotloop.learners.policy_kernels import draw_exploration, draw_masked_exploration
from hotloop.nets.branches import branch_layout
from hotloop.nets.build import build_q_network, mlp_layout
from hotloop.nets.given_network import SharedNetwork
from hotloop.presets.dqn_settings import DQNSettings

TOPOLOGY_UNTRACEABLE = "the network is a graph of nodes, one compiled operation already"


def q_spec(settings: DQNSettings) -> QSpec:
    """The settings that decide what one update computes."""
    network, optimizer, target = settings.network, settings.optimizer, settings.target
    return QSpec(
        loss=settings.loss,
        double=settings.double,
        atoms=network.atoms,
        v_min=network.v_min,
        v_max=network.v_max,
        noisy=network.noisy,
        max_grad_norm=optimizer.max_grad_norm,
        accumulate=optimizer.accumulate,
        beta1=optimizer.beta1,
        beta2=optimizer.beta2,
        epsilon=optimizer.eps,
        target_tau=target.tau,
        target_every=target.every if target.unit == "updates" else 0,
    )


See = Callable[[Obs], Obs]
"""From an observation as the env gives it to what the network gets."""


class DQNLearner:
    """Learns: `update` makes k sequential optimizer steps, `update_target_if_due` moves a target that counts env
    steps or episodes.

    It counts its updates itself, in `counters`. A run gives it the counters that it shares and saves; by itself the
    learner has counters of its own, saved with its state, whose env steps and episodes are the caller's to count.
    It checks nothing: what our loop hands it is right, and `QLearner` looks at what others do. `given` is a module of
    theirs, trained in the place of one that `settings.network` says.
    """

    def __init__(
        self,
        settings: DQNSettings,
        obs_spec: ObsSpec,
        num_actions: int,
        counters: Counters | None = None,
        given: GivenModule | None = None,
    ) -> None:
        self.settings = settings = settings if given else resolve(settings, obs_spec)
        self.counters, self._counts_alone = counters or Counters(), counters is None
        self.actions, self.num_choices = None, num_actions
        self.rates, self.normalization = LearningRates(settings.optimizer), ObsNormalization(settings, obs_spec)
        self.rows_per_update = settings.batch_size * settings.optimizer.accumulate
        job = self._lane_job()
        if given is None:
            self.network, job = self._built(obs_spec, job)
        else:
            self.network, job = given.shared, given.job(job)
        self.measures = job.objective.measures
        self.choice = choose_lane(settings.learner.lane, job)
        self.lane = build_lane(self.choice, job, self.network)

    def _lane_job(self) -> LaneJob:
        settings = self.settings
        return LaneJob(
            objective=QObjective(q_spec(settings)),
            layout=None,
            batch_size=self.rows_per_update,
            device=settings.device,
            seed=derive_seed(settings.seed, "noise"),
            precision=settings.learner.precision,
            num_envs=settings.env.num_envs,
            planned_updates=int(settings.total_env_steps * exact_fraction(settings.updates_per_env_step)),
        )

    def _built(self, obs_spec: ObsSpec, job: LaneJob) -> tuple[nn.Module, LaneJob]:
        """The network that the settings say, and the job with what a lane may know of it."""
        settings, specs = self.settings.network, (self.settings.network, obs_spec, self.num_choices)
        network = build_q_network(*specs, derive_seed(self.settings.seed, "init"))
        untraceable = TOPOLOGY_UNTRACEABLE if settings.torso == "topology" else ""
        job = replace(job, untraceable=untraceable or untraceable_torso(network, job.planned_updates))
        if isinstance(network, SharedNetwork):
            return network, replace(job, layout=network.reading.layout, unreadable=network.reading.reason)
        return network, replace(job, layout=mlp_layout(*specs) or branch_layout(*specs))

    def start_from(self, network: nn.Module) -> None:
        """Take over the parameters of a module with layers like ours, for the online and the target network."""
        ours, theirs = ([tuple(one.shape) for one in module.parameters()] for module in (self.network, network))
        if ours != theirs:
            raise SettingsError(f"the network has parameters of shapes {theirs}, the settings' network {ours}")
        self.lane.load_parameters(nn.utils.parameters_to_vector(network.parameters()).detach().cpu().numpy())
        self.lane.move_target(1.0)

    def prepare(self, example: Batch, most_updates: int) -> None:
        """Let the lane compile what it will need for batches shaped like `example`."""
        self.lane.prepare(example, most_updates)

    def update(self, batches: Batch) -> UpdateStats:
        """One optimizer step on each of the k batches [k, B, ...], in order."""
        k = len(batches.reward)
        seen = self.normalization.of_batches(batches)
        stats = self.lane.update(seen, self.learning_rates(k), self.counters.updates)
        self.counters.updates += k
        return stats

    def learning_rates(self, k: int) -> Array:
        """The learning rate of each of the next k updates."""
        return self.rates.of(k, self.counters)

    def update_target_if_due(self, before: Counters) -> None:
        """Move the target where it counts env steps or episodes."""
        for _ in range(moves_due(self.settings.target, before, self.counters)):
            self.lane.move_target(self.settings.target.tau)

    def exploring(self, seed: int) -> EpsilonGreedy:
        schedule, note = self.settings.exploration, self.normalization.note
        return EpsilonGreedy(self.lane, schedule, self.counters, self.num_choices, seed, note)

    def evaluation_policy(self) -> GreedyQPolicy:
        return GreedyQPolicy(self.lane, self.normalization.see)

    def weights(self) -> Array:
        """The online parameters, then what observations are normalized by."""
        return self.normalization.joined(self.lane.parameters())

    def load_weights(self, values: Array) -> None:
        self.lane.load_parameters(self.normalization.split(values))

    def forget_episodes(self) -> None:
        """Nothing is remembered of them."""

    def reseed(self, *stream: str | int) -> None:
        """An update draws nothing but the noise of noisy layers, which goes on."""

    def state(self) -> dict[str, Any]:
        seen = self.normalization.state(self.lane.parameters()) if self.normalization.normalizer else {}
        return self.lane.state() | seen | (self.counters.state() if self._counts_alone else {})

    def load_state(self, state: dict[str, Any]) -> None:
        self.lane.load_state(state)
        self.normalization.load_state(state)
        if self._counts_alone:
            self.counters.load_state(state)


class GreedyQPolicy:
    """Always the best action, without noise: for evaluation."""

    def __init__(self, lane: Lane, see: See = lambda obs: obs) -> None:
        self._lane, self._see = lane, see

    def act(self, obs: Obs, action_mask: Array | None) -> Array:
        return self._lane.infer(self._see(obs), action_mask)[0]


class EpsilonGreedy(Drawing):
    """A uniform random (allowed) action with probability epsilon, the best one otherwise.

    The network is not asked when no env needs it, which halves the cost of acting while epsilon is high.
    """

    def __init__(
        self,
        lane: Lane,
        schedule: Schedule,
        counters: Counters,
        num_actions: int,
        seed: int,
        note: See = lambda obs: obs,
    ) -> None:
        self._lane, self._note = lane, note
        self._schedule = schedule
        self._counters = counters
        self._num_actions = num_actions
        super().__init__(seed)

    @property
    def epsilon(self) -> float:
        return self._schedule.now(self._counters)

    def facts(self) -> dict[str, float]:
        return {"epsilon": self.epsilon}

    def act(
        self, obs: Obs, action_mask: Array | None, out: None = None, epsilon: float | None = None
    ) -> tuple[Array, None]:
        obs = self._note(obs)
        num_envs = len(next(iter(obs.values())) if isinstance(obs, dict) else obs)
        action = np.empty(num_envs, dtype=np.int64)
        if epsilon is None:
            epsilon = self._schedule.now(self._counters)
        if action_mask is None:
            num_greedy = draw_exploration(self.rng, epsilon, self._num_actions, action)
        else:
            num_greedy = draw_masked_exploration(self.rng, epsilon, action_mask, action)
        if num_greedy == 0:
            return action, None
        (greedy,) = self._lane.infer(obs, action_mask, True)
        return (greedy if num_greedy == num_envs else np.where(action < 0, greedy, action)), None
