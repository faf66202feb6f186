"""DQN on CartPole-v1 in one file: replay, network, epsilon-greedy, target network, Adam. Run it as it stands."""

import argparse
import copy
import random
import time
from collections import deque
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    total_steps: int = 20_000
    learning_starts: int = 500
    buffer_size: int = 10_000
    batch_size: int = 32
    hidden: tuple = (64, 64)
    lr: float = 1e-3
    gamma: float = 0.99
    epsilon_start: float = 1.0
    epsilon_end: float = 0.05
    epsilon_steps: int = 5_000
    target_every: int = 250
    max_grad_norm: float = 10.0
    seed: int = 0


class QNetwork(nn.Module):
    def __init__(self, obs_size, num_actions, hidden):
        super().__init__()
        layers, size = [], obs_size
        for width in hidden:
            layers += [nn.Linear(size, width), nn.ReLU()]
            size = width
        self.layers = nn.Sequential(*layers, nn.Linear(size, num_actions))

    def forward(self, obs):
        return self.layers(obs)


class ReplayBuffer:
    def __init__(self, capacity):
        self.buffer: deque = deque(maxlen=capacity)

    def add(self, *transition):
        self.buffer.append(transition)

    def sample(self, batch_size, rng):
        obs, action, reward, next_obs, done = zip(*rng.sample(self.buffer, batch_size), strict=True)
        return (
            torch.tensor(np.array(obs)),
            torch.tensor(action),
            torch.tensor(reward, dtype=torch.float32),
            torch.tensor(np.array(next_obs)),
            torch.tensor(done, dtype=torch.float32),
        )


class DQN:
    def __init__(self, config, network, rng):
        self.config = config
        self.rng = rng
        self.online = network
        self.target = copy.deepcopy(network)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=config.lr)
        self.updates = 0

    def epsilon(self, step):
        config = self.config
        fraction = min(1.0, step / config.epsilon_steps)
        return config.epsilon_start + (config.epsilon_end - config.epsilon_start) * fraction

    def act(self, obs, step, num_actions):
        if self.rng.random() < self.epsilon(step):
            return self.rng.randrange(num_actions)
        with torch.no_grad():
            return self.online(torch.tensor(obs).unsqueeze(0)).argmax(dim=1).item()

    def learn(self, buffer):
        config = self.config
        obs, action, reward, next_obs, done = buffer.sample(config.batch_size, self.rng)
        with torch.no_grad():
            next_q = self.target(next_obs).max(dim=1)[0]
            target = reward + config.gamma * next_q * (1 - done)
        q = self.online(obs).gather(1, action.unsqueeze(1)).squeeze(1)
        loss = F.smooth_l1_loss(q, target)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.online.parameters(), config.max_grad_norm)
        self.optimizer.step()
        self.updates += 1
        if self.updates % config.target_every == 0:
            self.target.load_state_dict(self.online.state_dict())
        return loss.item()


def train(config, env=None, network=None, rng=random):
    """Train for `total_steps`; returns the agent, its replay buffer and the return of every episode."""
    env = env or gym.make("CartPole-v1")
    num_actions = int(env.action_space.n)
    if network is None:
        network = QNetwork(env.observation_space.shape[0], num_actions, config.hidden)
    agent, buffer = DQN(config, network, rng), ReplayBuffer(config.buffer_size)
    returns, episode_return = [], 0.0
    obs, _ = env.reset(seed=config.seed)
    for step in range(config.total_steps):
        action = agent.act(obs, step, num_actions)
        next_obs, reward, terminated, truncated, _ = env.step(action)
        buffer.add(obs, action, reward, next_obs, terminated)
        episode_return += reward
        obs = next_obs
        if terminated or truncated:
            returns.append(episode_return)
            episode_return = 0.0
            obs, _ = env.reset()
        if step >= config.learning_starts:
            agent.learn(buffer)
    env.close()
    return agent, buffer, returns


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--total-steps", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    torch.manual_seed(arguments.seed)
    start = time.time()
    _, _, returns = train(Config(total_steps=arguments.total_steps, seed=arguments.seed))
    seconds = time.time() - start
    print(f"{len(returns)} episodes, the last 20 returned {np.mean(returns[-20:]):.1f} on average")
    print(f"{arguments.total_steps / seconds:.0f} steps per second")


if __name__ == "__main__":
    main()
