"""What to record of a foreign script and for how long."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from hotloop.core.errors import SettingsError
from hotloop.doctor.experiments import LEAST_PAIRS

COUNTING_PART, THREADS_PART, OPERATORS_PART, OVERTIME_PART = 0.6, 0.65, 0.25, 0.12
EXPERIMENT_PART = 0.25
"""Of `seconds`: all runs and their overtime together stay within three times as long, experiments aside."""
ARM_RUNS = 2 * LEAST_PAIRS


@dataclass(frozen=True, kw_only=True)
class ScriptPlan:
    """What to record of a foreign script and for how long."""

    seconds: float = 12.0
    """Loop time to record, in seconds from the first env step; above 0."""
    env_steps: int | None = None
    """Stop after this many env steps, whichever comes first; at least 1."""
    after: int = 0
    """Skip so many env steps before what is told; 0: until the first few updates are over."""
    watch_seconds: float = 0.0
    """How long to go on after the window, at low cost, for what comes late (evaluation, checkpoints); 0 or more."""
    env_classes: tuple[str, ...] = ()
    """Envs to watch besides what is found: `module:Class`, `Class`, `Class.method` or `function`."""
    counting: bool = True
    """Run once more to count calls."""
    counting_seconds: float | None = None
    """Loop time of the counting run, in seconds; above 0; by default a part of `seconds`."""
    counting_env_steps: int = 2_000
    """Env steps of the counting run once updates have begun; at least 1."""
    threads: bool = True
    """Run once more to compare thread counts, where PyTorch is used."""
    threads_seconds: float | None = None
    """Loop time of the thread comparison, in seconds from the first update; above 0; by default a part of `seconds`."""
    ops: bool = False
    """Run once more under PyTorch's profiler for the most expensive operators."""
    patience: float = 180.0
    """Seconds to wait for the first env step before giving up; above 0."""
    alone_after: float = 10.0
    """Seconds of optimizer rounds without an env step after which these are the loop; 0: never."""
    interval: float = 0.01
    """Seconds between two stack samples; 0.001 to 0.1."""
    module: str = ""
    """The script's dotted name, where it is run as `python -m` does."""
    python: str = sys.executable
    """The interpreter that runs the script."""
    experiments: bool = False
    """Run twice more to try changes on the running program."""
    experiment_seconds: float | None = None
    """Loop time of each experiment, with and without the change; above 0; by default a part of `seconds`."""
    arms: tuple[str, ...] = ()
    """`NAME=ARGUMENTS`: the script with these too, in processes interleaved."""
    in_place: bool = False
    """Whether the runs after the first work in the script's own folder too, instead of in a copy."""

    def __post_init__(self) -> None:
        for name in ("seconds", "counting_seconds", "threads_seconds", "experiment_seconds", "patience"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise SettingsError(f"{name} is {value}, expected above 0", "give a time in seconds")
        if self.watch_seconds < 0:
            raise SettingsError(f"watch_seconds is {self.watch_seconds}, expected 0 or more", "give a time in seconds")
        if self.after < 0:
            raise SettingsError(f"after is {self.after}, expected 0 or more", "give a number of env steps")
        if self.counting_env_steps < 1 or (self.env_steps is not None and self.env_steps < 1):
            raise SettingsError("a bound of less than one env step", "give a number of env steps of at least 1")
        if not 0.001 <= self.interval <= 0.1:
            raise SettingsError(f"interval is {self.interval}, expected 0.001 to 0.1", "0.01 suits most scripts")

    @property
    def overtime(self) -> float:
        """Seconds that a loop may go on beyond its bound, until the end of an update."""
        return OVERTIME_PART * self.seconds

    @property
    def time_to_count(self) -> float:
        return self.counting_seconds or COUNTING_PART * self.seconds

    @property
    def time_to_compare(self) -> float:
        return self.threads_seconds or THREADS_PART * self.seconds

    @property
    def time_for_operators(self) -> float:
        return OPERATORS_PART * self.seconds

    @property
    def time_to_try(self) -> float:
        """Of one experiment."""
        return self.experiment_seconds or EXPERIMENT_PART * self.seconds

    @property
    def runs(self) -> int:
        """How often the script is run at most."""
        return 1 + self.counting + self.threads + self.ops + 2 * self.experiments + ARM_RUNS * len(self.arms)
