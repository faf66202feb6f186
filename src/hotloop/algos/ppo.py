"""The actor-critic learner: what an update is, as a `PolicySpec`, a lane that executes it, and running statistics."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.algos.action_map import ActionMap
from hotloop.algos.normaliser import ObsNormaliser, RewardScaler
from hotloop.algos.ppo_settings import PPOSettings
from hotloop.core.rng import derive_seed
from hotloop.core.schedules import Counters
from hotloop.core.types import ActionSpec, Array, Obs, ObsSpec, Rollout
from hotloop.lanes.numbers import FailedUpdate
from hotloop.lanes.policy_choice import PolicyJob, build_policy_lane, choose_policy_lane
from hotloop.lanes.policy_numbers import minibatch, policy_failure
from hotloop.lanes.policy_spec import PolicySpec, PolicyStats
from hotloop.maths.action_kernels import shuffle
from hotloop.maths.actions import ActionLayout
from hotloop.maths.gae_kernels import gae_slab
from hotloop.nets.actor_critic import actor_critic_layout, build_actor_critic

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


class StepSizes:
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

    def adapt(self, stats: PolicyStats) -> None:
        """Steps that move the policy too far become smaller, timid ones larger; one read from the device a rollout."""
        per_epoch, target = self._settings.updates_per_rollout // self._settings.epochs, self._settings.kl_target
        if target <= 0.0:
            return
        kl = float(stats.scalars[PolicyStats.KL, -per_epoch:].mean())
        if kl > 2.0 * target:
            self.scale = max(self.scale / LR_FACTOR, LOWEST_LR_SCALE)
        elif kl < 0.5 * target:
            self.scale = min(self.scale * LR_FACTOR, HIGHEST_LR_SCALE)


class PPOLearner:
    """Learns: `finish` turns a rollout into advantages, `update` goes through it for some epochs.

    Counts its updates as `DQNLearner` does.
    """

    def __init__(
        self, settings: PPOSettings, obs_spec: ObsSpec, actions: ActionSpec, counters: Counters | None = None
    ) -> None:
        self.settings = settings
        self.counters, self._counts_alone = counters or Counters(), counters is None
        self.rows_per_update = settings.batch_size
        self.actions = ActionMap(actions, settings.network.squashed)
        seed, layout = settings.seed, self.actions.layout
        self.network = build_actor_critic(settings.network, obs_spec, layout, derive_seed(seed, "init"))
        job = PolicyJob(
            spec=policy_spec(settings, layout),
            layout=actor_critic_layout(settings.network, obs_spec),
            device=settings.device,
            precision=settings.learner.precision,
            num_envs=settings.env.num_envs,
            planned_updates=settings.total_env_steps // settings.rollout_rows * settings.updates_per_rollout,
        )
        self.choice = choose_policy_lane(settings.learner.lane, job)
        self.lane = build_policy_lane(self.choice, job, self.network)
        normalise = settings.normalise
        self.obs_normaliser = ObsNormaliser(obs_spec, normalise.limit) if normalise.obs else None
        self._scaler = (
            RewardScaler(settings.env.num_envs, settings.gamma, normalise.limit) if normalise.reward else None
        )
        self._shuffler = np.array([derive_seed(seed, "shuffle")], np.uint64)
        self._order = np.empty((settings.epochs, settings.rollout_rows), np.int64)
        self.step_sizes = StepSizes(settings)

    def seen(self, obs: Obs) -> Obs:
        """The observation as the network gets it."""
        return obs if self.obs_normaliser is None else self.obs_normaliser.apply(obs)

    def see(self, obs: Obs, out: Obs) -> None:
        """The same into `out`, and for the statistics of the next rollout."""
        if self.obs_normaliser is not None:
            self.obs_normaliser.absorb(obs)
            obs = self.obs_normaliser.apply(obs)
        if isinstance(out, dict):
            for name, part in out.items():
                part[:] = obs[name]
        else:
            out[:] = obs

    def finish(self, rollout: Rollout, last_obs: Obs, timeouts: tuple[Array, Array, Obs] | None) -> None:
        """Values of what came last and of time-outs' final observations; rewards scaled; advantages and returns."""
        settings = self.settings
        rollout.value[-1] = self.lane.forward(self.seen(last_obs))[1]
        if timeouts is not None:
            steps, envs, final_obs = timeouts
            rollout.final_value[steps, envs] = self.lane.forward(self.seen(final_obs))[1]
        if self._scaler is not None:
            self._scaler.apply(rollout.reward, rollout.terminated | rollout.truncated, rollout.weight)
        gae_slab(
            rollout.reward, rollout.terminated, rollout.truncated, rollout.value, rollout.final_value,
            settings.gamma, settings.gae_lambda, rollout.advantage, rollout.returns,
        )  # fmt: skip
        if settings.normalise_advantage == "rollout":
            normalise_advantages(rollout.advantage, rollout.weight)

    def update(self, rollout: Rollout) -> PolicyStats:
        settings, counters = self.settings, self.counters
        shuffle(self._shuffler, self._order)
        clip = settings.clip * settings.clip_schedule.now(counters)
        rates = self.learning_rates()
        stats = self.lane.update(rollout, self._order, rates, clip, counters.updates)
        self._require_finite(rollout, clip, rates, stats.made())
        self.step_sizes.adapt(stats)
        counters.updates += stats.made()
        if self.obs_normaliser is not None:
            self.obs_normaliser.refresh()
        return stats

    def _require_finite(self, rollout: Rollout, clip: float, rates: Array, made: int) -> None:
        """Parameters that the last step made too large must not act; its minibatch is the one that is kept."""
        if self.settings.device == "cpu" and not np.isfinite(self.lane.parameters()).all():
            chosen = self._order.reshape(-1)[(made - 1) * self.rows_per_update : made * self.rows_per_update]
            batch = minibatch(rollout, chosen, self.lane.log_std(), clip)
            number = self.counters.updates + made + 1
            failed = FailedUpdate(number, float(rates[made - 1]), self.lane.state(), batch)
            raise policy_failure(self.lane.spec, self.network, "float32", failed)

    def learning_rates(self) -> Array:
        """The learning rate of each of the next rollout's updates."""
        return self.step_sizes.learning_rates(self.counters)

    def forget_episodes(self) -> None:
        if self._scaler is not None:
            self._scaler.forget_episodes()

    def weights(self) -> Array:
        """All that acting needs, as one vector: the parameters, then what observations are normalised by."""
        own = self.lane.parameters()
        return own if self.obs_normaliser is None else np.concatenate([own, self.obs_normaliser.weights()])

    def load_weights(self, values: Array) -> None:
        if self.obs_normaliser is not None:
            self.obs_normaliser.load_weights(values[-self.obs_normaliser.num_weights :])
            values = values[: -self.obs_normaliser.num_weights]
        self.lane.load_parameters(values)

    def state(self) -> dict[str, Any]:
        return self.lane.state() | {
            "weights": self.weights(),
            "shuffler": self._shuffler.copy(),
            "lr_scale": np.array(self.step_sizes.scale),
            "obs_normaliser": {} if self.obs_normaliser is None else self.obs_normaliser.state(),
            "reward_scaler": {} if self._scaler is None else self._scaler.state(),
            **(self.counters.state() if self._counts_alone else {}),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        self.lane.load_state(state)
        self._shuffler[:] = state["shuffler"]
        self.step_sizes.scale = float(state["lr_scale"])
        if self._counts_alone:
            self.counters.load_state(state)
        if self.obs_normaliser is not None:
            self.obs_normaliser.load_state(state["obs_normaliser"])
        if self._scaler is not None:
            self._scaler.load_state(state["reward_scaler"])


def normalise_advantages(advantage: Array, weight: Array) -> None:
    """In place, over the rows that count, with the population's deviation."""
    counted = advantage[weight > 0]
    advantage -= counted.mean()
    advantage /= counted.std() + 1e-8
