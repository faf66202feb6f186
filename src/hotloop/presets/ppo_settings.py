"""Every setting of the actor-critic family: PPO, and A2C as `policy_loss = "plain"` with one epoch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from hotloop.core.errors import SettingsError
from hotloop.core.schedules import Schedule
from hotloop.core.values import Count, Switch, require_at_least, require_finite, require_settings
from hotloop.presets.env_settings import EnvSettings
from hotloop.presets.network_settings import ActorCriticSettings
from hotloop.presets.run_settings import AnyRun, CheckpointSettings, EvaluationSettings, Precision


@dataclass(frozen=True, kw_only=True)
class PolicyOptimizerSettings:
    """Adam on all parameters at once."""

    learning_rate: float = 3e-4
    """Learning rate, above 0."""
    lr_schedule: Schedule = field(default_factory=Schedule)
    """What the learning rate is multiplied with over time."""
    beta1: float = 0.9
    """Decay of the running mean of gradients, at least 0 and below 1."""
    beta2: float = 0.999
    """Decay of the running mean of squared gradients, at least 0 and below 1."""
    eps: float = 1e-5
    """Added to the denominator, above 0."""
    max_grad_norm: float = 0.5
    """Gradients with a larger norm are scaled down to it; 0: never."""

    def __post_init__(self) -> None:
        require_finite(self, "optimizer.")
        for name in ("learning_rate", "eps"):
            if getattr(self, name) <= 0:
                raise SettingsError(f"`optimizer.{name}` is {getattr(self, name)}, expected above 0")
        for name in ("beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise SettingsError(f"`optimizer.{name}` is {getattr(self, name)}, expected at least 0 and below 1")
        if self.max_grad_norm < 0:
            raise SettingsError(f"`optimizer.max_grad_norm` is {self.max_grad_norm}, expected 0 or more")


@dataclass(frozen=True, kw_only=True)
class PolicyLearnerSettings:
    """How updates are executed; never what they compute."""

    lane: Literal["auto", "eager", "compiled", "native"] = "auto"
    """`eager`: plain PyTorch. `compiled`: four updates fused into one call of compiled code. `native`: all epochs in
    one machine-code call, for multilayer networks on a CPU. `auto` chooses by rule and says why."""
    precision: Precision = "float32"
    """`float32`, or `bfloat16` for the network's products (eager and compiled lanes): not exact, and said so."""


@dataclass(frozen=True, kw_only=True)
class NormalizeSettings:
    """Running statistics, saved with the run and with its best weights."""

    obs: Switch = False
    """Bring every number of the observation to mean 0 and deviation 1; the statistics move between rollouts only.
    `auto`: where it has numbers that are not bytes, and is no graph."""
    reward: bool = False
    """Divide rewards by the deviation of discounted returns; what is reported stays as the env gives it."""
    limit: float = 10.0
    """Normalized observations and rewards are held between -limit and limit, above 0."""

    def __post_init__(self) -> None:
        require_finite(self, "normalize.")
        if self.limit <= 0:
            raise SettingsError(f"`normalize.limit` is {self.limit}, expected above 0")


@dataclass(frozen=True, kw_only=True)
class RewardPartSettings:
    """For envs whose reward comes in parts (durotaxis): a value of its own for each."""

    value_weights: tuple[float, ...] = (1.0, 0.4, 0.3, 0.2, 0.2, 0.3)
    """Of each part's squared value error in the loss, 0 or more; the first is the whole reward."""
    advantage: Literal["total", "weighted"] = "total"
    """`total`: the policy follows the whole reward. `weighted`: the sum of all parts' advantages, each times its weight
    in `advantage_weights`."""
    advantage_weights: tuple[float, ...] = (1.0, 0.4, 0.3, 0.2, 0.2, 0.3)
    """Of each part's advantage, where they are summed."""

    def __post_init__(self) -> None:
        require_finite(self, "reward_parts.")
        if any(weight < 0 for weight in self.value_weights):
            raise SettingsError(f"`reward_parts.value_weights` is {list(self.value_weights)}, expected 0 or more")
        if not any(self.advantage_weights):
            raise SettingsError("`reward_parts.advantage_weights` are all 0: nothing would be learned")

    def require_parts(self, names: tuple[str, ...]) -> None:
        """One weight for each part that the env has."""
        for name in ("value_weights", "advantage_weights"):
            given = getattr(self, name)
            if len(given) != len(names):
                raise SettingsError(
                    f"`reward_parts.{name}` has {len(given)} weights, the env's reward {len(names)} parts",
                    f"one for each of {', '.join(names)}",
                )


@dataclass(frozen=True, kw_only=True)
class PPOSettings(AnyRun):
    """All settings of a PPO run; `hotloop settings ppo` explains each, `hotloop.preset` makes them."""

    algorithm: Literal["ppo"] = "ppo"
    """Which family: `ppo`."""
    total_env_steps: Count = 100_000
    """The run ends with the rollout that reaches so many transitions over all envs."""
    rollout_steps: Count = 128
    """Steps of every env between two bouts of learning, at least 1."""
    n_epochs: int = 4
    """How often each rollout is gone through, at least 1."""
    batch_size: Count = 256
    """Transitions per minibatch; `rollout_steps` x `env.num_envs` must be a multiple of it."""
    gae_lambda: float = 0.95
    """How far advantages look beyond one step, 0 (one step) to 1 (the whole episode)."""
    policy_loss: Literal["clipped", "plain"] = "clipped"
    """`clipped`: PPO's surrogate (Schulman et al. 2017). `plain`: the policy gradient, A2C, with one epoch."""
    clip_range: float = 0.2
    """How far the ratio of new to old probability is rewarded, above 0."""
    clip_schedule: Schedule = field(default_factory=Schedule)
    """What the clip is multiplied with over time."""
    value_clip: float = 0.0
    """Hold the new value within so much of the old one in the loss; 0: do not."""
    vf_coef: float = 0.5
    """Of the squared value error in the loss, 0 or more."""
    ent_coef: float = 0.0
    """Of the policy's entropy in the loss, 0 or more: keeps it exploring."""
    normalize_advantage: Literal["minibatch", "rollout", "none"] = "minibatch"
    """Bring advantages to mean 0 and deviation 1 (the population's) within each `minibatch` or the whole `rollout`."""
    kl_stop: float = 0.0
    """No further epoch on a rollout once the mean KL of an epoch is above; 0: never."""
    kl_target: float = 0.0
    """Adapt the learning rate: divided by 1.5 after a rollout whose last epoch's KL is above twice this, multiplied
    where below half of it; 0: do not."""
    env: EnvSettings = field(default_factory=lambda: EnvSettings(num_envs=8))
    network: ActorCriticSettings = field(default_factory=ActorCriticSettings)
    normalize: NormalizeSettings = field(default_factory=NormalizeSettings)
    reward_parts: RewardPartSettings = field(default_factory=RewardPartSettings)
    optimizer: PolicyOptimizerSettings = field(default_factory=PolicyOptimizerSettings)
    learner: PolicyLearnerSettings = field(default_factory=PolicyLearnerSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    checkpoint: CheckpointSettings = field(default_factory=CheckpointSettings)

    def __post_init__(self) -> None:
        require_settings(self)
        require_finite(self, "")
        self.check_run()
        require_at_least(1, self, "", "rollout_steps", "n_epochs", "batch_size")
        require_at_least(0, self, "", "value_clip", "vf_coef", "ent_coef", "kl_stop", "kl_target")
        if not 0 <= self.gae_lambda <= 1:
            raise SettingsError(f"`gae_lambda` is {self.gae_lambda}, expected 0 to 1")
        if self.clip_range <= 0:
            raise SettingsError(f"`clip_range` is {self.clip_range}, expected above 0", "0.2 is usual")
        self._check_combinations()

    def _check_combinations(self) -> None:
        if self.rollout_rows % self.batch_size:
            raise SettingsError(
                f"`batch_size` is {self.batch_size}, but a rollout has {self.rollout_steps} x {self.env.num_envs} = "
                f"{self.rollout_rows} transitions",
                "`rollout_steps` x `env.num_envs` must be a multiple of `batch_size`",
            )
        if self.policy_loss == "plain" and self.n_epochs > 1:
            raise SettingsError(
                f"`policy_loss` is `plain` with {self.n_epochs} epochs, but it holds for the first only",
                "`--n-epochs 1`, or `--policy-loss clipped`",
            )

    @property
    def rollout_rows(self) -> int:
        return self.rollout_steps * self.env.num_envs

    @property
    def updates_per_rollout(self) -> int:
        return self.n_epochs * (self.rollout_rows // self.batch_size)
