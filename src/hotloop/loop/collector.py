"""Acts in the envs and keeps account of episodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.graphs import Graphs, checked_graphs
from hotloop.core.schedules import Counters
from hotloop.core.types import Array, EnvObs, EnvStep, Policy, VecEnv
from hotloop.doctor.timer import PhaseTimer
from hotloop.loop.collector_kernels import NOT_FINITE, account
from hotloop.loop.finite import require_finite
from hotloop.loop.metrics import Metrics

FLOAT32 = np.dtype(np.float32)
LOOKED_AT = np.zeros((0, 0), np.float32)
"""Stands for observations that need no second look."""


class Collector:
    """`advance` makes one env step in every env: [act], [env], then the episode account under [log]."""

    def __init__(self, envs: VecEnv, counters: Counters, metrics: Metrics, timer: PhaseTimer) -> None:
        self._counters = counters
        self._metrics = metrics
        self._timer = timer
        self._act, self._env, self._log = timer.phase("act"), timer.phase("env"), timer.phase("log")
        self.restart(envs)

    def restart(self, envs: VecEnv) -> None:
        """Begin new episodes in `envs`; those under way are forgotten."""
        self.envs = envs
        self._obs, self._action_mask = envs.reset()
        self._returns = np.zeros(envs.num_envs)
        self._lengths = np.zeros(envs.num_envs, dtype=np.int64)
        self._ended = self._returns.copy(), self._lengths.copy()

    @property
    def obs(self) -> EnvObs:
        """What the policy will see next."""
        return self._obs

    def advance(self, policy: Policy) -> tuple[EnvObs, Any, EnvStep]:
        """What the policy saw, what it did, and what came of it."""
        obs, timer, outer = self._obs, self._timer, self._timer.current
        try:
            timer.enter(self._act)
            action = policy.act(obs, self._action_mask)
            timer.enter(self._env)
            step = self.envs.step(action)
            timer.enter(self._log)
            self._obs, self._action_mask = step.obs, step.action_mask
            self._account(step)
        finally:
            timer.go_back(outer)
        return obs, action, step

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


def _from_parts(parts: dict[str, Array], like: EnvObs) -> EnvObs:
    if isinstance(like, Graphs):
        return checked_graphs(Graphs(**parts), like)
    return dict(parts) if isinstance(like, dict) else parts["obs"]
