"""Policies that do not learn, to compare with: at random for every env, and the rules that an env brings along."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.errors import EnvError
from hotloop.core.suggest import nearest
from hotloop.core.types import (
    Action,
    ActionSpec,
    Array,
    BoxActions,
    DiscreteActions,
    EnvObs,
    GraphActionSpec,
    HybridActions,
    NodeAction,
    NodeActions,
    Policy,
    VecEnv,
)

RANGE = 20.0
"""Of numbers that lack a bound: from the one they have, or round 0."""


class AtRandom:
    """Any allowed action, each as likely; numbers evenly between their bounds."""

    def __init__(self, actions: ActionSpec | GraphActionSpec, seed: int) -> None:
        self._actions = actions
        self._generator = np.random.default_rng(seed)

    def act(self, obs: EnvObs, action_mask: Array | None) -> Action:
        num_envs = len(next(iter(obs.values())) if isinstance(obs, dict) else obs)
        actions = self._actions
        if isinstance(actions, NodeActions):
            choices = self._generator.integers(actions.count, size=len(obs.nodes))
            return NodeAction(self._numbers(actions.numbers, num_envs), choices)
        if isinstance(actions, BoxActions):
            return self._numbers(actions, num_envs)
        if isinstance(actions, HybridActions):
            choices = self._choices(actions.choices.counts, num_envs, action_mask)
            numbers = self._numbers(actions.numbers, num_envs).reshape(num_envs, -1)
            return np.concatenate([choices.astype(np.float32), numbers], axis=1)
        if isinstance(actions, DiscreteActions):
            return self._choices((actions.count,), num_envs, action_mask)[:, 0]
        return self._choices(actions.counts, num_envs, action_mask)

    def _choices(self, counts: tuple[int, ...], num_envs: int, mask: Array | None) -> Array:
        """[N, choices] int64: of each, the allowed one that drew the most."""
        draws = self._generator.random((num_envs, sum(counts)))
        parts = np.split(draws if mask is None else draws * mask, np.cumsum(counts)[:-1], axis=1)
        return np.stack([part.argmax(axis=1) for part in parts], axis=1)

    def _numbers(self, actions: BoxActions, num_envs: int) -> Array:
        """[N, *shape] float32; a mask need not be asked, since numbers that do not count are ignored."""
        low, high = np.array(actions.low), np.array(actions.high)
        low = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, RANGE / 2) - RANGE)
        high = np.where(np.isfinite(high), high, low + RANGE)
        numbers = low + self._generator.random((num_envs, len(low))) * (high - low)
        return numbers.astype(np.float32).reshape(num_envs, *actions.shape)


def make_baseline(name: str, envs: VecEnv, env_id: str, seed: int) -> Policy:
    """The policy called `name` for these very envs: `random`, or one that they offer as `baselines`."""
    own: dict[str, Any] = getattr(envs, "baselines", {})
    if name == "random":
        return AtRandom(envs.action_spec, seed)
    if name in own:
        return own[name](envs)
    known = ["random", *own]
    near = nearest(name, known)
    hint = f"did you mean `{near}`?" if near else f"it has {', '.join(f'`{one}`' for one in known)}"
    raise EnvError(f"`{env_id}` has no policy `{name}`", hint)
