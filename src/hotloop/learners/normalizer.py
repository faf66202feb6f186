"""Running statistics of observations and rewards, frozen while a rollout is collected and learned from."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.errors import SettingsError
from hotloop.core.types import Array, ArraySpec, Obs, ObsSpec
from hotloop.maths.gae_kernels import EPSILON, absorb_rows, normalize_rows, scale_rewards


class PartNormalizer:
    """Of one array of floats: the statistics run along, what is subtracted and divided by changes with `refresh`."""

    def __init__(self, size: int, limit: float) -> None:
        self._limit = limit
        self._count, self._mean, self._squares = np.zeros(1), np.zeros(size), np.zeros(size)
        self.shift, self.scale = np.zeros(size, np.float32), np.ones(size, np.float32)

    def apply(self, obs: Array) -> Array:
        rows = obs.reshape(len(obs), -1)
        out = np.empty(rows.shape, np.float32)
        normalize_rows(rows, self.shift, self.scale, self._limit, out)
        return out.reshape(obs.shape)

    def absorb(self, obs: Array) -> None:
        absorb_rows(obs.reshape(len(obs), -1), self._count, self._mean, self._squares)

    def refresh(self) -> None:
        if self._count[0] > 0:
            self.shift[:] = self._mean
            self.scale[:] = 1.0 / np.sqrt(self._squares / self._count[0] + EPSILON)

    def state(self) -> dict[str, Any]:
        return {"count": self._count.copy(), "mean": self._mean.copy(), "squares": self._squares.copy()}

    def load_state(self, state: dict[str, Any]) -> None:
        for name, mine in (("count", self._count), ("mean", self._mean), ("squares", self._squares)):
            mine[:] = state[name]
        self.shift[:], self.scale[:] = 0.0, 1.0  # where nothing was seen yet
        self.refresh()


class ObsNormalizer:
    """One for each part of the observation that is made of floats; bytes (images) are left to the network."""

    def __init__(self, obs_spec: ObsSpec, limit: float) -> None:
        self._is_dict = isinstance(obs_spec, dict)
        specs = obs_spec if isinstance(obs_spec, dict) else {"obs": obs_spec}
        self._parts = {name: PartNormalizer(spec.size, limit) for name, spec in specs.items() if is_float(spec)}
        if not self._parts:
            raise SettingsError(
                f"`normalize.obs` is set, but the observation has no floats to normalize: {obs_spec}",
                "the network scales bytes to 0..1 itself: `--normalize.obs false`",
            )

    def apply(self, obs: Obs) -> Obs:
        if not isinstance(obs, dict):
            return self._parts["obs"].apply(obs)
        return {name: self._parts[name].apply(part) if name in self._parts else part for name, part in obs.items()}

    def absorb(self, obs: Obs) -> None:
        for name, part in self._parts.items():
            part.absorb(obs[name] if isinstance(obs, dict) else obs)

    def refresh(self) -> None:
        for part in self._parts.values():
            part.refresh()

    def weights(self) -> Array:
        """What acting needs of it, as one vector."""
        return np.concatenate([vector for part in self._sorted() for vector in (part.shift, part.scale)])

    def load_weights(self, values: Array) -> None:
        start = 0
        for part in self._sorted():
            for vector in (part.shift, part.scale):
                vector[:] = values[start : start + vector.size]
                start += vector.size

    @property
    def num_weights(self) -> int:
        return sum(2 * part.shift.size for part in self._parts.values())

    def _sorted(self) -> list[PartNormalizer]:
        return [self._parts[name] for name in sorted(self._parts)]

    def state(self) -> dict[str, Any]:
        return {name: part.state() for name, part in self._parts.items()}

    def load_state(self, state: dict[str, Any]) -> None:
        for name, part in self._parts.items():
            part.load_state(state[name])


def is_float(spec: ArraySpec) -> bool:
    return spec.dtype.kind == "f"


class RewardScaler:
    """Divides a rollout's rewards by the deviation of the discounted returns seen so far, this rollout's included."""

    def __init__(self, num_envs: int, gamma: float, limit: float) -> None:
        self._gamma, self._limit = gamma, limit
        self._returns, self._moments = np.zeros(num_envs), np.zeros(3)

    def apply(self, reward: Array, ended: Array, weight: Array) -> None:
        """In place on rewards [T, N], where `weight` is above 0."""
        scale_rewards(reward, ended, weight, self._gamma, self._returns, self._moments, self._limit)

    def forget_episodes(self) -> None:
        """Where envs are made anew, their returns begin anew."""
        self._returns[:] = 0.0

    def state(self) -> dict[str, Any]:
        return {"returns": self._returns.copy(), "moments": self._moments.copy()}

    def load_state(self, state: dict[str, Any]) -> None:
        self._returns[:] = state["returns"]
        self._moments[:] = state["moments"]
