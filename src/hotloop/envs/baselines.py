"""Policies that do not learn, to compare with: at random for every env, and the rules that an env brings along."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.errors import EnvError
from hotloop.core.suggest import nearest
from hotloop.core.types import Array, Obs, Policy, VecEnv
from hotloop.envs.actions import require_discrete


class AtRandom:
    """Any allowed action, each as likely."""

    def __init__(self, num_actions: int, seed: int) -> None:
        self._num_actions = num_actions
        self._generator = np.random.default_rng(seed)

    def act(self, obs: Obs, action_mask: Array | None) -> Array:
        num_envs = len(next(iter(obs.values())) if isinstance(obs, dict) else obs)
        draws = self._generator.random((num_envs, self._num_actions))
        return (draws if action_mask is None else draws * action_mask).argmax(axis=1)


def make_baseline(name: str, envs: VecEnv, env_id: str, seed: int) -> Policy:
    """The policy called `name` for these very envs: `random`, or one that they offer as `baselines`."""
    own: dict[str, Any] = getattr(envs, "baselines", {})
    if name == "random":
        return AtRandom(require_discrete(env_id, envs.action_spec).count, seed)
    if name in own:
        return own[name](envs)
    known = ["random", *own]
    near = nearest(name, known)
    hint = f"did you mean `{near}`?" if near else f"it has {', '.join(f'`{one}`' for one in known)}"
    raise EnvError(f"`{env_id}` has no policy `{name}`", hint)
