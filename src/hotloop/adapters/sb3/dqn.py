"""DQN of Stable-Baselines3 on the native lane: the same draws, samples, schedules and log lines, other arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from stable_baselines3 import DQN
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork

from hotloop.adapters.sb3.in_place import InPlace, overridden
from hotloop.adapters.sb3.memory import ACTED_TOGETHER, SharedMemory, as_float_rows, not_finite
from hotloop.adapters.sb3.replay import QuickStorage, draw_batches
from hotloop.core.schedules import Counters
from hotloop.core.types import Array, ArraySpec, Batch
from hotloop.lanes.native.lane import LaneMemory
from hotloop.lanes.nonfinite import NonFiniteTensorError
from hotloop.learners.dqn import DQNLearner
from hotloop.learners.own_network import GivenModule
from hotloop.nets.given_network import SharedNetwork
from hotloop.nets.reading import Reading, read_q_network
from hotloop.presets.dqn_settings import DQNSettings, LearnerSettings, OptimizerSettings, TargetSettings
from hotloop.presets.network_settings import MLPLayout

KEPT_LEARNERS = 8
"""Constants of Adam and clipping that are ready at once; most runs have one set of them."""


class QEngine:
    """A learner of ours on the memory that the model's networks and Adam have."""

    def __init__(self, model: DQN, reading: Reading) -> None:
        policy, layout = model.policy, reading.layout
        assert isinstance(layout, MLPLayout)
        self._reading, self._layout = reading, layout
        self.obs_shape = policy.observation_space.shape
        self._online, target = (SharedNetwork(net, reading.order) for net in (policy.q_net, policy.q_net_target))
        self.memory = SharedMemory(self._online, policy.optimizer, target)
        self._lent = LaneMemory(self.memory.online, self.memory.target, *self.memory.moments)
        self._learners: dict[tuple[float, ...], DQNLearner] = {}
        self._counters, self._ones = Counters(), np.zeros((0, 0), np.float32)
        self._acting = self._learner(model).lane

    def _learner(self, model: DQN) -> DQNLearner:
        """For the constants that the model has now."""
        group, max_norm = model.policy.optimizer.param_groups[0], float(model.max_grad_norm)
        constants = (max_norm, *group["betas"], group["eps"])
        learner = self._learners.get(constants)
        if learner is None:
            if len(self._learners) == KEPT_LEARNERS:
                self._learners.clear()
            names = ("max_grad_norm", "beta1", "beta2", "eps")
            settings = DQNSettings(
                optimizer=OptimizerSettings(**dict(zip(names, constants, strict=True))),
                target=TargetSettings(unit="env_steps"),  # `_on_step` moves it
                learner=LearnerSettings(lane="native"),
            )
            given = GivenModule(self._online, self._reading, "cpu", 0, memory=self._lent)
            spec, actions = ArraySpec((self._layout.obs_size,)), self._layout.num_actions
            learner = self._learners[constants] = DQNLearner(settings, spec, actions, self._counters, given)
        return learner

    def update(self, model: DQN, gradient_steps: int, batch_size: int) -> Array:
        """The losses [k] of so many updates, each on a batch drawn as `replay_buffer.sample` draws it."""
        learner, memory = self._learner(model), self.memory
        if learner.rates.lr != (lr := float(model.policy.optimizer.param_groups[0]["lr"])):
            learner.rates.lr = lr
        learner.counters.updates = count = memory.count
        try:
            stats = learner.update(self._draw(model, gradient_steps, batch_size))
        except NonFiniteTensorError as error:
            memory.advance(error.failed.update - 1 - count)
            raise not_finite(error.failed.update) from error
        memory.advance(gradient_steps)
        return stats.scalars[0]

    def _draw(self, model: DQN, k: int, rows: int) -> Batch:
        if self._ones.shape != (k, rows):
            self._ones = np.ones((k, rows), np.float32)
        obs, action, reward, discount, next_obs = draw_batches(model, k, rows)
        action = action.reshape(k, rows).astype(np.int64, copy=False)
        return Batch(obs, action, reward, discount, next_obs, self._ones, action)

    def is_shared(self, model: DQN) -> bool:
        return self.memory.is_shared(model.policy.optimizer)

    def greedy(self, rows: Array) -> Array:
        """The best action [N] of observations [N, F]."""
        return self._acting.infer(rows)[0]


class QuickDQN(QuickStorage, DQN):
    """Methods of an accelerated `DQN`."""

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        if not self._hotloop.is_ready(self):
            return self.train(gradient_steps, batch_size)  # which is DQN's own again
        self._update_learning_rate(self.policy.optimizer)
        losses = self._hotloop.engine.update(self, gradient_steps, batch_size)
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/loss", losses.sum(dtype=np.float64) / gradient_steps)

    def _on_step(self) -> None:
        """The target moves as one vector; all else is as `DQN._on_step` does it."""
        is_due = (self._n_calls + 1) % max(self.target_update_interval // self.n_envs, 1) == 0
        memory = self._hotloop.engine.memory
        if is_due and not memory.is_in_place():
            return super()._on_step()
        self._n_calls += 1
        if is_due:
            with torch.no_grad():
                memory.target_tensor.mul_(1 - self.tau).add_(memory.online_tensor, alpha=self.tau)
        self.exploration_rate = self.exploration_schedule(self._current_progress_remaining)
        self.logger.record("rollout/exploration_rate", self.exploration_rate)


class QuickQPolicy(DQNPolicy, InPlace):
    """Methods of an accelerated `DQN`'s policy."""

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> Any:
        engine = self._hotloop
        shape = observation.shape if observation.__class__ is np.ndarray else None
        single = shape == engine.obs_shape
        known = single or (shape is not None and shape[1:] == engine.obs_shape and 0 < shape[0] <= ACTED_TOGETHER)
        if not known or not engine.memory.is_in_place():
            return super().predict(observation, state, episode_start, deterministic)
        self.set_training_mode(False)
        action = engine.greedy(as_float_rows(observation[None] if single else observation, 1))
        return (action.squeeze(axis=0) if single else action), state

    def set_training_mode(self, mode: bool) -> None:
        """Once is enough: the layers that a native network has do not know modes."""
        if self.training is not mode:
            super().set_training_mode(mode)


def read_dqn(model: DQN) -> tuple[Reading | None, str]:
    """The network as the native lane takes it, or why this model is left alone."""
    policy = model.policy
    if name := overridden(QuickDQN, model, DQN):
        return None, f"its class {type(model).__name__} has a `{name}` of its own"
    if not isinstance(policy, DQNPolicy):
        return None, f"its policy is a {type(policy).__name__}"
    if name := overridden(QuickQPolicy, policy, DQNPolicy, "forward", "_predict"):
        return None, f"its policy {type(policy).__name__} has a `{name}` of its own"
    if type(policy.q_net)._predict is not QNetwork._predict:
        return None, f"its Q-network {type(policy.q_net).__name__} has a `_predict` of its own"
    reading = read_q_network(policy.q_net, model.observation_space.shape)
    return reading, reading.reason
