"""What runs of every family have, evaluations and checkpoints among it; and what those share that learn from replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from hotloop.core.errors import SettingsError
from hotloop.core.values import Count, Ratio, Switch, exact_fraction, require_at_least, require_finite

Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True, kw_only=True)
class EvaluationSettings:
    """Greedy episodes on separate envs; the best weights so far are kept."""

    every: Count = 0
    """Env steps between two evaluations; 0: a twentieth of the run, put off where evaluation would take more than a
    twentieth of the training env steps (native envs, whose evaluation is cheap, are not held to that)."""
    episodes: int = 0
    """Episodes of each; 0: 20, or what `every` has room for, but at least 5."""
    final_episodes: int = 0
    """Fresh episodes on which the best and the last weights are judged at the end; 0: 100, or fewer where evaluation
    would take more than a tenth of the training env steps (native envs are not held to that)."""
    max_episode_steps: Count = 100_000
    """An evaluation episode that has not ended by then is cut off and counts as far as it came, at least 1."""

    def __post_init__(self) -> None:
        require_at_least(1, self, "evaluation.", "max_episode_steps")
        require_at_least(0, self, "evaluation.", "every", "episodes", "final_episodes")


@dataclass(frozen=True, kw_only=True)
class CheckpointSettings:
    every: Count = 0
    """Env steps between two checkpoints; 0: a tenth of the run, and at least 1,000 of each env, since envs that cannot
    save their state are made anew at each; the first one then comes after a tenth of that."""
    keep: int = 2
    """How many of the newest are kept, at least 1."""

    def __post_init__(self) -> None:
        require_at_least(1, self, "checkpoint.", "keep")
        require_at_least(0, self, "checkpoint.", "every")


@dataclass(frozen=True, kw_only=True)
class ObsNormalizeSettings:
    """Running statistics, saved with the run and with its best weights; replay keeps observations as they came."""

    obs: Switch = False
    """Bring every number of the observation to mean 0 and deviation 1, by what was seen until now. `auto`: where it has
    numbers that are not bytes."""
    limit: float = 10.0
    """Normalized observations are held between -limit and limit, above 0."""

    def __post_init__(self) -> None:
        require_finite(self, "normalize.")
        if self.limit <= 0:
            raise SettingsError(f"`normalize.limit` is {self.limit}, expected above 0")


@dataclass(frozen=True, kw_only=True)
class AnyRun:
    """What runs of every family have."""

    algorithm: str = ""
    """Which family."""
    seed: int = 0
    """Everything random in a run follows from it."""
    total_env_steps: Count = 100_000
    """The run ends after so many transitions over all envs."""
    extended_from: Count = 0
    """What `total_env_steps` was before the run was extended; intervals that follow from it keep to this. Only
    `hotloop resume --total-env-steps` sets it."""
    total_episodes: Count = 0
    """The run also ends after so many finished episodes; 0: no such limit."""
    gamma: float = 0.99
    """Discount per env step, 0 to 1."""
    log_every: Count = 1_000
    """Env steps between two rows of events.jsonl, at least 1."""
    on_nan: Literal["stop", "rollback"] = "stop"
    """What happens when a loss, gradient, observation or reward is NaN or infinite: `stop`, or `rollback` to the last
    checkpoint (to the start where there is none) and go on with other random draws, once; a second time it stops."""
    torch_threads: int = 1
    """Threads of PyTorch and BLAS, at least 1; small networks are fastest with one."""
    device: str = "cpu"
    """Where the networks live: `cpu`, `cuda`, `cuda:1`."""
    start_from: str = ""
    """A run whose best weights the networks begin with, of the same sizes; empty: weights drawn by the seed."""
    run_dir: str = ""
    """The run's directory; empty: a new one under `runs/`."""
    trust: bool = False
    """Allow an env from a file or module to be imported when a run is loaded."""

    def check_run(self) -> None:
        require_at_least(1, self, "", "total_env_steps", "log_every", "torch_threads")
        require_at_least(0, self, "", "extended_from", "total_episodes", "seed")
        if not 0 <= self.gamma <= 1:
            raise SettingsError(f"`gamma` is {self.gamma}, expected 0 to 1")

    @property
    def planned_env_steps(self) -> int:
        """What the run was begun for."""
        return self.extended_from or self.total_env_steps

    @property
    def evaluation_every(self: Any) -> int:
        return int(self.evaluation.every or max(1, self.planned_env_steps // 20))

    @property
    def checkpoint_every(self: Any) -> int:
        return int(self.checkpoint.every or max(self.planned_env_steps // 10, 1_000 * self.env.num_envs))


@dataclass(frozen=True, kw_only=True)
class OffPolicyRun(AnyRun):
    """What runs that learn from replay have in common: which of their settings fit together, and what follows."""

    updates_per_env_step: Ratio = 1.0
    """Optimizer updates per transition, kept as an exact fraction (`0.25`, `1/32`), whatever the number of envs."""
    train_every: Count = 1
    """Updates come in bursts every so many env steps, at least 1; their number stays the same."""
    updates_per_batch: int = 1
    """How many updates in a row are made on each sampled batch, at least 1."""
    learning_starts: Count = 1_000
    """Updates owed up to here are skipped, not caught up."""
    batch_size: int = 64
    """Transitions per batch, at least 1."""
    n_step: int = 1
    """Rewards summed before bootstrapping, at least 1."""
    timeouts_are_terminal: bool = False
    """Store time-outs as terminal. Wrong, and only there to reproduce programs that do it."""

    def check_run(self: Any) -> None:
        super().check_run()
        require_at_least(1, self, "", "train_every", "updates_per_batch", "batch_size", "n_step")
        require_at_least(0, self, "", "learning_starts")
        if exact_fraction(self.updates_per_env_step) < 0:
            raise SettingsError(f"`updates_per_env_step` is {self.updates_per_env_step}, expected 0 or more")
        self._check_bursts()
        if self.learning_starts < (self.n_step - 1) * self.env.num_envs:
            raise SettingsError(
                f"`learning_starts` is {self.learning_starts}, but {self.env.num_envs} envs store their first "
                f"{self.n_step}-step transitions after {(self.n_step - 1) * self.env.num_envs} env steps",
                "warm up for longer, or use fewer envs or a smaller `n_step`",
            )

    def _check_bursts(self: Any) -> None:
        """Updates on the same batch come in one call, so each burst must hold a whole number of batches."""
        burst = exact_fraction(self.updates_per_env_step) * self.train_every
        if self.updates_per_batch > 1 and (burst.denominator > 1 or burst % self.updates_per_batch):
            raise SettingsError(
                f"`updates_per_batch` is {self.updates_per_batch}, but there are {burst} updates every "
                f"{self.train_every} env steps",
                "choose `train_every` and `updates_per_env_step` so that their product is a multiple of it",
            )
        if self.learner.updates_per_call < self.updates_per_batch:
            raise SettingsError(
                f"`learner.updates_per_call` must be at least `updates_per_batch` ({self.updates_per_batch})"
            )


def learns_from_replay(settings: Any) -> bool:
    """Of a run's settings."""
    return isinstance(settings, OffPolicyRun)
