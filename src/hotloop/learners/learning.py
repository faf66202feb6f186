"""What the learners of runs have in common, and which of them belongs to which settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from hotloop.core.errors import SettingsError
from hotloop.core.graphs import GraphSpec
from hotloop.core.schedules import Counters
from hotloop.core.types import Array, Batch, Obs, Policy
from hotloop.learners.normalizer import ObsNormalizer


class ExploringPolicy(Protocol):
    """Acts while a run learns; its random numbers are saved with the run."""

    def act(self, obs: Any, action_mask: Array | None, out: Any = None) -> tuple[Any, Any]:
        """What the env gets, and what learning from it will need: a row of a rollout (`out`, if it is given one to
        fill), None for replay."""
        ...

    def facts(self) -> dict[str, float]:
        """What a log row says of it."""
        ...

    def reseed(self, seed: int) -> None: ...

    def state(self) -> dict[str, Any]: ...

    def load_state(self, state: dict[str, Any]) -> None: ...


class Drawing:
    """What draws random numbers while a run goes on: the state [1] of its generator is saved with the run."""

    def __init__(self, seed: int) -> None:
        self.rng = np.array([seed], dtype=np.uint64)

    def reseed(self, seed: int) -> None:
        """Draw from another stream from here on."""
        self.rng[:] = seed

    def state(self) -> dict[str, Any]:
        return {"rng": self.rng.copy()}

    def load_state(self, state: dict[str, Any]) -> None:
        self.rng[:] = state["rng"]


class Learner(Protocol):
    """What `loop/session.py` needs of a learner. The loops call `update` with what they learn from: k batches of
    replay, or a rollout after `compute_advantages`."""

    counters: Counters
    measures: tuple[str, ...]
    rows_per_update: int
    lane: Any
    choice: Any
    actions: Any
    """Between a policy's units and an env's."""

    @property
    def num_choices(self) -> int | None:
        """Among how many an action chooses; None where actions are anything else."""
        ...

    def prepare(self, example: Batch, most_updates: int) -> None: ...

    def exploring(self, seed: int) -> ExploringPolicy: ...

    def evaluation_policy(self) -> Policy:
        """The policy that is evaluated."""
        ...

    def weights(self) -> Array:
        """All that acting needs, as one vector."""
        ...

    def load_weights(self, values: Array) -> None: ...

    def forget_episodes(self) -> None:
        """Envs are made anew: what was under way in them will not go on."""
        ...

    def reseed(self, *stream: str | int) -> None: ...

    def state(self) -> dict[str, Any]: ...

    def load_state(self, state: dict[str, Any]) -> None: ...


class LearningRates:
    """The learning rate of each of the next k updates: `lr` by its schedule, times `scale`."""

    def __init__(self, optimizer: Any) -> None:
        self._lr, self._scale, self._schedule = optimizer.learning_rate, 1.0, optimizer.lr_schedule
        self._constant: dict[int, Array] = {}

    @property
    def lr(self) -> float:
        return self._lr

    @lr.setter
    def lr(self, lr: float) -> None:
        self._lr, self._constant = lr, {}

    @property
    def scale(self) -> float:
        return self._scale

    @scale.setter
    def scale(self, scale: float) -> None:
        self._scale, self._constant = scale, {}

    def of(self, k: int, counters: Counters) -> Array:
        schedule = self._schedule
        if schedule.kind == "constant":
            rates = self._constant.get(k)
            if rates is None:
                rates = self._constant[k] = np.full(k, self._lr * self._scale * schedule.start)
            return rates
        base = self._lr * self._scale
        if schedule.unit == "updates":
            return np.array([base * schedule.at(counters.updates + j) for j in range(k)])
        return np.full(k, base * schedule.now(counters))


def moves_due(target: Any, before: Counters, now: Counters) -> int:
    """How often a target that counts env steps or episodes is to move: once for every multiple of `every` passed."""
    if target.unit == "updates":
        return 0
    return getattr(now, target.unit) // target.every - getattr(before, target.unit) // target.every


class ObsNormalization:
    """Observations as the network gets them: as they are, or normalized by running statistics.

    The statistics run along while the policy acts, and are taken over before an update: until the next one, acting and
    learning see the same.
    """

    def __init__(self, settings: Any, obs_spec: Any) -> None:
        if settings.normalize.obs and isinstance(obs_spec, GraphSpec):
            raise SettingsError("`normalize.obs` is set, but the observation is a graph", "`--normalize.obs false`")
        limit = settings.normalize.limit
        self.normalizer = ObsNormalizer(obs_spec, limit) if settings.normalize.obs else None

    def see(self, obs: Obs) -> Obs:
        return obs if self.normalizer is None else self.normalizer.apply(obs)

    def note(self, obs: Obs) -> Obs:
        """The same, of an observation that counts in the statistics."""
        if self.normalizer is None:
            return obs
        self.normalizer.absorb(obs)
        return self.normalizer.apply(obs)

    def of_batches(self, batches: Batch) -> Batch:
        """Batches [k, B, ...] by the newest statistics."""
        if self.normalizer is None:
            return batches
        self.normalizer.refresh()
        return replace(batches, obs=self._flat(batches.obs), next_obs=self._flat(batches.next_obs))

    def _flat(self, obs: Any) -> Any:
        if isinstance(obs, dict):
            joined = self.see({name: part.reshape(-1, *part.shape[2:]) for name, part in obs.items()})
            return {name: part.reshape(obs[name].shape) for name, part in joined.items()}  # type: ignore[union-attr]
        seen: Any = self.see(obs.reshape(-1, *obs.shape[2:]))
        return seen.reshape(obs.shape)

    def joined(self, parameters: Array) -> Array:
        """All that acting needs, as one vector: the parameters, then what observations are normalized by."""
        return parameters if self.normalizer is None else np.concatenate([parameters, self.normalizer.weights()])

    def split(self, values: Array) -> Array:
        """The parameters of `joined`; the rest is taken over."""
        if self.normalizer is None:
            return values
        self.normalizer.load_weights(values[-self.normalizer.num_weights :])
        return values[: -self.normalizer.num_weights]

    def state(self, parameters: Array) -> dict[str, Any]:
        """Nothing where observations are left as they are."""
        if self.normalizer is None:
            return {}
        return {"weights": self.joined(parameters), "obs_normaliser": self.normalizer.state()}

    def load_state(self, state: dict[str, Any]) -> None:
        if self.normalizer is not None:
            self.normalizer.load_state(state["obs_normaliser"])
            self.split(state["weights"])  # what was taken over last, older than the newest


def make_learner(settings: Any, obs_spec: Any, action_spec: Any, counters: Counters) -> Any:
    """The learner of a run, by its `algorithm`."""
    if settings.algorithm == "ppo":
        from hotloop.learners.ppo import PPOLearner

        return PPOLearner(settings, obs_spec, action_spec, counters)
    if settings.algorithm == "sac":
        from hotloop.envs.foreign import require_bounded
        from hotloop.learners.sac import SoftActorCriticLearner

        return SoftActorCriticLearner(settings, obs_spec, require_bounded(settings.env.id, action_spec), counters)
    from hotloop.envs.foreign import require_discrete
    from hotloop.learners.dqn import DQNLearner

    return DQNLearner(settings, obs_spec, require_discrete(settings.env.id, action_spec).count, counters)
