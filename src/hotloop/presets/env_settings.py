"""Which environment, how many of it, and how its observations are handed on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from hotloop.core.errors import SettingsError
from hotloop.presets.env_wrappers import parse_wrapper

DictObs = Literal["auto", "flatten", "keep"]
Option = str | int | float | bool
MOST_ENVS = 1_000_000
ANY_ENV = "any"
"""The id in settings that are for whichever env is named beside them."""


@dataclass(frozen=True, kw_only=True)
class EnvSettings:
    id: str = "cartpole"
    """Environment: a native name (`cartpole`), a Gymnasium id (`CartPole-v1`), `module:Id-v0` (imports the module
    first), `path/to/file.py:Class` (a class of your own) or `path/to/file.py:function` (which makes one env). `any`:
    one that is still to be named."""

    num_envs: int = 1
    """Environments stepped together, 1 to a million."""

    max_episode_steps: int = 0
    """Truncate an episode after so many of its own steps; 0 keeps the environment's own limit."""

    dict_obs: DictObs = "auto"
    """Dict and Tuple observations: `flatten` joins all parts into one vector, `keep` hands them on by name (`a.b` and
    `a.0` where they are nested); `auto` joins vectors and tables, and keeps the names where one part is an image."""

    batched: bool = False
    """Use the Gymnasium id's own vectorized implementation instead of stepping `num_envs` single ones."""

    workers: int = 0
    """Processes that share the Gymnasium envs between them, 0 to `num_envs`; 0 steps them in this process."""

    worker_timeout_seconds: float = 60.0
    """A worker that takes longer than this for one step of its envs is shown with its stack and ended; above 0."""

    worker_restarts: int = 10
    """How often workers that died or hung are started again, all together; 0 or more. Then the run stops."""

    options: dict[str, Option] = field(default_factory=dict)
    """Keyword arguments for the environment's constructor, e.g. `is_slippery = false`."""

    wrappers: tuple[str, ...] = ()
    """Gymnasium's wrappers around every single env, the first one innermost, by name with plain values as arguments,
    e.g. `FrameStackObservation(stack_size=4)`."""

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id.strip():
            raise SettingsError(f"`env.id` is {self.id!r}; expected the name of an env", "`hotloop envs` lists them")
        _require_count("env.num_envs", self.num_envs, lowest=1)
        if self.num_envs > MOST_ENVS:
            raise SettingsError(f"`env.num_envs` is {self.num_envs:,}; expected at most {MOST_ENVS:,}", "e.g. 4096")
        _require_count("env.max_episode_steps", self.max_episode_steps, lowest=0)
        if self.dict_obs not in get_args(DictObs):
            raise SettingsError(
                f"`env.dict_obs` is {self.dict_obs!r}; expected `auto`, `flatten` or `keep`", "choose one of the three"
            )
        if not isinstance(self.batched, bool):
            raise SettingsError(f"`env.batched` is {self.batched!r}; expected true or false", "choose one of the two")
        self._require_workers()
        for wrapper in self.wrappers:
            parse_wrapper(wrapper)
        if self.wrappers and self.batched:
            raise SettingsError("`env.wrappers` and `env.batched` are both set", "they wrap single envs: choose one")
        for name, value in self.options.items():
            if not isinstance(value, Option):
                raise SettingsError(
                    f"option `{name}` is a {type(value).__name__}; expected text, a number, true or false",
                    "build anything richer inside a class of your own: `path/to/file.py:Class`",
                )

    def _require_workers(self) -> None:
        _require_count("env.workers", self.workers, lowest=0)
        _require_count("env.worker_restarts", self.worker_restarts, lowest=0)
        seconds = self.worker_timeout_seconds
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < float("inf"):
            raise SettingsError(f"`env.worker_timeout_seconds` is {seconds!r}; expected seconds above 0", "e.g. 60")
        if self.workers > self.num_envs:
            raise SettingsError(
                f"`env.workers` is {self.workers} for {self.num_envs} envs; expected one env or more for each",
                "raise `env.num_envs`, or use fewer workers",
            )
        if self.workers and self.batched:
            raise SettingsError("`env.workers` and `env.batched` are both set", "workers step single envs: choose one")


def _require_count(name: str, value: object, lowest: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < lowest:
        raise SettingsError(f"`{name}` is {value!r}; expected a whole number of {lowest} or more", f"e.g. {lowest}")
