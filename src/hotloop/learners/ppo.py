"""The actor-critic learner: what an update computes, as an objective, a lane that executes it, and running statistics.

One learner for observations that are arrays, and for graphs with a value for each part of the reward: a rollout of
arrays has a single part. Below it the policies: drawn while it learns, the
likeliest action when it is judged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hotloop.algos.ppo_settings import PPOSettings
from hotloop.core.errors import SettingsError
from hotloop.core.graphs import Graphs, GraphSpec
from hotloop.core.rng import derive_seed
from hotloop.core.schedules import Counters
from hotloop.core.types import Array, EnvObs, GraphRollout, Obs, Rollout, RolloutRow, UpdateStats
from hotloop.core.user_files import is_file
from hotloop.lanes.choice import LaneJob, build_lane, choose_lane, untraceable_torso
from hotloop.lanes.graph_objective import GraphObjective
from hotloop.lanes.nonfinite import FailedUpdate, explained
from hotloop.lanes.objective import ONLINE, Network
from hotloop.lanes.policy_objective import KL, Minibatches, PolicyObjective, PolicySpec, forward_and_draw
from hotloop.lanes.spec import go_on
from hotloop.learners.action_map import ActionMap
from hotloop.learners.derived import settled
from hotloop.learners.graph_policies import GraphActionMap
from hotloop.learners.normaliser import ObsNormaliser, RewardScaler
from hotloop.maths.action_kernels import shuffle
from hotloop.maths.distributions import ActionLayout
from hotloop.maths.gae_kernels import gae_numpy
from hotloop.nets.actor_critic import actor_critic_layout, build_actor_critic
from hotloop.nets.graphs.network import GraphActorCritic, build_graph_actor_critic

LR_FACTOR, LOWEST_LR_SCALE, HIGHEST_LR_SCALE = 1.5, 0.01, 10.0
"""Of the learning rate's adaptation to `kl_target`."""


def policy_spec(settings: PPOSettings, actions: ActionLayout) -> PolicySpec:
    """The settings that decide what one update computes."""
    optimiser = settings.optimiser
    return PolicySpec(
        actions=actions,
        rows=settings.batch_size,
        policy_loss=settings.policy_loss,
        normalise_advantage=settings.normalise_advantage == "minibatch",
        value_clip=settings.value_clip,
        value_weight=settings.value_weight,
        entropy_weight=settings.entropy_weight,
        kl_stop=settings.kl_stop,
        max_gradient_norm=optimiser.max_gradient_norm,
        beta1=optimiser.beta1,
        beta2=optimiser.beta2,
        epsilon=optimiser.epsilon,
    )


class LearningRateController:
    """The learning rate by its schedule, and adapted to `kl_target` where there is one."""

    def __init__(self, settings: PPOSettings) -> None:
        self._settings = settings
        self.scale = 1.0

    def learning_rates(self, counters: Counters) -> Array:
        """The learning rate of each of the next updates."""
        k, optimiser = self._settings.updates_per_rollout, self._settings.optimiser
        base, schedule = optimiser.lr * self.scale, optimiser.lr_schedule
        if schedule.unit == "updates":
            return np.array([base * schedule.at(counters.updates + j) for j in range(k)])
        return np.full(k, base * schedule.now(counters))

    def adapt(self, stats: UpdateStats) -> None:
        """Steps that move the policy too far become smaller, timid ones larger; one read from the device a rollout."""
        per_epoch, target = self._settings.updates_per_rollout // self._settings.epochs, self._settings.kl_target
        if target <= 0.0:
            return
        kl = float(stats.scalars[KL, -per_epoch:].mean())
        if kl > 2.0 * target:
            self.scale = max(self.scale / LR_FACTOR, LOWEST_LR_SCALE)
        elif kl < 0.5 * target:
            self.scale = min(self.scale * LR_FACTOR, HIGHEST_LR_SCALE)


GRAPHS_UNTRACEABLE = "graphs of changing size: every minibatch has another shape"


def build_graph_network(settings: PPOSettings, spec: GraphSpec, actions: GraphActionMap, seed: int) -> GraphActorCritic:
    network, parts = settings.network, len(settings.reward_parts.value_weights)
    return build_graph_actor_critic(
        network.graph, spec, actions.num_continuous, parts, actions.per_node, network.log_std, seed
    )


class PPOLearner:
    """Learns: `compute_advantages` turns a rollout into advantages, `update` goes through it for some epochs.

    Counts its updates as `DQNLearner` does.
    """

    def __init__(
        self, settings: PPOSettings, obs_spec: Any, action_spec: Any, counters: Counters | None = None
    ) -> None:
        self.settings = settings = settled(settings, obs_spec)
        self.counters, self._counts_alone = counters or Counters(), counters is None
        self.rows_per_update = settings.batch_size
        self._of_graphs = isinstance(obs_spec, GraphSpec)
        init, reading = derive_seed(settings.seed, "init"), None
        self.actions: Any
        self.network: Any
        if isinstance(obs_spec, GraphSpec):
            _refuse_for_graphs(settings)
            self.actions = GraphActionMap(action_spec)
            self.network = build_graph_network(settings, obs_spec, self.actions, init)
            layout = None
        else:
            self.actions = ActionMap(action_spec, settings.network.squashed)
            self.network = build_actor_critic(settings.network, obs_spec, self.actions.layout, init)
            reading = getattr(self.network, "reading", None)
            layout = reading.layout if reading else actor_critic_layout(settings.network, obs_spec)
        self.objective = policy_objective(settings, self.actions)
        self.measures = self.objective.measures
        planned = settings.total_env_steps // settings.rollout_rows * settings.updates_per_rollout
        job = LaneJob(
            objective=self.objective,
            layout=layout,
            batch_size=settings.batch_size,
            device=settings.device,
            precision=settings.learner.precision,
            num_envs=settings.env.num_envs,
            planned_updates=planned,
            unreadable=reading.reason if reading else "",
            untraceable=GRAPHS_UNTRACEABLE if self._of_graphs else untraceable_torso(self.network, planned),
        )
        self.choice = choose_lane(settings.learner.lane, job)
        self.lane: Any = build_lane(self.choice, job, self.network)
        normalise, num_envs = settings.normalise, settings.env.num_envs
        self.obs_normaliser = ObsNormaliser(obs_spec, normalise.limit) if normalise.obs else None
        parts = len(settings.reward_parts.value_weights) if self._of_graphs else 1
        scaled = range(parts) if normalise.reward else ()
        self._scalers = [RewardScaler(num_envs, settings.gamma, normalise.limit) for _ in scaled]
        self._shuffler = np.array([derive_seed(settings.seed, "shuffle")], np.uint64)
        self._order = np.empty((settings.epochs, settings.rollout_rows), np.int64)
        self.step_sizes = LearningRateController(settings)

    def normalise(self, obs: EnvObs) -> EnvObs:
        """The observation as the network gets it."""
        return obs if self.obs_normaliser is None or isinstance(obs, Graphs) else self.obs_normaliser.apply(obs)

    def observe(self, obs: Obs, out: Obs) -> None:
        """The same into `out`, and for the statistics of the next rollout."""
        if self.obs_normaliser is not None:
            self.obs_normaliser.absorb(obs)
            obs = self.obs_normaliser.apply(obs)
        if isinstance(out, dict):
            for name, part in out.items():
                part[:] = obs[name]
        else:
            out[:] = obs

    def draw(self, row: RolloutRow, state: Array, action_mask: Array | None) -> None:
        """Outputs, values and drawn actions of the row's observations, into the row; advances the generator `state`."""
        if self.lane.name == "native":  # it alone has `act`: forward and draw in one call
            self.lane.act(row, state, action_mask)
        else:
            forward_and_draw(self.lane, self.network, row, state, action_mask)

    def values(self, obs: EnvObs) -> Array:
        """Of observations [N, ...], by part of the reward [P, N]."""
        answers = self.lane.infer(self.normalise(obs))
        return answers[2].T if self._of_graphs else answers[1][None]

    def compute_advantages(
        self, rollout: Rollout | GraphRollout, last_obs: EnvObs, timeouts: tuple[Array, Array, EnvObs] | None
    ) -> None:
        """Values of what came last and of time-outs' final observations; rewards scaled; advantages and returns."""
        reward, value, final_value, returns = (
            getattr(rollout, name) if self._of_graphs else getattr(rollout, name)[None]
            for name in ("reward", "value", "final_value", "returns")
        )  # [P, T, N] each, value with a row more; views
        value[:, -1] = self.values(last_obs)
        if timeouts is not None:
            steps, envs, final_obs = timeouts
            final_value[:, steps, envs] = self.values(final_obs)
        weight = rollout.weight if isinstance(rollout, Rollout) else np.ones(rollout.terminated.shape, np.float32)
        for part, scaler in enumerate(self._scalers):
            scaler.apply(reward[part], rollout.terminated | rollout.truncated, weight)
        by_part = rollout.advantage[None] if len(reward) == 1 else np.empty_like(returns)
        for part in range(len(reward)):
            gae_numpy(
                reward[part], rollout.terminated, rollout.truncated, value[part], final_value[part],
                self.settings.gamma, self.settings.gae_lambda, by_part[part], returns[part],
            )  # fmt: skip
        if self._of_graphs:
            self._join_parts(by_part, rollout.advantage)
        if self.settings.normalise_advantage == "rollout":
            normalise_advantages(rollout.advantage, weight)

    def _join_parts(self, by_part: Array, advantage: Array) -> None:
        """The advantages [P, T, N] of all parts as one [T, N]."""
        parts = self.settings.reward_parts
        if parts.advantage == "total":
            advantage[:] = by_part[0]
        else:
            advantage[:] = np.tensordot(np.array(parts.advantage_weights, np.float32), by_part, 1)

    def update(self, rollout: Rollout | GraphRollout, check: Callable[[], None] = go_on) -> UpdateStats:
        """Epochs over minibatches. What `check` raises between two of them leaves the learner half-way."""
        settings, counters = self.settings, self.counters
        shuffle(self._shuffler, self._order)
        data = Minibatches(rollout, self._order, settings.clip * settings.clip_schedule.now(counters))
        rates = self.learning_rates()
        stats = self.lane.update(data, rates, counters.updates, check)
        self._require_finite(data, rates, stats.num_updates)
        self.step_sizes.adapt(stats)
        counters.updates += stats.num_updates
        if self.obs_normaliser is not None:
            self.obs_normaliser.refresh()
        return stats

    def _require_finite(self, data: Minibatches, rates: Array, made: int) -> None:
        """Parameters that the last step made too large must not act; its minibatch is the one that is kept."""
        if self.settings.device == "cpu" and not np.isfinite(self.lane.parameters()).all():
            acted = self.objective.shared(data, {ONLINE: Network(self.network, dict(self.network.named_parameters()))})
            batch = self.objective.kept(data, made - 1, acted)
            failed = FailedUpdate(self.counters.updates + made, float(rates[made - 1]), self.lane.state(), batch)
            raise explained(failed, self.objective.in_order(self.network, "float32", failed))

    def learning_rates(self) -> Array:
        """The learning rate of each of the next rollout's updates."""
        return self.step_sizes.learning_rates(self.counters)

    def forget_episodes(self) -> None:
        for scaler in self._scalers:
            scaler.forget_episodes()

    def weights(self) -> Array:
        """All that acting needs, as one vector: the parameters, then what observations are normalised by."""
        own = self.lane.parameters()
        return own if self.obs_normaliser is None else np.concatenate([own, self.obs_normaliser.weights()])

    def load_weights(self, values: Array) -> None:
        if self.obs_normaliser is not None:
            self.obs_normaliser.load_weights(values[-self.obs_normaliser.num_weights :])
            values = values[: -self.obs_normaliser.num_weights]
        self.lane.load_parameters(values)

    def reseed(self, seed: int) -> None:
        """Shuffle minibatches by another stream from here on."""
        self._shuffler[:] = seed

    def state(self) -> dict[str, Any]:
        state = self.lane.state() | {
            "weights": self.weights(),
            "shuffler": self._shuffler.copy(),
            "lr_scale": np.array(self.step_sizes.scale),
            **(self.counters.state() if self._counts_alone else {}),
        }
        scalers = {str(part): scaler.state() for part, scaler in enumerate(self._scalers)}
        if self._of_graphs:
            return state | {"reward_scalers": scalers}
        normaliser = {} if self.obs_normaliser is None else self.obs_normaliser.state()
        return state | {"obs_normaliser": normaliser, "reward_scaler": scalers.get("0", {})}

    def load_state(self, state: dict[str, Any]) -> None:
        self.lane.load_state(state)
        self._shuffler[:] = state["shuffler"]
        self.step_sizes.scale = float(state["lr_scale"])
        if self._counts_alone:
            self.counters.load_state(state)
        if self.obs_normaliser is not None:
            self.obs_normaliser.load_state(state["obs_normaliser"])
        scalers = state["reward_scalers"] if self._of_graphs else {"0": state["reward_scaler"]}
        for part, scaler in enumerate(self._scalers):
            scaler.load_state(scalers[str(part)])


def policy_objective(settings: PPOSettings, actions: ActionMap | GraphActionMap) -> PolicyObjective | GraphObjective:
    """What one update computes."""
    if isinstance(actions, ActionMap):
        return PolicyObjective(policy_spec(settings, actions.layout))
    layout = ActionLayout(continuous=actions.num_continuous, squashed=True)
    return GraphObjective(policy_spec(settings, layout), settings.reward_parts.value_weights)


def _refuse_for_graphs(settings: PPOSettings) -> None:
    if is_file(settings.network.torso):
        raise SettingsError(
            f"`network.torso` is `{settings.network.torso}`, but the observation is a graph",
            "networks over graphs are set by `network.graph`",
        )
    if settings.normalise.obs:
        raise SettingsError(
            "`normalise.obs` is set, but the observation is a graph, which comes scaled", "`--normalise.obs false`"
        )


def normalise_advantages(advantage: Array, weight: Array) -> None:
    """In place, over the rows that count, with the population's deviation."""
    counted = advantage[weight > 0]
    advantage -= counted.mean()
    advantage /= counted.std() + 1e-8


class StochasticPolicy:
    """Draws from the policy, and writes down what learning will need, where `row` says."""

    def __init__(self, learner: PPOLearner, row: Callable[[], RolloutRow], seed: int) -> None:
        self._learner = learner
        self._row = row
        self._rng = np.array([seed], dtype=np.uint64)

    def act(self, obs: Obs, action_mask: Array | None) -> Array:
        learner, row = self._learner, self._row()
        learner.observe(obs, row.obs)
        learner.draw(row, self._rng, action_mask)
        if row.action_mask is not None:
            row.action_mask[:] = action_mask
        return learner.actions.to_env(row.action)

    def reseed(self, seed: int) -> None:
        """Draw from another stream from here on."""
        self._rng[:] = seed

    def state(self) -> dict[str, Any]:
        return {"rng": self._rng.copy()}

    def load_state(self, state: dict[str, Any]) -> None:
        self._rng[:] = state["rng"]


class GreedyPolicy:
    """The likeliest choices and the means of numbers: for evaluation."""

    def __init__(self, learner: PPOLearner) -> None:
        self._learner = learner

    def act(self, obs: Obs, action_mask: Array | None) -> Array:
        learner = self._learner
        outputs, _ = learner.lane.infer(learner.normalise(obs))
        log_std = learner.network.log_std.detach().cpu().numpy()
        return learner.actions.to_env(learner.actions.best(outputs, log_std, action_mask))
