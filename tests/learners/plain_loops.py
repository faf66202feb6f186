"""DQN and PPO as one writes them first: torch's optimizer, torch's clipping, torch's losses and distributions; and the
data that both they and our learners are given."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical, Normal
from torch.nn import functional

FEATURES, ACTIONS = 5, 4


class Dueling(nn.Module):
    """The advantage head first, and layers in no order of use: parameters lie otherwise than the native lane's."""

    def __init__(self) -> None:
        super().__init__()
        self.advantage, self.value = nn.Linear(12, ACTIONS), nn.Linear(12, 1)
        self.second, self.first = nn.Linear(16, 12), nn.Linear(FEATURES, 16)

    def forward(self, obs):
        x = torch.relu(self.first(torch.flatten(obs, 1)))
        x = functional.relu(self.second(x))
        advantage = self.advantage(x)
        return self.value(x) + advantage - advantage.mean(dim=1, keepdim=True)


def mlp(*widths: int, activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in zip(widths[:-1], widths[1:], strict=True):
        layers += [nn.Linear(before, after), activation()]
    return nn.Sequential(*layers[:-1])


class TwoTorsos(nn.Module):
    def __init__(self, outputs: int, continuous: bool) -> None:
        super().__init__()
        self.critic = mlp(FEATURES, 16, 16, 1, activation=nn.Tanh)
        self.actor = mlp(FEATURES, 16, 16, outputs, activation=nn.Tanh)
        if continuous:
            self.actor_logstd = nn.Parameter(torch.full((1, outputs), -0.3))

    def forward(self, obs):
        return self.actor(obs), self.critic(obs)


class OneTorso(nn.Module):
    def __init__(self, outputs: int, continuous: bool) -> None:
        super().__init__()
        self.policy, self.value = nn.Linear(16, outputs), nn.Linear(16, 1)
        self.torso = mlp(FEATURES, 16)
        if continuous:
            self.log_std = nn.Parameter(torch.zeros(outputs))

    def forward(self, obs):
        x = torch.tanh(self.torso(obs))
        return self.policy(x), self.value(x).squeeze(-1)


def made(make: Any, *inputs: Any, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return make(*inputs)


def transitions(seed: int, rows: int = 16, k: int = 0, weights: bool = False, masks: bool = False) -> SimpleNamespace:
    """Of a problem that can be learned: the reward is a function of observation and action."""
    draw, shape = np.random.default_rng(seed), (k, rows) if k else (rows,)
    obs = draw.normal(size=(*shape, FEATURES)).astype(np.float32)
    action = draw.integers(0, ACTIONS, shape)
    mask = draw.random((*shape, ACTIONS)) < 0.6
    mask[..., 1] = True
    return SimpleNamespace(
        obs=obs,
        action=action,
        reward=(obs[..., 0] * (action - 1.5) + 0.1 * draw.normal(size=shape)).astype(np.float32),
        discount=(0.9 * (draw.random(shape) < 0.9)).astype(np.float32),
        next_obs=draw.normal(size=(*shape, FEATURES)).astype(np.float32),
        weight=(0.2 + draw.random(shape)).astype(np.float32) if weights else np.ones(shape, np.float32),
        index=np.zeros(shape, np.int64),
        next_action_mask=mask if masks else None,
    )


class PlainDQN:
    def __init__(self, network, lr, double, loss, target_every, target_tau, max_grad_norm, dtype=torch.float32):
        self.online, self.dtype = copy.deepcopy(network).to(dtype), dtype
        self.target = copy.deepcopy(self.online)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=lr)
        self.loss = functional.smooth_l1_loss if loss == "huber" else functional.mse_loss
        self.double, self.every, self.tau, self.norm = double, target_every, target_tau, max_grad_norm
        self.updates = 0

    def update(self, batch):
        obs, reward, discount, next_obs, weight = (
            torch.from_numpy(getattr(batch, name)).to(self.dtype)
            for name in ("obs", "reward", "discount", "next_obs", "weight")
        )
        with torch.no_grad():
            q_next = self.target(next_obs)
            q_select = self.online(next_obs) if self.double else q_next
            if batch.next_action_mask is not None:
                q_select = q_select.masked_fill(~torch.from_numpy(batch.next_action_mask), -torch.inf)
            y = reward + discount * q_next.gather(1, q_select.argmax(1, keepdim=True)).squeeze(1)
        q = self.online(obs).gather(1, torch.from_numpy(batch.action)[:, None]).squeeze(1)
        loss = (weight * self.loss(q, y, reduction="none")).mean()
        self.optimizer.zero_grad()
        loss.backward()
        if self.norm is not None:
            nn.utils.clip_grad_norm_(self.online.parameters(), self.norm)
        self.optimizer.step()
        self.updates += 1
        if self.updates % self.every == 0:
            with torch.no_grad():
                for old, new in zip(self.target.parameters(), self.online.parameters(), strict=True):
                    old.lerp_(new, self.tau)
        return (q - y).abs().detach().numpy(), loss.item()


class PlainPPO:
    """Epochs over a rollout, in the order of rows that it is given."""

    def __init__(self, network, lr, clip, ent_coef, max_grad_norm, dtype=torch.float32):
        self.network, self.dtype = copy.deepcopy(network).to(dtype), dtype
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=lr, eps=1e-5)
        self.clip, self.ent_coef, self.norm = clip, ent_coef, max_grad_norm

    def policy(self, obs, mask):
        outputs, value = self.network(obs)
        log_std = next((p for n, p in self.network.named_parameters() if n.endswith(("log_std", "logstd"))), None)
        if log_std is not None:
            return Normal(outputs, log_std.exp().expand_as(outputs), validate_args=False), value.reshape(-1)
        logits = outputs if mask is None else outputs.masked_fill(~mask, -1e9)
        return Categorical(logits=logits, validate_args=False), value.reshape(-1)

    def log_prob(self, policy, action):
        return policy.log_prob(action).sum(-1) if action.ndim == 2 else policy.log_prob(action)

    def update(self, rows, order, batch_size):
        """`rows` are obs, action, advantage, returns, mask and old log-probability, one row each."""
        for start in range(0, len(order), batch_size):
            chosen = torch.from_numpy(order[start : start + batch_size])
            obs, action, advantage, returns, mask, old = (None if f is None else f[chosen] for f in rows)
            policy, value = self.policy(obs, mask)
            advantage = (advantage - advantage.mean()) / (advantage.std(unbiased=False) + 1e-8)
            ratio = (self.log_prob(policy, action) - old).exp()
            surrogate = torch.min(ratio * advantage, ratio.clamp(1 - self.clip, 1 + self.clip) * advantage)
            entropy = policy.entropy()
            entropy = entropy.sum(-1) if entropy.ndim == 2 else entropy
            loss = -surrogate.mean() + 0.5 * (value - returns).square().mean() - self.ent_coef * entropy.mean()
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.network.parameters(), self.norm)
            self.optimizer.step()


class SlabRollout:
    """The fields that a learner reads of a rollout, [T, N, ...]."""

    def __init__(self, steps: int, num_envs: int, action_shape=(), masked: int = 0, seed: int = 0) -> None:
        draw = np.random.default_rng(seed)
        shape = (steps, num_envs)
        self.obs = draw.normal(size=(*shape, FEATURES)).astype(np.float32)
        self.action = np.zeros((*shape, *action_shape), np.float32 if action_shape else np.int64)
        self.log_prob, self.value = np.zeros((2, *shape), np.float32)
        self.reward = draw.normal(size=shape).astype(np.float32)
        self.terminated, self.truncated = draw.random(shape) < 0.05, draw.random(shape) < 0.05
        self.weight = np.ones(shape, np.float32)
        self.action_mask = None
        if masked:
            self.action_mask = draw.random((*shape, masked)) < 0.6
            self.action_mask[..., 1] = True
        self._final_obs = draw.normal(size=(*shape, FEATURES)).astype(np.float32)
        self.full = True

    def fill(self, policy) -> SlabRollout:
        """By acting, all at once: nothing here depends on an action."""
        rows, mask = self.reward.size, self.action_mask
        action, note = policy.act(self.obs.reshape(rows, -1), mask=None if mask is None else mask.reshape(rows, -1))
        self.action[:] = action.reshape(self.action.shape)
        self.log_prob[:], self.value[:] = (part.reshape(self.reward.shape) for part in note)
        return self

    def timeouts(self):
        steps, envs = np.nonzero(self.truncated)
        return (steps, envs, self._final_obs[steps, envs]) if len(steps) else None

    def final_obs(self):
        return self._final_obs

    def clear(self):
        self.full = False
