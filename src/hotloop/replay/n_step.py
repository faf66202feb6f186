"""n-step transitions: rewards summed over up to n steps of one env before the row is stored.

A row leaves the window when n steps are in it, or when its episode ends: then every pending row leaves, each with
its own shorter horizon k, and `discount = gamma^k * (1 - terminated)`. A truncated episode bootstraps from `final_obs`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hotloop.core.errors import CheckpointError, SettingsError
from hotloop.core.types import Array, EnvStep
from hotloop.replay.layout import RowLayout
from hotloop.replay.n_step_kernels import push_step


@dataclass(frozen=True, slots=True)
class Returns:
    """What a stored reward sums up. `timeouts_are_terminal` only to reproduce programs that merged the two."""

    n_step: int = 1
    gamma: float = 0.99
    timeouts_are_terminal: bool = False

    def __post_init__(self) -> None:
        if self.n_step < 1:
            raise SettingsError(f"`n_step` is {self.n_step}, expected 1 or more", "1 is the ordinary TD target")
        if not 0.0 <= self.gamma <= 1.0:
            raise SettingsError(f"`gamma` is {self.gamma}, expected between 0 and 1", "0.99 is common")


def window_bytes(layout: RowLayout, num_envs: int, returns: Returns) -> int:
    """Per step and env: obs, action, choice, reward, a plan of three integers and two floats; per env two integers."""
    if returns.n_step == 1:
        return 0
    return num_envs * (returns.n_step * (layout.obs_bytes + layout.action_bytes + 8 + 8 + 3 * 8 + 2 * 8) + 2 * 8)


class NStepWindow:
    """The last n steps of each env, and the plan of the rows that leave."""

    def __init__(self, layout: RowLayout, num_envs: int, returns: Returns) -> None:
        steps, slots = (returns.n_step, num_envs), returns.n_step * num_envs
        self.obs = np.zeros((slots, layout.seen_units), dtype=layout.unit)
        self.plan = np.zeros((slots, 3), dtype=np.int64)  # window slot, env, action
        self.values = np.zeros((slots, 2), dtype=np.float64)  # return, discount
        self._actions = np.zeros(steps, dtype=np.int64)
        self._rewards = np.zeros(steps, dtype=np.float64)
        self._window = np.zeros((num_envs, 2), dtype=np.int64)  # oldest step, steps pending
        self._returns = returns

    @property
    def num_bytes(self) -> int:
        return sum(array.nbytes for array in (self.plan, self.values, *self._saved().values()))

    def push(self, obs: Array, action: Array, step: EnvStep, valid: Array) -> int:
        """Take in one step of every env; the number of rows of `plan` and `values` that leave now."""
        return push_step(
            self._window,
            self.obs,
            self._actions,
            self._rewards,
            self.plan,
            self.values,
            obs,
            action,
            step.reward,
            step.terminated,
            step.truncated,
            valid,
            self._returns.gamma,
            self._returns.timeouts_are_terminal,
        )

    def drop_pending(self) -> None:
        """Forget the steps of unfinished windows."""
        for array in self._saved().values():
            array.fill(0)

    def _saved(self) -> dict[str, Array]:
        return {"obs": self.obs, "actions": self._actions, "rewards": self._rewards, "window": self._window}

    def state(self) -> dict[str, Any]:
        return {name: array.copy() for name, array in self._saved().items()}

    def load_state(self, state: dict[str, Any], num_actions: int | None = None) -> None:
        for name, array in self._saved().items():
            if np.shape(state[name]) != array.shape:
                raise CheckpointError(
                    f"saved n-step {name} have shape {np.shape(state[name])}, expected {array.shape}",
                    "resume with the n_step and num_envs that the run was started with",
                )
        (oldest, pending), n_step = np.transpose(state["window"]), self._returns.n_step
        if ((oldest < 0) | (oldest >= n_step) | (pending < 0) | (pending >= n_step)).any():
            raise CheckpointError(f"a saved window has steps that it has no room for; there is room for {n_step}")
        actions = np.asarray(state["actions"])
        if num_actions is not None and ((actions < 0) | (actions >= num_actions)).any():
            raise CheckpointError(f"a saved window holds an action that is none of {num_actions}")
        for name, array in self._saved().items():
            array[:] = state[name]
