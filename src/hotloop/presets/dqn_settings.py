"""Every setting of the DQN family. Double, dueling, n-step, prioritized, C51 and noisy combine freely."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from hotloop.core.errors import SettingsError
from hotloop.core.schedules import Schedule, Unit
from hotloop.core.values import Count, require_at_least, require_finite, require_settings
from hotloop.presets.env_settings import EnvSettings
from hotloop.presets.network_settings import NetworkSettings
from hotloop.presets.replay_settings import ReplaySettings
from hotloop.presets.run_settings import (
    CheckpointSettings,
    EvaluationSettings,
    ObsNormalizeSettings,
    OffPolicyRun,
    Precision,
)


@dataclass(frozen=True, kw_only=True)
class OptimizerSettings:
    """Adam on all parameters at once."""

    learning_rate: float = 1e-3
    """Learning rate, above 0."""
    lr_schedule: Schedule = field(default_factory=Schedule)
    """What the learning rate is multiplied with over time."""
    beta1: float = 0.9
    """Decay of the running mean of gradients, at least 0 and below 1."""
    beta2: float = 0.999
    """Decay of the running mean of squared gradients, at least 0 and below 1."""
    eps: float = 1e-8
    """Added to the denominator, above 0."""
    max_grad_norm: float = 10.0
    """Gradients with a larger norm are scaled down to it; 0: never."""
    accumulate: int = 1
    """Batches whose gradients are averaged for one update, at least 1."""

    def __post_init__(self) -> None:
        require_finite(self, "optimizer.")
        for name in ("learning_rate", "eps"):
            if getattr(self, name) <= 0:
                raise SettingsError(f"`optimizer.{name}` is {getattr(self, name)}, expected above 0")
        for name in ("beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise SettingsError(f"`optimizer.{name}` is {getattr(self, name)}, expected at least 0 and below 1")
        require_at_least(0, self, "optimizer.", "max_grad_norm")
        require_at_least(1, self, "optimizer.", "accumulate")


@dataclass(frozen=True, kw_only=True)
class TargetSettings:
    """How the target network follows: target <- tau x online + (1 - tau) x target."""

    tau: float = 1.0
    """Share of the online network taken over, above 0 and at most 1 (1: a hard copy)."""
    every: Count = 500
    """Units between two moves, at least 1."""
    unit: Unit = "updates"
    """What is counted: `updates`, `env_steps` or `episodes`."""

    def __post_init__(self) -> None:
        require_at_least(1, self, "target.", "every")
        if not 0 < self.tau <= 1:
            raise SettingsError(f"`target.tau` is {self.tau}, expected above 0 and at most 1")


@dataclass(frozen=True, kw_only=True)
class LearnerSettings:
    """How updates are executed; never what they compute."""

    lane: Literal["auto", "eager", "compiled", "native"] = "auto"
    """`eager`: plain PyTorch. `compiled`: torch.compile. `native`: one machine-code call for multilayer networks, and
    for branches with attention, on a CPU. `auto` chooses by rule and says why."""
    precision: Precision = "float32"
    """`float32`, or `bfloat16` for the networks' products (eager and compiled lanes): not exact, and said so."""
    updates_per_call: int = 64
    """At most so many sequential updates are handed to the lane at once, at least 1."""

    def __post_init__(self) -> None:
        if self.updates_per_call < 1:
            raise SettingsError(f"`learner.updates_per_call` is {self.updates_per_call}, expected at least 1")


@dataclass(frozen=True, kw_only=True)
class DQNSettings(OffPolicyRun):
    """All settings of a DQN run; `hotloop settings dqn` explains each, `hotloop.preset` makes them."""

    algorithm: Literal["dqn"] = "dqn"
    """Which family: `dqn`."""
    double: bool = False
    """The online network chooses the next action, the target network values it (van Hasselt et al. 2015)."""
    loss: Literal["huber", "mse"] = "huber"
    """Row loss of scalar Q-values: `huber` or `mse`."""
    env: EnvSettings = field(default_factory=EnvSettings)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    replay: ReplaySettings = field(default_factory=ReplaySettings)
    exploration: Schedule = field(default_factory=lambda: Schedule(kind="linear", start=1.0, end=0.05))
    normalize: ObsNormalizeSettings = field(default_factory=ObsNormalizeSettings)
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    target: TargetSettings = field(default_factory=TargetSettings)
    learner: LearnerSettings = field(default_factory=LearnerSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    checkpoint: CheckpointSettings = field(default_factory=CheckpointSettings)

    def __post_init__(self) -> None:
        require_settings(self)
        self.check_run()
        for name in ("start", "end"):
            if not 0 <= (value := getattr(self.exploration, name)) <= 1:
                raise SettingsError(f"`exploration.{name}` is {value}, expected a probability, 0 to 1")
        if self.network.atoms > 1 and self.loss == "mse":
            raise SettingsError(
                "`loss` is `mse`, but C51 (`network.atoms` above 1) has a loss of its own", "leave `loss` at `huber`"
            )
