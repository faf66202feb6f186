"""SAC, TD3 and DDPG for anybody's loop: `update` with batches of anybody's replay, `act` in anybody's env."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from gymnasium import spaces
from torch import nn

from hotloop.core.errors import ArgumentError, CheckpointError
from hotloop.core.rng import derive_seed
from hotloop.core.types import Array, ArraySpec, BoxActions, Obs, map_obs
from hotloop.inputs.arguments import (
    adam_constants,
    read_obs,
    require_above_zero,
    require_between,
    require_one_of,
    rows_of,
    shape_of,
    spec_of,
)
from hotloop.inputs.specs import read_obs_spec
from hotloop.inputs.values import require_count
from hotloop.lanes.spec import LANES
from hotloop.learners.batch_input import as_fields, read_batch, stacked
from hotloop.learners.measured import SACStats
from hotloop.learners.sac import SoftActorCriticLearner, draw_unit
from hotloop.learners.sac_kernels import best_squashed
from hotloop.presets.dqn_settings import LearnerSettings
from hotloop.presets.env_settings import EnvSettings
from hotloop.presets.sac_network_settings import SACNetworkSettings
from hotloop.presets.sac_settings import (
    SACOptimizerSettings,
    SACSettings,
    SACTargetSettings,
    SmoothingSettings,
    TemperatureSettings,
)


class SACLearner:
    """Trains an actor and its critics by SAC; by TD3 or DDPG where `policy` is `"deterministic"`.

    >>> import hotloop, numpy as np
    >>> from gymnasium import spaces
    >>> learner = hotloop.SACLearner(obs=(3,), action=spaces.Box(-2.0, 2.0, (1,)), hidden=(64, 64), learning_rate=1e-3)
    >>> replay = hotloop.Replay(1_000, obs=(3,), action=(1,))
    >>> for step in range(100):
    ...     action = learner.act([0.01 * step, 0.0, 0.0])
    ...     _ = replay.add([0.01 * step] * 3, action, 1.0, [0.1] * 3, terminated=step == 99, truncated=False)
    >>> stats = learner.update(replay.sample(64))
    >>> stats.td_error.shape, learner.updates, learner.lane
    ((64,), 1, 'native')

    `network` is an ordinary module with `actor`, `critics` (all of them in one, weights [critics, out, in]) and, where
    it is learned, `temperature`; its parameters are the memory that updates change. Actions are the env's: `action` is
    its space, a Box with bounds.

    The target of a row is `reward + discount * (lowest target critic - temperature * log-probability)`: gamma and the
    ends of episodes are in `batch.discount`. `temperature` is a number, or `"auto"`: learned, towards an entropy of
    `target_entropy` (minus the number of an action's numbers where it is None). A deterministic policy has targets
    smoothed by noise of deviation `smoothing`. TD3 is `policy="deterministic", policy_delay=2, target_every=2`; DDPG
    `policy="deterministic", critics=1, smoothing=0.0`. `learning_rate` is constant.
    """

    def __init__(
        self,
        obs: Any,
        action: Any,
        *,
        hidden: Sequence[int] = (256, 256),
        activation: Literal["relu", "tanh", "selu", "leaky_relu"] = "relu",
        policy: Literal["stochastic", "deterministic"] = "stochastic",
        learning_rate: float = 3e-4,
        critics: int = 2,
        policy_delay: int = 1,
        temperature: float | Literal["auto"] = "auto",
        target_entropy: float | None = None,
        smoothing: float = 0.2,
        smoothing_clip: float = 0.5,
        target_every: int = 1,
        target_tau: float = 0.005,
        max_grad_norm: float | None = None,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        lane: Literal["auto", "eager", "compiled", "native"] = "auto",
        planned_updates: int = 0,
        seed: int = 0,
    ) -> None:
        require_one_of("lane", lane, ("auto", *LANES))
        require_one_of("policy", policy, ("stochastic", "deterministic"))
        self._spec, box = read_obs_spec(obs), _bounded(action)
        learned = temperature == "auto"
        adam: dict[str, Any] = adam_constants(betas, eps, max_grad_norm)
        entropy = -1.0 if target_entropy is None else float(target_entropy) / len(box.low)
        start = 1.0 if learned else require_between("temperature", temperature, 0.0, np.inf, "0.2")
        settings = SACSettings(
            seed=seed,
            policy=policy,
            policy_delay=require_count("policy_delay", policy_delay),
            total_env_steps=max(1, require_count("planned_updates", planned_updates, 0)),
            env=EnvSettings(num_envs=1),
            network=SACNetworkSettings(torso="mlp", hidden=tuple(hidden), activation=activation, critics=critics),
            temperature=TemperatureSettings(learned=learned, start=start, entropy_per_number=entropy),
            smoothing=SmoothingSettings(noise=smoothing, clip=smoothing_clip),
            optimizer=SACOptimizerSettings(
                learning_rate=require_above_zero("learning_rate", learning_rate, "3e-4"), **adam
            ),
            target=SACTargetSettings(
                tau=require_above_zero("target_tau", target_tau, "0.005", high=1.0),
                every=require_count("target_every", target_every),
            ),
            learner=LearnerSettings(lane=lane),
        )
        self._learner = SoftActorCriticLearner(settings, self._spec, box)
        self._rng = np.array([derive_seed(seed, "policy")], np.uint64)

    @property
    def network(self) -> nn.Module:
        return self._learner.network

    @property
    def lane(self) -> str:
        """`native`, `compiled` or `eager`."""
        return self._learner.choice.name

    @property
    def lane_reason(self) -> str:
        return self._learner.choice.reason

    @property
    def updates(self) -> int:
        return self._learner.counters.updates

    def __repr__(self) -> str:
        return f"SACLearner(updates={self.updates}, lane={self.lane!r})"

    def update(self, batch: Any) -> SACStats:
        """One update on each batch: of fields [B, ...], or k in a row of fields [k, B, ...].

        `batch` is what `Replay.sample` gives, or a dict or anything else with `obs`, `action` (as the env takes it),
        `reward`, `discount` and `next_obs`; `weight` (of each row's critic loss) may be left out.
        """
        action = ArraySpec(self._learner.actions.spec.shape)
        data, is_single = read_batch(as_fields(batch), action, self._read_obs, shape_of(self._spec))
        with torch.enable_grad():
            return SACStats(self._learner.update(data), self._learner.measures, is_single)

    def act(self, obs: Any, deterministic: bool = False) -> Array:
        """The action of one observation, or of N observations [N, ...]: drawn, of a stochastic policy, unless
        `deterministic`. A deterministic policy adds no noise of its own."""
        rows = read_obs("obs", obs, as_floats=True)
        is_single = shape_of(spec_of(rows, 0)) == shape_of(self._spec)
        if not is_single and shape_of(spec_of(rows, 1)) != shape_of(self._spec):
            raise ArgumentError(
                f"`obs` has shape {shape_of(spec_of(rows, 0))}; expected {shape_of(self._spec)}, or several of them"
            )
        rows = map_obs(stacked, rows) if is_single else rows
        (outputs,) = self._learner.lane.infer(rows)
        unit = np.empty((rows_of(rows), self._learner.actions.count), np.float32)
        if deterministic or self._learner.settings.policy == "deterministic":
            best_squashed(outputs, unit)
        else:
            draw_unit(self._rng, "stochastic", outputs, 0.0, unit)
        action = self._learner.actions.to_env(unit)
        return action[0] if is_single else action

    def _read_obs(self, name: str, value: Any, leading: tuple[int, ...]) -> Obs:
        obs = read_obs(name, value, as_floats=True)
        found = shape_of(spec_of(obs, len(leading)))
        if found != shape_of(self._spec):
            raise ArgumentError(f"`{name}` has observations of shape {found}; expected {shape_of(self._spec)}")
        return obs

    def state_dict(self) -> dict[str, Any]:
        """All that `update` and `act` change, as arrays by name: for the same lane."""
        state = self._learner.state()
        return {"lane": self.lane, "rng": self._rng.copy()} | {
            f"learner.{name}": value for name, value in state.items()
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave. Settings are the constructor's."""
        own = self.state_dict()
        if missing := own.keys() - state.keys():
            raise CheckpointError(f"the state has no `{sorted(missing)[0]}`", "give what `state_dict()` returned")
        for name, value in own.items():
            if isinstance(value, np.ndarray) and np.shape(state[name]) != value.shape:
                raise CheckpointError(f"`{name}` of the state is of another network", "build the same one")
        prefix = "learner."
        self._learner.load_state({name[len(prefix) :]: state[name] for name in own if name.startswith(prefix)})
        self._rng[:] = state["rng"]


def _bounded(action: Any) -> BoxActions:
    if not isinstance(action, spaces.Box) or not np.isfinite([action.low, action.high]).all():
        hint = "`action=env.action_space`; `hotloop.PolicyLearner` takes others"
        raise ArgumentError(f"`action` is {action}; expected the env's Box with bounds", hint)
    low, high = (tuple(map(float, bound.reshape(-1))) for bound in (action.low, action.high))
    return BoxActions(low, high, action.shape)
