"""SAC, TD3 and DDPG: the learner (a `SACObjective` and the lane that executes it), then the policies, exploring and
judged."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.errors import EnvError
from hotloop.core.rng import derive_seed
from hotloop.core.schedules import Counters
from hotloop.core.types import Array, Batch, BoxActions, Obs, ObsSpec, UpdateStats
from hotloop.core.values import exact_fraction
from hotloop.lanes.choice import LaneJob, build_lane, choose_lane
from hotloop.lanes.sac_objective import SACBatch, SACObjective, SACSpec
from hotloop.learners.derived import resolve
from hotloop.learners.learning import Drawing, LearningRates, ObsNormalization, moves_due
from hotloop.learners.sac_kernels import best_squashed, draw_around, draw_evenly, draw_squashed
from hotloop.maths.normal_kernels import fill_normals
from hotloop.maths.sac import HIGHEST_LOG_STD, LOWEST_LOG_STD
from hotloop.nets.sac_network import SACNetwork, build_sac_network, sac_layout
from hotloop.presets.sac_settings import SACSettings

SAC_CRITIC_WEIGHT, TD3_CRITIC_WEIGHT = 0.5, 1.0
"""Of the critics' squared errors, as the papers' programs have them."""


def sac_spec(settings: SACSettings, actions: int) -> SACSpec:
    """The settings that decide what one update computes."""
    optimizer, target, temperature = settings.optimizer, settings.target, settings.temperature
    stochastic = settings.policy == "stochastic"
    return SACSpec(
        actions=actions,
        critics=settings.network.critics,
        stochastic=stochastic,
        learn_temperature=stochastic and temperature.learned,
        temperature=temperature.start,
        target_entropy=temperature.entropy_per_number * actions,
        slope_epsilon=0.0,
        smoothing=0.0 if stochastic else settings.smoothing.noise,
        smoothing_clip=settings.smoothing.clip,
        policy_delay=settings.policy_delay,
        critic_weight=SAC_CRITIC_WEIGHT if stochastic else TD3_CRITIC_WEIGHT,
        max_grad_norm=optimizer.max_grad_norm,
        accumulate=optimizer.accumulate,
        beta1=optimizer.beta1,
        beta2=optimizer.beta2,
        epsilon=optimizer.eps,
        target_tau=target.tau,
        target_every=target.every if target.unit == "updates" else 0,
    )


def build_networks(settings: SACSettings, obs_spec: ObsSpec, actions: int, seed: int) -> SACNetwork:
    spec = sac_spec(settings, actions)
    temperature = spec.temperature if spec.learn_temperature else None
    return build_sac_network(settings.network, obs_spec, actions, spec.stochastic, temperature, seed)


class UnitActions:
    """An env's actions in units of half their range around its middle: -1 is the lowest, 1 the highest."""

    def __init__(self, spec: BoxActions) -> None:
        self.spec, self.count = spec, len(spec.low)
        low, high = np.array(spec.low), np.array(spec.high)
        self._middle = ((low + high) / 2).astype(np.float32)
        self._half = ((high - low) / 2).astype(np.float32)
        self._same = bool((self._middle == 0).all() and (self._half == 1).all())

    def to_env(self, unit: Array) -> Array:
        """Rows [N, A] as the env takes them, float32 [N, ...]."""
        action = unit if self._same else self._middle + self._half * unit
        return action.reshape(len(unit), *self.spec.shape)

    def from_env(self, action: Array) -> Array:
        """Of k batches [k, B, ...]: [k, B, A]."""
        rows = action.reshape(*action.shape[:2], self.count)
        return rows if self._same else (rows - self._middle) / self._half


def require_ranges(env_id: str, spec: BoxActions) -> None:
    """Actions are drawn between their bounds: a number that has one value only leaves nothing to draw."""
    fixed = next((index for index, (low, high) in enumerate(zip(spec.low, spec.high, strict=True)) if low == high), -1)
    if fixed >= 0:
        raise EnvError(
            f"number {fixed} of the actions of `{env_id}` can be {spec.low[fixed]:g} and nothing else: its lowest "
            "value is its highest; SAC draws from a range",
            "leave it out of the action space, and let a wrapper add it: gymnasium.wrappers.TransformAction",
        )


class SoftActorCriticLearner:
    """Learns: `update` makes k sequential updates of critics, actor and temperature. Counts as `DQNLearner` does.

    The normal numbers of an update are drawn here, from one stream that is saved with the learner, so that all lanes
    are given the same.
    """

    num_choices = None

    def __init__(
        self, settings: SACSettings, obs_spec: ObsSpec, action_spec: BoxActions, counters: Counters | None = None
    ) -> None:
        self.settings = settings = resolve(settings, obs_spec)
        self.counters, self._counts_alone = counters or Counters(), counters is None
        self.rows_per_update = settings.batch_size * settings.optimizer.accumulate
        require_ranges(settings.env.id, action_spec)
        self.actions = UnitActions(action_spec)
        count = self.actions.count
        self.network = build_networks(settings, obs_spec, count, derive_seed(settings.seed, "init"))
        self.objective = SACObjective(sac_spec(settings, count))
        job = self._lane_job(sac_layout(settings.network, obs_spec, count, settings.policy == "stochastic"))
        self.measures = self.objective.measures
        self.choice = choose_lane(settings.learner.lane, job)
        self.lane: Any = build_lane(self.choice, job, self.network)
        self.normalization = ObsNormalization(settings, obs_spec)
        self._rates = LearningRates(settings.optimizer)
        self._noise = np.array([derive_seed(settings.seed, "noise")], np.uint64)

    def _lane_job(self, layout: Any) -> LaneJob:
        settings = self.settings
        return LaneJob(
            objective=self.objective,
            layout=layout,
            batch_size=self.rows_per_update,
            device=settings.device,
            precision=settings.learner.precision,
            num_envs=settings.env.num_envs,
            planned_updates=int(settings.total_env_steps * exact_fraction(settings.updates_per_env_step)),
        )

    def prepare(self, example: Batch, most_updates: int) -> None:
        """Let the lane compile what it will need for batches shaped like `example`."""
        drawn = self._noise.copy()
        self.lane.prepare(self.with_noise(example), most_updates)
        self._noise[:] = drawn

    def with_noise(self, batches: Batch) -> SACBatch:
        """What the lane is given: actions in their units, and the numbers that each update draws, one update after
        another."""
        spec, action = self.objective.spec, self.actions.from_env(batches.action)
        kinds = 2 if spec.stochastic else int(spec.smoothing > 0.0)
        noise = np.empty((kinds, *action.shape), np.float32)
        for j in range(len(action)):
            for kind in noise:
                fill_normals(self._noise, kind[j].reshape(-1))
        return SACBatch(
            batches.obs, action, batches.reward, batches.discount, batches.next_obs, batches.weight, *noise
        )  # fmt: skip

    def update(self, batches: Batch) -> UpdateStats:
        """One update on each of the k batches [k, B, ...], in order."""
        k, counters = len(batches.reward), self.counters
        data = self.with_noise(self.normalization.of_batches(batches))
        stats = self.lane.update(data, self._rates.of(k, counters), counters.updates)
        counters.updates += k
        return stats

    def update_target_if_due(self, before: Counters) -> None:
        """Move the targets where they count env steps or episodes."""
        for _ in range(moves_due(self.settings.target, before, self.counters)):
            self.lane.move_target(self.settings.target.tau)

    def exploring(self, seed: int) -> Exploring:
        return Exploring(self, seed)

    def evaluation_policy(self) -> DeterministicPolicy:
        return DeterministicPolicy(self)

    def weights(self) -> Array:
        """The parameters of actor, critics and temperature, then what observations are normalized by."""
        return self.normalization.joined(self.lane.parameters())

    def load_weights(self, values: Array) -> None:
        self.lane.load_parameters(self.normalization.split(values))

    def forget_episodes(self) -> None:
        """Nothing is remembered of them."""

    def reseed(self, *stream: str | int) -> None:
        """Draw an update's numbers from another stream from here on."""
        self._noise[:] = derive_seed(self.settings.seed, *stream, "noise")

    def state(self) -> dict[str, Any]:
        parameters = self.lane.parameters()
        state = self.lane.state() | {"weights": parameters, "noise": self._noise.copy()}
        return state | self.normalization.state(parameters) | (self.counters.state() if self._counts_alone else {})

    def load_state(self, state: dict[str, Any]) -> None:
        self.lane.load_state(state)
        self._noise[:] = state["noise"]
        self.normalization.load_state(state)
        if self._counts_alone:
            self.counters.load_state(state)


class DeterministicPolicy:
    """The mean of a stochastic policy, a deterministic one without noise: for evaluation."""

    def __init__(self, learner: SoftActorCriticLearner) -> None:
        self._learner = learner

    def act(self, obs: Obs, action_mask: Array | None) -> Array:
        (outputs,) = self._learner.lane.infer(self._learner.normalization.see(obs))
        unit = np.empty((len(outputs), self._learner.actions.count), np.float32)
        best_squashed(outputs, unit)
        return self._learner.actions.to_env(unit)


class Exploring(Drawing):
    """Evenly over the range until the warm-up is over; then drawn from the policy, or around a deterministic one."""

    def __init__(self, learner: SoftActorCriticLearner, seed: int) -> None:
        self._learner = learner
        super().__init__(seed)

    def act(self, obs: Obs, action_mask: Array | None, out: None = None) -> tuple[Array, None]:
        learner, settings = self._learner, self._learner.settings
        seen = learner.normalization.note(obs)
        num_envs = len(next(iter(seen.values())) if isinstance(seen, dict) else seen)
        unit = np.empty((num_envs, learner.actions.count), np.float32)
        if learner.counters.env_steps < settings.learning_starts:
            draw_evenly(self.rng, unit)
        else:
            draw_unit(self.rng, settings.policy, learner.lane.infer(seen)[0], self.deviation, unit)
        return learner.actions.to_env(unit), None

    @property
    def deviation(self) -> float:
        """Of the noise on a deterministic policy's actions."""
        return self._learner.settings.exploration.now(self._learner.counters)

    def facts(self) -> dict[str, float]:
        return {} if self._learner.settings.policy == "stochastic" else {"exploration": self.deviation}


def draw_unit(rng: Array, policy: str, outputs: Array, deviation: float, unit: Array) -> None:
    """Fill `unit` [N, A] from what the actor says [N, O], advancing the generator `rng` [1]."""
    if policy == "stochastic":
        draw_squashed(rng, outputs, LOWEST_LOG_STD, HIGHEST_LOG_STD, unit)
    else:
        draw_around(rng, outputs, deviation, unit)
