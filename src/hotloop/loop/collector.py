"""Acts in the envs and keeps account of episodes.

Observations and rewards are numbers, whoever made them: looked at before anything is learned from them.
"""

from __future__ import annotations

from typing import Any, Generic

import numpy as np

from hotloop.core.graph_kernels import count_not_finite
from hotloop.core.graphs import Graphs, checked_graphs
from hotloop.core.schedules import Counters
from hotloop.core.timer import PhaseTimer
from hotloop.core.types import Array, EnvObs, EnvStep, ObsT, VecEnv
from hotloop.lanes.nonfinite import FailedUpdate, NonFiniteTensorError, first_nonfinite, tensors_of_batch
from hotloop.learners.learning import ExploringPolicy
from hotloop.loop.collector_kernels import NOT_FINITE, account
from hotloop.loop.metrics import Metrics

HINT = "an env must answer with finite numbers: `hotloop envs check` looks at it alone"
ANSWERED = ("obs", "final_obs", "reward", "reward_parts")
"""What of a step is looked at, in this order."""


def require_finite(step: EnvStep, env_steps: int) -> None:
    """Raise where a step holds NaN or infinity."""
    bad = _count(step.obs) + _count(step.reward)
    if step.final_obs is not step.obs:
        bad += _count(step.final_obs)
    if step.reward_parts is not None:
        bad += _count(step.reward_parts)
    if bad:
        raise _error(step, env_steps)


def _count(values: EnvObs) -> int:
    return sum(
        count_not_finite(part.reshape(-1)) for part in _parts(values).values() if part.dtype.kind == "f" and part.size
    )


def _parts(values: EnvObs) -> dict[str, Array]:
    if isinstance(values, Graphs):
        return values.arrays()
    return values if isinstance(values, dict) else {"": values}


def _error(step: EnvStep, env_steps: int) -> NonFiniteTensorError:
    answered = {name: getattr(step, name) for name in ANSWERED if getattr(step, name) is not None}
    batch: dict[str, Any] = {
        name: dict(_parts(value)) if isinstance(value, Graphs | dict) else value for name, value in answered.items()
    }
    first = first_nonfinite(tensors_of_batch(batch, list(batch)))
    field = answered[first.partition(".")[0]]
    which = "" if isinstance(field, Graphs) else f" of env {_first_env(field)}"
    message = f"the env's `{first}`{which} is NaN or infinite after {env_steps:,} env steps"
    return NonFiniteTensorError(message, HINT, first, FailedUpdate(0, 0.0, {}, batch))


def _first_env(values: EnvObs) -> int:
    bad = [part for part in _parts(values).values() if part.dtype.kind == "f" and _count(part)]
    return min(int(np.argmin(np.isfinite(part.reshape(len(part), -1)).all(axis=1))) for part in bad)


FLOAT32 = np.dtype(np.float32)
LOOKED_AT = np.zeros((0, 0), np.float32)
"""Stands for observations that need no second look."""


class Collector(Generic[ObsT]):
    """`advance` makes one env step in every env: [act], [env], then the episode account under [log]."""

    def __init__(self, envs: VecEnv[ObsT], counters: Counters, metrics: Metrics, timer: PhaseTimer) -> None:
        self._counters = counters
        self._metrics = metrics
        self._timer = timer
        self._act, self._env, self._log = timer.phase("act"), timer.phase("env"), timer.phase("log")
        self.restart(envs)

    def restart(self, envs: VecEnv[ObsT]) -> None:
        """Begin new episodes in `envs`; those under way are forgotten."""
        self.envs = envs
        self._obs, self._action_mask = envs.reset()
        self._returns = np.zeros(envs.num_envs)
        self._lengths = np.zeros(envs.num_envs, dtype=np.int64)
        self._ended = self._returns.copy(), self._lengths.copy()

    @property
    def obs(self) -> ObsT:
        """What the policy will see next."""
        return self._obs

    def advance(self, policy: ExploringPolicy, out: Any = None) -> tuple[ObsT, Any, Any, EnvStep[ObsT]]:
        """What the policy saw, what it did, what it says that learning from it will need (written into `out`, where
        there is such a place), and what came of it."""
        obs, timer, outer = self._obs, self._timer, self._timer.current
        try:
            timer.enter(self._act)
            action, acted = policy.act(obs, self._action_mask, out)
            timer.enter(self._env)
            step = self.envs.step(action)
            timer.enter(self._log)
            self._obs, self._action_mask = step.obs, step.action_mask
            self._account(step)
        finally:
            timer.go_back(outer)
        return obs, action, acted, step

    def _account(self, step: EnvStep) -> None:
        """Of numbers only: what is not finite is refused before it counts."""
        if step.valid is not None:
            require_finite(step, self._counters.env_steps)
            self._account_valid(step, step.valid)
            return
        obs, final_obs = step.obs, step.final_obs
        if type(obs) is not np.ndarray or obs.ndim != 2 or obs.dtype is not FLOAT32 or step.reward_parts is not None:
            require_finite(step, self._counters.env_steps)
            obs = final_obs = LOOKED_AT
        ended = (step.terminated, step.truncated)
        num_ended = account(obs, final_obs, step.reward, *ended, self._returns, self._lengths, *self._ended)
        if num_ended == NOT_FINITE:
            require_finite(step, self._counters.env_steps)
        self._counters.env_steps += len(step.reward)
        if num_ended:
            self._note_episodes(*(each[:num_ended] for each in self._ended))
            self._metrics.note_terms(step.episode_stats, step.terminated | step.truncated)

    def _account_valid(self, step: EnvStep, valid: Array) -> None:
        """Rows in which a vector env only reset itself are no env steps."""
        self._counters.env_steps += int(valid.sum())
        self._returns[valid] += step.reward[valid]
        self._lengths[valid] += 1
        ended = (step.terminated | step.truncated) & valid
        if ended.any():
            self._note_episodes(self._returns[ended], self._lengths[ended])
            self._returns[ended] = 0.0
            self._lengths[ended] = 0

    def _note_episodes(self, returns: Array, lengths: Array) -> None:
        self._counters.episodes += len(returns)
        self._metrics.note_episodes(returns, lengths)

    def state(self) -> dict[str, Any]:
        """Everything but the envs themselves; the observation is theirs to give again where they save no state."""
        obs = _as_parts(self._obs)
        mask = {} if self._action_mask is None else {"action_mask": self._action_mask}
        return {"returns": self._returns.copy(), "lengths": self._lengths.copy(), "last_obs": dict(obs), **mask}

    def load_state(self, state: dict[str, Any]) -> None:
        self._returns[:] = state["returns"]
        self._lengths[:] = state["lengths"]
        self._obs = _from_parts(state["last_obs"], like=self._obs)
        self._action_mask = state.get("action_mask")


def _as_parts(obs: EnvObs) -> dict[str, Array]:
    if isinstance(obs, Graphs):
        return obs.arrays()
    return dict(obs) if isinstance(obs, dict) else {"obs": obs}


def _from_parts(parts: dict[str, Array], like: ObsT) -> ObsT:
    obs: Any
    if isinstance(like, Graphs):
        obs = checked_graphs(Graphs(**parts), like)
    else:
        obs = dict(parts) if isinstance(like, dict) else parts["obs"]
    return obs
