"""The actor-critic learner on graphs, with a value for each part of the reward."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.algos.graph_policies import GraphActionMap
from hotloop.algos.normaliser import RewardScaler
from hotloop.algos.ppo import StepSizes, normalise_advantages, policy_spec
from hotloop.algos.ppo_settings import PPOSettings
from hotloop.core.errors import LaneError, SettingsError
from hotloop.core.graphs import Graphs, GraphSpec
from hotloop.core.rng import derive_seed
from hotloop.core.schedules import Counters
from hotloop.core.types import Array, GraphActionSpec, GraphRollout
from hotloop.lanes.choice import LaneChoice
from hotloop.lanes.graph_lane import GraphLane
from hotloop.lanes.graph_numbers import graph_failure, graph_minibatch
from hotloop.lanes.numbers import FailedUpdate
from hotloop.lanes.policy_spec import PolicyStats
from hotloop.maths.action_kernels import shuffle
from hotloop.maths.actions import ActionLayout
from hotloop.maths.gae_kernels import gae_slab
from hotloop.nets.graphs.network import GraphActorCritic, build_graph_actor_critic

REASON = "graphs of changing size; attention in machine code on a CPU"


def build_graph_network(settings: PPOSettings, spec: GraphSpec, actions: GraphActionMap, seed: int) -> GraphActorCritic:
    network, parts = settings.network, len(settings.reward_parts.value_weights)
    return build_graph_actor_critic(
        network.graph, spec, actions.num_numbers, parts, actions.per_node, network.log_std, seed
    )


class GraphPPOLearner:
    """Learns: `finish` turns a rollout into advantages, `update` goes through it for some epochs.

    Counts its updates as `DQNLearner` does.
    """

    def __init__(
        self, settings: PPOSettings, obs_spec: GraphSpec, action_spec: GraphActionSpec, counters: Counters | None = None
    ) -> None:
        _require_possible(settings)
        self.settings = settings
        self.counters, self._counts_alone = counters or Counters(), counters is None
        self.rows_per_update = settings.batch_size
        self.actions = GraphActionMap(action_spec)
        self.network = build_graph_network(settings, obs_spec, self.actions, derive_seed(settings.seed, "init"))
        self.choice = LaneChoice("eager", REASON)
        spec = policy_spec(settings, ActionLayout(continuous=self.actions.num_numbers, squashed=True))
        self._weights = np.array(settings.reward_parts.value_weights, np.float32)
        self.lane = GraphLane(spec, self.network, self._weights, settings.device, settings.learner.precision)
        num_envs, limit = settings.env.num_envs, settings.normalise.limit
        parts = range(len(self._weights)) if settings.normalise.reward else ()
        self._scalers = [RewardScaler(num_envs, settings.gamma, limit) for _ in parts]
        self._shuffler = np.array([derive_seed(settings.seed, "shuffle")], np.uint64)
        self._order = np.empty((settings.epochs, settings.rollout_rows), np.int64)
        self.step_sizes = StepSizes(settings)

    def finish(self, rollout: GraphRollout, last_obs: Graphs, timeouts: tuple[Array, Array, Graphs] | None) -> None:
        """Values of what came last and of time-outs' final observations; rewards scaled; advantages and returns."""
        settings = self.settings
        rollout.value[:, -1] = self.lane.forward(last_obs).value.T
        if timeouts is not None:
            steps, envs, final_obs = timeouts
            rollout.final_value[:, steps, envs] = self.lane.forward(final_obs).value.T
        ended, everywhere = rollout.terminated | rollout.truncated, np.ones(rollout.terminated.shape, np.float32)
        for part, scaler in enumerate(self._scalers):
            scaler.apply(rollout.reward[part], ended, everywhere)
        self._advantages(rollout)
        if settings.normalise_advantage == "rollout":
            normalise_advantages(rollout.advantage, everywhere)

    def _advantages(self, rollout: GraphRollout) -> None:
        settings, parts = self.settings, self.settings.reward_parts
        by_part = np.empty_like(rollout.returns)
        for part in range(len(by_part)):
            gae_slab(
                rollout.reward[part], rollout.terminated, rollout.truncated, rollout.value[part],
                rollout.final_value[part], settings.gamma, settings.gae_lambda, by_part[part], rollout.returns[part],
            )  # fmt: skip
        if parts.advantage == "total":
            rollout.advantage[:] = by_part[0]
        else:
            rollout.advantage[:] = np.tensordot(np.array(parts.advantage_weights, np.float32), by_part, 1)

    def update(self, rollout: GraphRollout) -> PolicyStats:
        settings, counters = self.settings, self.counters
        shuffle(self._shuffler, self._order)
        clip = settings.clip * settings.clip_schedule.now(counters)
        rates = self.learning_rates()
        stats = self.lane.update(rollout, self._order, rates, clip, counters.updates)
        self._require_finite(rollout, clip, rates, stats.made())
        self.step_sizes.adapt(stats)
        counters.updates += stats.made()
        return stats

    def _require_finite(self, rollout: GraphRollout, clip: float, rates: Array, made: int) -> None:
        """Parameters that the last step made too large must not act; its minibatch is the one that is kept."""
        if self.settings.device == "cpu" and not np.isfinite(self.lane.parameters()).all():
            chosen = self._order.reshape(-1)[(made - 1) * self.rows_per_update : made * self.rows_per_update]
            batch = graph_minibatch(rollout, chosen, clip)
            number = self.counters.updates + made + 1
            failed = FailedUpdate(number, float(rates[made - 1]), self.lane.state(), batch)
            raise graph_failure(self.lane.spec, self.network, "float32", self._weights, failed)

    def learning_rates(self) -> Array:
        """The learning rate of each of the next rollout's updates."""
        return self.step_sizes.learning_rates(self.counters)

    def forget_episodes(self) -> None:
        for scaler in self._scalers:
            scaler.forget_episodes()

    def weights(self) -> Array:
        """All that acting needs, as one vector."""
        return self.lane.parameters()

    def load_weights(self, values: Array) -> None:
        self.lane.load_parameters(values)

    def state(self) -> dict[str, Any]:
        return self.lane.state() | {
            "weights": self.weights(),
            "shuffler": self._shuffler.copy(),
            "lr_scale": np.array(self.step_sizes.scale),
            "reward_scalers": {str(part): scaler.state() for part, scaler in enumerate(self._scalers)},
            **(self.counters.state() if self._counts_alone else {}),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        self.lane.load_state(state)
        self._shuffler[:] = state["shuffler"]
        self.step_sizes.scale = float(state["lr_scale"])
        if self._counts_alone:
            self.counters.load_state(state)
        for part, scaler in enumerate(self._scalers):
            scaler.load_state(state["reward_scalers"][str(part)])


def _require_possible(settings: PPOSettings) -> None:
    lane = settings.learner.lane
    if lane not in ("auto", "eager"):
        raise LaneError(
            f"the {lane} lane cannot train this: {REASON}, and every minibatch has another shape",
            "`--learner.lane eager`",
        )
    if settings.normalise.obs:
        raise SettingsError(
            "`normalise.obs` is set, but the observation is a graph, which comes scaled", "`--normalise.obs false`"
        )
