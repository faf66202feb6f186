"""DQN of Stable-Baselines3 on the native lane: the same draws, samples, schedules and log lines, other arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork

from hotloop.adapters.sb3.in_place import STATE, InPlace, overridden
from hotloop.adapters.sb3.memory import ACTED_TOGETHER, SharedMemory, as_float_rows
from hotloop.core.errors import NonFiniteError
from hotloop.core.types import Array
from hotloop.lanes.native.lane import NativeActor, NativeBatch, NativeUpdater, prepare
from hotloop.lanes.native.layout import NativeLayout, UpdateConstants
from hotloop.nets.given_network import SharedNetwork
from hotloop.nets.reading import Reading, read_q_network
from hotloop.nets.settings import MLPLayout

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
        if is_plain_buffer(model):
            return self._gather(model.replay_buffer, k, rows, model.gamma)
        drawn = [model.replay_buffer.sample(rows, env=model._vec_normalize_env) for _ in range(k)]
        fields = [np.stack([getattr(one, name).numpy() for one in drawn]) for name in drawn[0]._fields[:5]]
        obs, action, next_obs, done, reward = fields
        discounts = [model.gamma if one.discounts is None else one.discounts.numpy() for one in drawn]
        discount = np.stack([(1 - one) * gamma for one, gamma in zip(done, discounts, strict=True)])
        return self._batch(obs, action, reward, discount, next_obs)

    def _gather(self, buffer: ReplayBuffer, k: int, rows: int, gamma: float) -> NativeBatch:
        """What `sample` draws, without a tensor and a copy of it for every field."""
        upper, index = buffer.buffer_size if buffer.full else buffer.pos, np.empty((k, rows), np.int64)
        for j in range(k):  # one after the other, as the generator would be asked by `sample`
            index[j] = np.random.randint(0, upper, size=rows)
            if buffer.n_envs > 1:  # of one env, the draw would not advance the generator
                index[j] = index[j] * buffer.n_envs + np.random.randint(0, high=buffer.n_envs, size=(rows,))
        size = buffer.buffer_size * buffer.n_envs
        obs = buffer.observations.reshape(size, -1).take(index, axis=0)
        next_obs = buffer.next_observations.reshape(size, -1).take(index, axis=0)
        done, timeout = buffer.dones.reshape(size).take(index), buffer.timeouts.reshape(size).take(index)
        discount = (1 - done * (1 - timeout)) * gamma
        action, reward = buffer.actions.reshape(size).take(index), buffer.rewards.reshape(size).take(index)
        return self._batch(obs, action, reward, discount, next_obs)

    def _batch(self, obs: Array, action: Array, reward: Array, discount: Array, next_obs: Array) -> NativeBatch:
        shape, floats = self._ones.shape, np.float32
        return NativeBatch(
            as_float_rows(obs, 2),
            action.reshape(shape).astype(np.int64, copy=False),
            reward.reshape(shape).astype(floats, copy=False),
            discount.reshape(shape).astype(floats, copy=False),
            as_float_rows(next_obs, 2),
            self._ones,
            None,
        )

    def greedy(self, rows: Array) -> Array:
        """The best action [N] of observations [N, F]."""
        count = len(rows)
        actor = self._actors.get(count)
        if actor is None:
            actor = self._actors[count] = NativeActor(self._layout, count)
        return actor.greedy(self.memory.online, rows)


def is_plain_buffer(model: DQN) -> bool:
    """Whether rows can be written and read in the buffer's arrays themselves."""
    buffer = model.replay_buffer
    return type(buffer) is ReplayBuffer and not buffer.optimize_memory_usage and model._vec_normalize_env is None


class QuickDQN(DQN, InPlace):
    """Methods of an accelerated `DQN`."""

    _last_obs: Any

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

    def _store_transition(
        self, replay_buffer: Any, buffer_action: Array, new_obs: Any, reward: Array, dones: Array, infos: Any
    ) -> None:
        """Rows go straight into the buffer's arrays; `DQN` copies each of them twice before."""
        if replay_buffer is not self.replay_buffer or not is_plain_buffer(self):
            return super()._store_transition(replay_buffer, buffer_action, new_obs, reward, dones, infos)
        pos, self._last_original_obs = replay_buffer.pos, self._last_obs
        following = replay_buffer.next_observations[pos]
        replay_buffer.observations[pos], following[:] = self._last_obs, new_obs
        for i, done in enumerate(dones):
            if done and infos[i].get("terminal_observation") is not None:
                following[i] = infos[i]["terminal_observation"]
        replay_buffer.actions[pos] = buffer_action.reshape(replay_buffer.n_envs, replay_buffer.action_dim)
        replay_buffer.rewards[pos], replay_buffer.dones[pos] = reward, dones
        if replay_buffer.handle_timeout_termination:
            replay_buffer.timeouts[pos] = [info.get("TimeLimit.truncated", False) for info in infos]
        replay_buffer.pos += 1
        if replay_buffer.pos == replay_buffer.buffer_size:
            replay_buffer.full, replay_buffer.pos = True, 0
        self._last_obs = new_obs

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), STATE]


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
