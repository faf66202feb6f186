"""DQN of Stable-Baselines3 on the native lane: the same draws, samples, schedules and log lines, other arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from stable_baselines3 import DQN
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork

from hotloop.adapters.sb3.in_place import InPlace, overridden
from hotloop.adapters.sb3.memory import ACTED_TOGETHER, SharedMemory, as_float_rows
from hotloop.adapters.sb3.replay import QuickStorage, draw_batches
from hotloop.core.errors import NonFiniteError
from hotloop.core.types import Array
from hotloop.lanes.native.lane import NativeActor, NativeBatch, NativeUpdater, prepare
from hotloop.lanes.native.layout import NativeLayout, UpdateConstants
from hotloop.nets.given_network import SharedNetwork
from hotloop.nets.reading import Reading, read_q_network
from hotloop.presets.network_settings import MLPLayout

KEPT_UPDATERS = 8
"""Batch sizes and constants that are ready at once; most runs have one."""


class QEngine:
    """The memory that a model's networks and Adam share with machine code, and the kernels that work on it."""

    def __init__(self, model: DQN, reading: Reading) -> None:
        policy, layout = model.policy, reading.layout
        assert isinstance(layout, MLPLayout)
        self._order = reading.order
        self._layout = NativeLayout(
            obs_size=layout.obs_size, hidden=layout.hidden, num_actions=layout.num_actions,
            activation=layout.activation, dueling=layout.dueling,
        )  # fmt: skip
        prepare(self._layout)
        self.obs_shape = policy.observation_space.shape
        self._updaters: dict[tuple[float, ...], NativeUpdater] = {}
        self._actors: dict[int, NativeActor] = {}
        self._ones = np.zeros((0, 0), np.float32)
        self.memory = self._share(policy)

    def _share(self, policy: DQNPolicy) -> SharedMemory:
        online, target = (SharedNetwork(net, self._order) for net in (policy.q_net, policy.q_net_target))
        return SharedMemory(online, policy.optimizer, target)

    def update(self, model: DQN, gradient_steps: int, batch_size: int) -> Array:
        """The losses [k] of so many updates, each on a batch drawn as `replay_buffer.sample` draws it."""
        memory, group = self.memory, model.policy.optimizer.param_groups[0]
        batch = self._draw(model, gradient_steps, batch_size)
        lr = np.full(gradient_steps, float(group["lr"]))
        updater = self._updater(batch_size, float(model.max_grad_norm), group)
        made, _, stats = updater.update(memory.online, memory.target, memory.moments, batch, lr, memory.count)
        memory.advance(made)
        if made < gradient_steps:
            raise NonFiniteError(
                f"update {memory.count + 1} has a loss or gradient that is not finite; it was not made",
                "look for NaN in observations and rewards, or take a smaller learning rate",
            )
        return stats[0]

    def _updater(self, rows: int, max_norm: float, group: dict[str, Any]) -> NativeUpdater:
        key = (rows, max_norm, *group["betas"], group["eps"])
        updater = self._updaters.get(key)
        if updater is None:
            if len(self._updaters) == KEPT_UPDATERS:
                self._updaters.clear()
            (beta1, beta2), epsilon = group["betas"], group["eps"]
            constants = UpdateConstants(max_norm=max_norm, beta1=beta1, beta2=beta2, epsilon=epsilon)
            updater = self._updaters[key] = NativeUpdater(self._layout, constants, rows)
        return updater

    def _draw(self, model: DQN, k: int, rows: int) -> NativeBatch:
        if self._ones.shape != (k, rows):
            self._ones = np.ones((k, rows), np.float32)
        drawn = draw_batches(model, k, rows)
        action = drawn.action.reshape(k, rows).astype(np.int64, copy=False)
        return NativeBatch(*drawn._replace(action=action), self._ones, None)

    def is_shared(self, model: DQN) -> bool:
        return self.memory.is_shared(model.policy.optimizer)

    def greedy(self, rows: Array) -> Array:
        """The best action [N] of observations [N, F]."""
        count = len(rows)
        actor = self._actors.get(count)
        if actor is None:
            actor = self._actors[count] = NativeActor(self._layout, count)
        return actor.greedy(self.memory.online, rows)


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
