"""Plain parts of DQN: loss, target, epsilon, n-step returns.

The Q-loss of DQN and Double DQN, straight from the papers.

Soft target updates, parameter by parameter.

Epsilon-greedy acting.

n-step transitions: a deque of the last n steps of each environment in front of the replay buffer.
"""

import random
from collections import deque

import numpy as np
import torch
import torch.nn.functional as F


def q_loss(network, target_network, batch, gamma=0.99):
    """Mean squared TD error; the target network values the next state."""
    obs, action, reward, next_obs, done = batch
    with torch.no_grad():
        next_q = target_network(next_obs).max(dim=1)[0]
        target = reward + gamma * next_q * (1 - done)
    q = network(obs).gather(1, action.unsqueeze(1)).squeeze(1)
    return F.mse_loss(q, target)


def double_q_loss(network, target_network, batch, gamma=0.99):
    """The online network chooses the next action, the target network values it."""
    obs, action, reward, next_obs, done = batch
    with torch.no_grad():
        best = network(next_obs).argmax(dim=1, keepdim=True)
        next_q = target_network(next_obs).gather(1, best).squeeze(1)
        target = reward + gamma * next_q * (1 - done)
    q = network(obs).gather(1, action.unsqueeze(1)).squeeze(1)
    return F.mse_loss(q, target)


def gradient(loss, network):
    """Backpropagate and hand out the gradients."""
    network.zero_grad()
    loss.backward()
    return [parameter.grad for parameter in network.parameters()]


def soft_update(target, online, tau):
    for target_parameter, parameter in zip(target.parameters(), online.parameters(), strict=True):
        target_parameter.data.copy_(tau * parameter.data + (1.0 - tau) * target_parameter.data)


def act(network, obs, epsilon, num_actions, rng=random):
    """For one environment: the network is asked only when the coin says so."""
    if rng.random() < epsilon:
        return rng.randrange(num_actions)
    with torch.no_grad():
        q = network(torch.tensor(obs).unsqueeze(0))
    return q.argmax(dim=1).item()


def act_many(network, obs, epsilon, num_actions, rng=random):
    """For several environments: one forward pass, then a coin for each."""
    with torch.no_grad():
        actions = network(torch.from_numpy(obs)).argmax(dim=1).numpy()
    for i in range(len(actions)):
        if rng.random() < epsilon:
            actions[i] = rng.randrange(num_actions)
    return np.asarray(actions)


class NStepBuffer:
    """For one environment; `add` returns the transitions that are complete now."""

    def __init__(self, n, gamma):
        self.n, self.gamma = n, gamma
        self.steps: deque = deque()

    def add(self, obs, action, reward, next_obs, terminated, truncated):
        self.steps.append((obs, action, reward))
        finished = []
        if terminated or truncated:
            while self.steps:
                finished.append(self.oldest(next_obs, terminated))
        elif len(self.steps) == self.n:
            finished.append(self.oldest(next_obs, terminated))
        return finished

    def oldest(self, next_obs, terminated):
        """(obs, action, return, discount, next_obs); a shorter horizon where the episode ended early."""
        total = 0.0
        for power, (_, _, reward) in enumerate(self.steps):
            total += self.gamma**power * reward
        discount = 0.0 if terminated else self.gamma ** len(self.steps)
        obs, action, _ = self.steps.popleft()
        return obs, action, total, discount, next_obs
