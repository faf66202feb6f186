"""Every setting of the DQN family. Double, dueling, n-step, prioritised, C51 and noisy combine freely."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from hotloop.algos.run_settings import CheckpointSettings, EvaluationSettings, ObsNormaliseSettings, OffPolicyRun
from hotloop.core.errors import SettingsError
from hotloop.core.schedules import Schedule, Unit
from hotloop.core.values import Count, Ratio, require_at_least, require_finite, require_settings
from hotloop.envs.settings import EnvSettings
from hotloop.lanes.spec import Precision
from hotloop.nets.settings import NetworkSettings
from hotloop.replay.settings import ReplaySettings


@dataclass(frozen=True, kw_only=True)
class OptimiserSettings:
    """Adam on all parameters at once."""

    lr: float = 1e-3
    """Learning rate, above 0."""
    lr_schedule: Schedule = field(default_factory=Schedule)
    """What the learning rate is multiplied with over time."""
    beta1: float = 0.9
    """Decay of the running mean of gradients, at least 0 and below 1."""
    beta2: float = 0.999
    """Decay of the running mean of squared gradients, at least 0 and below 1."""
    epsilon: float = 1e-8
    """Added to the denominator, above 0."""
    max_gradient_norm: float = 10.0
    """Gradients with a larger norm are scaled down to it; 0: never."""
    accumulate: int = 1
    """Batches whose gradients are averaged for one update, at least 1."""

    def __post_init__(self) -> None:
        require_finite(self, "optimiser.")
        for name in ("lr", "epsilon"):
            if getattr(self, name) <= 0:
                raise SettingsError(f"`optimiser.{name}` is {getattr(self, name)}, expected above 0")
        for name in ("beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise SettingsError(f"`optimiser.{name}` is {getattr(self, name)}, expected at least 0 and below 1")
        require_at_least(0, self, "optimiser.", "max_gradient_norm")
        require_at_least(1, self, "optimiser.", "accumulate")


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
    seed: int = 0
    """Everything random in a run follows from it."""
    total_env_steps: Count = 100_000
    """The run ends after so many transitions over all envs."""
    extended_from: Count = 0
    """What `total_env_steps` was before the run was extended; intervals that follow from it keep to this. Only
    `hotloop resume --total-env-steps` sets it."""
    total_episodes: Count = 0
    """The run also ends after so many finished episodes; 0: no such limit."""
    updates_per_env_step: Ratio = 1.0
    """Optimiser updates per transition, kept as an exact fraction (`0.25`, `1/32`), whatever the number of envs."""
    train_every: Count = 1
    """Updates come in bursts every so many env steps, at least 1; their number stays the same."""
    updates_per_batch: int = 1
    """How many updates in a row are made on each sampled batch, at least 1."""
    warmup_env_steps: Count = 1_000
    """Updates owed up to here are skipped, not caught up."""
    batch_size: int = 64
    """Transitions per batch, at least 1."""
    gamma: float = 0.99
    """Discount per env step, 0 to 1."""
    n_step: int = 1
    """Rewards summed before bootstrapping, at least 1."""
    double: bool = False
    """The online network chooses the next action, the target network values it (van Hasselt et al. 2015)."""
    loss: Literal["huber", "mse"] = "huber"
    """Row loss of scalar Q-values: `huber` or `mse`."""
    timeouts_are_terminal: bool = False
    """Store time-outs as terminal. Wrong, and only there to reproduce programs that do it."""
    log_every: Count = 1_000
    """Env steps between two rows of events.jsonl, at least 1."""
    on_nan: Literal["stop", "rollback"] = "stop"
    """What happens when a loss, gradient, observation or reward is NaN or infinite: `stop`, or `rollback` to the last
    checkpoint (to the start where there is none) and go on with other random draws, once; a second time it stops."""
    threads: int = 1
    """Threads of PyTorch and BLAS, at least 1; small networks are fastest with one."""
    device: str = "cpu"
    """Where the networks live: `cpu`, `cuda`, `cuda:1`."""
    start_from: str = ""
    """A run whose best weights the network begins with, of the same sizes; empty: weights drawn by the seed."""
    run_dir: str = ""
    """The run's directory; empty: a new one under `runs/`."""
    trust: bool = False
    """Allow an env from a file or module to be imported when a run is loaded."""
    env: EnvSettings = field(default_factory=EnvSettings)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    replay: ReplaySettings = field(default_factory=ReplaySettings)
    exploration: Schedule = field(default_factory=lambda: Schedule(kind="linear", start=1.0, end=0.05))
    normalise: ObsNormaliseSettings = field(default_factory=ObsNormaliseSettings)
    optimiser: OptimiserSettings = field(default_factory=OptimiserSettings)
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
