"""The actor-critic learner: what an update computes, as an objective, a lane that executes it, and running statistics.

One learner for observations that are arrays, and for graphs with a value for each part of the reward: a rollout of
arrays has a single part. Below it the policies: drawn while it learns, the
likeliest action when it is judged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from hotloop.core.errors import SettingsError
from hotloop.core.graphs import Graphs, GraphSpec
from hotloop.core.rng import derive_seed
from hotloop.core.schedules import Counters
from hotloop.core.types import Array, EnvObs, GraphRollout, Obs, RolloutRow, RolloutSlab, UpdateStats
from hotloop.core.user_files import is_file
from hotloop.lanes.choice import LaneJob, build_lane, choose_lane, untraceable_torso
from hotloop.lanes.graph_objective import GraphObjective
from hotloop.lanes.nonfinite import FailedUpdate, explained
from hotloop.lanes.objective import ONLINE, Network
from hotloop.lanes.policy_objective import KL, Minibatches, PolicyObjective, PolicySpec, forward_and_draw
from hotloop.lanes.spec import go_on
from hotloop.learners.action_map import ActionMap
from hotloop.learners.derived import resolve
from hotloop.learners.graph_policies import GraphActionMap, GraphGreedyPolicy, GraphStochasticPolicy
from hotloop.learners.learning import Drawing, LearningRates
from hotloop.learners.normalizer import ObsNormalizer, RewardScaler
from hotloop.learners.own_network import GivenModule
from hotloop.maths.action_kernels import shuffle
from hotloop.maths.distributions import ActionLayout
from hotloop.maths.gae_kernels import gae_numpy
from hotloop.nets.actor_critic import actor_critic_layout, build_actor_critic
from hotloop.nets.graphs.network import GraphActorCritic, build_graph_actor_critic
from hotloop.presets.ppo_settings import PPOSettings

LR_FACTOR, LOWEST_LR_SCALE, HIGHEST_LR_SCALE = 1.5, 0.01, 10.0
"""Of the learning rate's adaptation to `kl_target`."""


def policy_spec(settings: PPOSettings, actions: ActionLayout) -> PolicySpec:
    """The settings that decide what one update computes."""
    optimizer = settings.optimizer
    return PolicySpec(
        actions=actions,
        rows=settings.batch_size,
        policy_loss=settings.policy_loss,
        normalize_advantage=settings.normalize_advantage == "minibatch",
        value_clip=settings.value_clip,
        vf_coef=settings.vf_coef,
        ent_coef=settings.ent_coef,
        kl_stop=settings.kl_stop,
        max_grad_norm=optimizer.max_grad_norm,
        beta1=optimizer.beta1,
        beta2=optimizer.beta2,
        epsilon=optimizer.eps,
    )


def adapted(scale: float, kl: float, target: float) -> float:
    """The learning rate's factor after a rollout: steps that move the policy too far become smaller, timid ones
    larger."""
    if kl > 2.0 * target:
        return max(scale / LR_FACTOR, LOWEST_LR_SCALE)
    return min(scale * LR_FACTOR, HIGHEST_LR_SCALE) if kl < 0.5 * target else scale


GRAPHS_UNTRACEABLE = "graphs of changing size: every minibatch has another shape"


def build_graph_network(settings: PPOSettings, spec: GraphSpec, actions: GraphActionMap, seed: int) -> GraphActorCritic:
    network, parts = settings.network, len(settings.reward_parts.value_weights)
    return build_graph_actor_critic(
        network.graph, spec, actions.num_continuous, parts, actions.per_node, network.log_std, seed
    )


class PPOLearner:
    """Learns: `compute_advantages` turns a rollout into advantages, `update` goes through it for some epochs.

    Counts its updates, and checks nothing, as `DQNLearner` does; `PolicyLearner` looks at what others hand it. `given`
    is a module of theirs, with what its actions are.
    """

    num_choices = None

    def __init__(
        self,
        settings: PPOSettings,
        obs_spec: Any,
        action_spec: Any,
        counters: Counters | None = None,
        given: GivenModule | None = None,
    ) -> None:
        self.settings = settings = settings if given else resolve(settings, obs_spec)
        self.counters, self._counts_alone = counters or Counters(), counters is None
        self.rows_per_update, self._of_graphs = settings.batch_size, isinstance(obs_spec, GraphSpec)
        if given is None:
            self.actions, self.network, known = self._built(obs_spec, action_spec)
        else:
            self.actions, self.network = action_spec, given.shared
        self.objective = policy_objective(settings, self.actions)
        self.measures = self.objective.measures
        job = LaneJob(
            objective=self.objective,
            layout=None,
            batch_size=settings.batch_size,
            device=settings.device,
            precision=settings.learner.precision,
            num_envs=settings.env.num_envs,
            planned_updates=settings.total_env_steps // settings.rollout_rows * settings.updates_per_rollout,
        )
        if given is None:
            untraceable = untraceable_torso(self.network, job.planned_updates)
            job = replace(job, **({"untraceable": untraceable} | known))
        else:
            job = given.job(job)
        self.choice = choose_lane(settings.learner.lane, job)
        self.lane: Any = build_lane(self.choice, job, self.network)
        self._is_on_cpu = job.device == "cpu"
        normalize, num_envs = settings.normalize, settings.env.num_envs
        self.obs_normalizer = ObsNormalizer(obs_spec, normalize.limit) if normalize.obs else None
        parts = len(settings.reward_parts.value_weights) if self._of_graphs else 1
        scaled = range(parts) if normalize.reward else ()
        self._scalers = [RewardScaler(num_envs, settings.gamma, normalize.limit) for _ in scaled]
        self.shuffler = np.array([derive_seed(settings.seed, "shuffle")], np.uint64)
        self._order = np.empty((settings.n_epochs, settings.rollout_rows), np.int64)
        self.rates, self.clip = LearningRates(settings.optimizer), settings.clip_range

    def _built(self, obs_spec: Any, action_spec: Any) -> tuple[Any, Any, dict[str, Any]]:
        """How actions are to be read, the network that the settings say, and what a lane may know of it."""
        settings, init = self.settings, derive_seed(self.settings.seed, "init")
        actions: Any
        if isinstance(obs_spec, GraphSpec):
            _refuse_for_graphs(settings)
            actions = GraphActionMap(action_spec)
            network = build_graph_network(settings, obs_spec, actions, init)
            return actions, network, {"untraceable": GRAPHS_UNTRACEABLE}
        actions = ActionMap(action_spec, settings.network.squashed)
        torso = build_actor_critic(settings.network, obs_spec, actions.layout, init)
        reading = getattr(torso, "reading", None)
        if reading:
            return actions, torso, {"layout": reading.layout, "unreadable": reading.reason}
        return actions, torso, {"layout": actor_critic_layout(settings.network, obs_spec)}

    def normalize(self, obs: EnvObs) -> EnvObs:
        """The observation as the network gets it."""
        return obs if self.obs_normalizer is None or isinstance(obs, Graphs) else self.obs_normalizer.apply(obs)

    def observe(self, obs: Obs, out: Obs) -> None:
        """The same into `out`, and for the statistics of the next rollout."""
        if self.obs_normalizer is not None:
            self.obs_normalizer.absorb(obs)
            obs = self.obs_normalizer.apply(obs)
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
        answers = self.lane.infer(self.normalize(obs))
        return answers[2].T if self._of_graphs else answers[1][None]

    def compute_advantages(
        self, rollout: RolloutSlab | GraphRollout, last_obs: EnvObs, timeouts: tuple[Array, Array, EnvObs] | None
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
        weight = rollout.weight if isinstance(rollout, RolloutSlab) else np.ones(rollout.terminated.shape, np.float32)
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
        if self.settings.normalize_advantage == "rollout":
            normalize_advantage(rollout.advantage, weight)

    def _join_parts(self, by_part: Array, advantage: Array) -> None:
        """The advantages [P, T, N] of all parts as one [T, N]."""
        parts = self.settings.reward_parts
        if parts.advantage == "total":
            advantage[:] = by_part[0]
        else:
            advantage[:] = np.tensordot(np.array(parts.advantage_weights, np.float32), by_part, 1)

    def update(self, rollout: RolloutSlab | GraphRollout, check: Callable[[], None] = go_on) -> UpdateStats:
        """Epochs over minibatches. What `check` raises between two of them leaves the learner half-way."""
        settings, counters = self.settings, self.counters
        if self._order.shape[1] != rollout.terminated.size:
            self._order = np.empty((settings.n_epochs, rollout.terminated.size), np.int64)
        shuffle(self.shuffler, self._order)
        data = Minibatches(rollout, self._order, self.clip * settings.clip_schedule.now(counters))
        rates = self.rates.of(self._order.size // settings.batch_size, counters)
        stats = self.lane.update(data, rates, counters.updates, check)
        self._require_finite(data, rates, stats.num_updates)
        if settings.kl_target > 0.0:  # one read from the device
            kl = float(stats.scalars[KL, -(self._order.shape[1] // settings.batch_size) :].mean())
            self.rates.scale = adapted(self.rates.scale, kl, settings.kl_target)
        counters.updates += stats.num_updates
        if self.obs_normalizer is not None:
            self.obs_normalizer.refresh()
        return stats

    def _require_finite(self, data: Minibatches, rates: Array, made: int) -> None:
        """Parameters that the last step made too large must not act; its minibatch is the one that is kept."""
        if self._is_on_cpu and not np.isfinite(self.lane.parameters()).all():
            acted = self.objective.call_constants(
                data, {ONLINE: Network(self.network, dict(self.network.named_parameters()))}
            )
            batch = self.objective.failure_batch(data, made - 1, acted)
            failed = FailedUpdate(self.counters.updates + made, float(rates[made - 1]), self.lane.state(), batch)
            raise explained(failed, self.objective.nan_search_order(self.network, "float32", failed))

    def facts(self) -> dict[str, float]:
        """What a log row says beside the metrics."""
        return {"lr": float(self.learning_rates()[0])}

    def learning_rates(self) -> Array:
        """The learning rate of each of the next rollout's updates."""
        return self.rates.of(self.settings.updates_per_rollout, self.counters)

    def exploring(self, seed: int) -> StochasticPolicy | GraphStochasticPolicy:
        return GraphStochasticPolicy(self, seed) if self._of_graphs else StochasticPolicy(self, seed)

    def evaluation_policy(self) -> GreedyPolicy | GraphGreedyPolicy:
        return GraphGreedyPolicy(self) if self._of_graphs else GreedyPolicy(self)

    def forget_episodes(self) -> None:
        for scaler in self._scalers:
            scaler.forget_episodes()

    def weights(self) -> Array:
        """All that acting needs, as one vector: the parameters, then what observations are normalized by."""
        own = self.lane.parameters()
        return own if self.obs_normalizer is None else np.concatenate([own, self.obs_normalizer.weights()])

    def load_weights(self, values: Array) -> None:
        if self.obs_normalizer is not None:
            self.obs_normalizer.load_weights(values[-self.obs_normalizer.num_weights :])
            values = values[: -self.obs_normalizer.num_weights]
        self.lane.load_parameters(values)

    def reseed(self, *stream: str | int) -> None:
        """Shuffle minibatches by another stream from here on."""
        self.shuffler[:] = derive_seed(self.settings.seed, *stream, "shuffler")

    def state(self) -> dict[str, Any]:
        state = self.lane.state() | {
            "weights": self.weights(),
            "shuffler": self.shuffler.copy(),
            "lr_scale": np.array(self.rates.scale),
            **(self.counters.state() if self._counts_alone else {}),
        }
        scalers = {str(part): scaler.state() for part, scaler in enumerate(self._scalers)}
        if self._of_graphs:
            return state | {"reward_scalers": scalers}
        normalizer = {} if self.obs_normalizer is None else self.obs_normalizer.state()
        return state | {"obs_normaliser": normalizer, "reward_scaler": scalers.get("0", {})}

    def load_state(self, state: dict[str, Any]) -> None:
        self.lane.load_state(state)
        self.shuffler[:] = state["shuffler"]
        self.rates.scale = float(state["lr_scale"])
        if self._counts_alone:
            self.counters.load_state(state)
        if self.obs_normalizer is not None:
            self.obs_normalizer.load_state(state["obs_normaliser"])
        scalers = state["reward_scalers"] if self._of_graphs else {"0": state["reward_scaler"]}
        for part, scaler in enumerate(self._scalers):
            scaler.load_state(scalers[str(part)])


def policy_objective(settings: PPOSettings, actions: Any) -> PolicyObjective | GraphObjective:
    """What one update computes."""
    if not isinstance(actions, GraphActionMap):
        return PolicyObjective(policy_spec(settings, actions.layout))
    layout = ActionLayout(continuous=actions.num_continuous, squashed=True)
    return GraphObjective(policy_spec(settings, layout), settings.reward_parts.value_weights)


def _refuse_for_graphs(settings: PPOSettings) -> None:
    if is_file(settings.network.torso):
        raise SettingsError(
            f"`network.torso` is `{settings.network.torso}`, but the observation is a graph",
            "networks over graphs are set by `network.graph`",
        )
    if settings.normalize.obs:
        raise SettingsError(
            "`normalize.obs` is set, but the observation is a graph, which comes scaled", "`--normalize.obs false`"
        )


def normalize_advantage(advantage: Array, weight: Array) -> None:
    """In place, over the rows that count, with the population's deviation."""
    counted = advantage[weight > 0]
    advantage -= counted.mean()
    advantage /= counted.std() + 1e-8


class StochasticPolicy(Drawing):
    """Draws from the policy, and returns with the action what learning from it will need."""

    def __init__(self, learner: PPOLearner, seed: int) -> None:
        self._learner = learner
        super().__init__(seed)

    def act(self, obs: Obs, action_mask: Array | None, out: RolloutRow) -> tuple[Array, RolloutRow]:
        """`out` is the row of a rollout that is written to and returned: copying it took as long as drawing."""
        learner = self._learner
        learner.observe(obs, out.obs)
        learner.draw(out, self.rng, action_mask)
        if out.action_mask is not None:
            out.action_mask[:] = action_mask
        return learner.actions.to_env(out.action), out

    def facts(self) -> dict[str, float]:
        return self._learner.facts()


class GreedyPolicy:
    """The likeliest choices and the means of numbers: for evaluation."""

    def __init__(self, learner: PPOLearner) -> None:
        self._learner = learner

    def act(self, obs: Obs, action_mask: Array | None) -> Array:
        learner = self._learner
        outputs, _ = learner.lane.infer(learner.normalize(obs))
        log_std = learner.network.log_std.detach().cpu().numpy()
        return learner.actions.to_env(learner.actions.best(outputs, log_std, action_mask))
