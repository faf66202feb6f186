"""Every setting of the soft actor-critic family. SAC is the stochastic policy with a learned temperature; TD3 the
deterministic one, delayed, with smoothed targets; DDPG the same with one critic and neither."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from hotloop.core.errors import SettingsError
from hotloop.core.schedules import Schedule
from hotloop.core.values import Count, require_at_least, require_finite, require_settings
from hotloop.presets.dqn_settings import LearnerSettings, OptimizerSettings, TargetSettings
from hotloop.presets.env_settings import EnvSettings
from hotloop.presets.replay_settings import ReplaySettings
from hotloop.presets.run_settings import (
    CheckpointSettings,
    EvaluationSettings,
    ObsNormalizeSettings,
    OffPolicyRun,
)
from hotloop.presets.sac_network_settings import SACNetworkSettings


@dataclass(frozen=True, kw_only=True)
class SACOptimizerSettings(OptimizerSettings):
    """Adam on the parameters of critics, of the actor and of the temperature, each by itself."""

    learning_rate: float = 3e-4
    """Learning rate of all three, above 0."""
    max_grad_norm: float = 0.0
    """Gradients of each of the three with a larger norm are scaled down to it; 0: never."""


@dataclass(frozen=True, kw_only=True)
class SACTargetSettings(TargetSettings):
    """How the critics' copies (and that of a deterministic policy) follow: copy <- tau x online + (1 - tau) x copy."""

    tau: float = 0.005
    """Share of the online networks taken over, above 0 and at most 1 (1: a hard copy)."""
    every: Count = 1
    """Units between two moves, at least 1; TD3 has 2."""


@dataclass(frozen=True, kw_only=True)
class TemperatureSettings:
    """What the entropy of a stochastic policy is worth beside reward."""

    learned: bool = True
    """Move it so that the policy's entropy comes to a target (Haarnoja et al. 2018); otherwise it stays as it is."""
    start: float = 1.0
    """What it begins with, or stays at; above 0 where it is learned, 0 or more where it is not."""
    entropy_per_number: float = -1.0
    """The target of the entropy, for each number of an action."""

    def __post_init__(self) -> None:
        require_finite(self, "temperature.")
        if self.start < 0.0 or (self.learned and self.start == 0.0):
            raise SettingsError(f"`temperature.start` is {self.start}, expected above 0")


@dataclass(frozen=True, kw_only=True)
class SmoothingSettings:
    """Noise on the next action in a target, so that a peak of the critics misleads less (Fujimoto et al. 2018)."""

    noise: float = 0.2
    """Deviation, in units of half the action's range, 0 or more; 0: none. Deterministic policies only."""
    clip: float = 0.5
    """No noise is larger than this, above 0."""

    def __post_init__(self) -> None:
        require_finite(self, "smoothing.")
        require_at_least(0, self, "smoothing.", "noise")
        if self.clip <= 0.0:
            raise SettingsError(f"`smoothing.clip` is {self.clip}, expected above 0")


@dataclass(frozen=True, kw_only=True)
class SACSettings(OffPolicyRun):
    """All settings of a SAC, TD3 or DDPG run; `hotloop settings sac` explains each, `hotloop.preset` makes them."""

    algorithm: Literal["sac"] = "sac"
    """Which family: `sac`."""
    policy: Literal["stochastic", "deterministic"] = "stochastic"
    """`stochastic`: actions are drawn from a squashed normal (SAC). `deterministic`: one action for each state, with
    noise added while it learns (TD3, DDPG)."""
    policy_delay: int = 1
    """Policy and temperature are updated in every so many updates of the critics, at least 1; TD3 has 2."""
    learning_starts: Count = 1_000
    """Up to here actions are drawn evenly over their range, and updates owed are skipped, not caught up."""
    batch_size: int = 256
    """Transitions per batch, at least 1."""
    n_step: int = 1
    """Rewards summed before bootstrapping, at least 1. Above 1 entropy between the first and the last of them is not
    counted."""
    env: EnvSettings = field(default_factory=EnvSettings)
    network: SACNetworkSettings = field(default_factory=SACNetworkSettings)
    replay: ReplaySettings = field(default_factory=lambda: ReplaySettings(buffer_size=0))
    temperature: TemperatureSettings = field(default_factory=TemperatureSettings)
    smoothing: SmoothingSettings = field(default_factory=SmoothingSettings)
    exploration: Schedule = field(default_factory=lambda: Schedule(start=0.1))
    normalize: ObsNormalizeSettings = field(default_factory=ObsNormalizeSettings)
    optimizer: SACOptimizerSettings = field(default_factory=SACOptimizerSettings)
    target: SACTargetSettings = field(default_factory=SACTargetSettings)
    learner: LearnerSettings = field(default_factory=LearnerSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    checkpoint: CheckpointSettings = field(default_factory=CheckpointSettings)

    def __post_init__(self) -> None:
        require_settings(self)
        require_at_least(1, self, "", "policy_delay")
        self.check_run()
        for name in ("start", "end"):
            if (value := getattr(self.exploration, name)) < 0:
                raise SettingsError(f"`exploration.{name}` is {value}, expected a deviation, 0 or more")
        if self.target.unit == "updates" and self.target.every % self.policy_delay and self.policy == "deterministic":
            raise SettingsError(
                f"`target.every` is {self.target.every}, but the policy is updated every {self.policy_delay} updates",
                f"targets follow a policy that has moved: `--target.every {self.policy_delay}`",
            )
