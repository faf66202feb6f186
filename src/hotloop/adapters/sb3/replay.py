"""Batches as a model's replay buffer draws them, and rows stored without copies: what DQN, SAC and TD3 share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from hotloop.adapters.sb3.in_place import STATE, InPlace
from hotloop.adapters.sb3.memory import as_float_rows
from hotloop.core.types import Array


class Drawn(NamedTuple):
    """k batches of B rows, float32 but for the actions, which are as they were stored."""

    obs: Array  # [k, B, F]
    action: Array  # [k, B, ...]
    reward: Array  # [k, B]
    discount: Array  # [k, B]
    next_obs: Array  # [k, B, F]


def is_plain_buffer(model: OffPolicyAlgorithm) -> bool:
    """Whether rows can be written and read in the buffer's arrays themselves."""
    buffer = model.replay_buffer
    plain = type(buffer) is ReplayBuffer and not buffer.optimize_memory_usage
    return plain and model._vec_normalize_env is None


def draw_batches(model: OffPolicyAlgorithm, k: int, rows: int) -> Drawn:
    """What `replay_buffer.sample` draws, called k times, from the same state of numpy's generator."""
    if is_plain_buffer(model):
        return _gather(model.replay_buffer, k, rows, model.gamma)
    drawn = [model.replay_buffer.sample(rows, env=model._vec_normalize_env) for _ in range(k)]
    fields = [np.stack([getattr(one, name).numpy() for one in drawn]) for name in drawn[0]._fields[:5]]
    obs, action, next_obs, done, reward = fields
    discounts = [model.gamma if one.discounts is None else one.discounts.numpy() for one in drawn]
    discount = np.stack([(1 - one) * gamma for one, gamma in zip(done, discounts, strict=True)])
    return _drawn((k, rows), obs, action, reward, discount, next_obs)


def _gather(buffer: ReplayBuffer, k: int, rows: int, gamma: float) -> Drawn:
    """The same without a tensor and a copy of it for every field."""
    upper, index = buffer.buffer_size if buffer.full else buffer.pos, np.empty((k, rows), np.int64)
    for j in range(k):  # one after the other, as the generator would be asked by `sample`
        index[j] = np.random.randint(0, upper, size=rows)
        if buffer.n_envs > 1:  # of one env, the draw would not advance the generator
            index[j] = index[j] * buffer.n_envs + np.random.randint(0, high=buffer.n_envs, size=(rows,))
    size = buffer.buffer_size * buffer.n_envs
    obs = buffer.observations.reshape(size, -1).take(index, axis=0)
    next_obs = buffer.next_observations.reshape(size, -1).take(index, axis=0)
    done, timeout = buffer.dones.reshape(size).take(index), buffer.timeouts.reshape(size).take(index)
    action = buffer.actions.reshape(size, -1).take(index, axis=0)
    reward = buffer.rewards.reshape(size).take(index)
    return _drawn(index.shape, obs, action, reward, (1 - done * (1 - timeout)) * gamma, next_obs)


def _drawn(shape: tuple[int, ...], obs: Array, action: Array, reward: Array, discount: Array, next_obs: Array) -> Drawn:
    reward, discount = (field.reshape(shape).astype(np.float32, copy=False) for field in (reward, discount))
    return Drawn(as_float_rows(obs, 2), action, reward, discount, as_float_rows(next_obs, 2))


class QuickStorage(OffPolicyAlgorithm, InPlace):
    """Methods of every accelerated model that has a replay buffer."""

    _last_obs: Any

    def _store_transition(
        self, replay_buffer: Any, buffer_action: Array, new_obs: Any, reward: Array, dones: Array, infos: Any
    ) -> None:
        """Rows go straight into the buffer's arrays; the original copies each of them twice before."""
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
