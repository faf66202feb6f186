"""Independent DQNs on a PettingZoo parallel env of one's own: a network, a replay and an update per agent."""

import random
import sys
from collections import deque

import numpy as np
import torch
import torch.nn as nn
from gymnasium import spaces
from pettingzoo import ParallelEnv


class Pursuit(ParallelEnv):
    """Agents on a torus chase a prey that runs from the nearest of them."""

    metadata = {"name": "pursuit_v0"}

    def __init__(self, n_agents=4, size=10, max_steps=100):
        self.possible_agents = [f"hunter_{i}" for i in range(n_agents)]
        self.size, self.max_steps = size, max_steps
        self.rng = np.random.default_rng(0)
        self.moves = np.array([[0, 0], [0, 1], [0, -1], [1, 0], [-1, 0]])

    def observation_space(self, agent):
        return spaces.Box(-1, 1, (2 * len(self.possible_agents),), np.float32)

    def action_space(self, agent):
        return spaces.Discrete(5)

    def _toward(self, a, b):
        half = self.size // 2
        return (b - a + half) % self.size - half

    def _observe(self, agent):
        me = self.positions[agent]
        others = [self._toward(me, self.positions[other]) for other in self.agents if other != agent]
        return np.concatenate([self._toward(me, self.prey), *others]).astype(np.float32) / self.size

    def reset(self, seed=None, options=None):
        self.agents = self.possible_agents[:]
        self.positions = {agent: self.rng.integers(0, self.size, 2) for agent in self.agents}
        self.prey = self.rng.integers(0, self.size, 2)
        self.steps = 0
        return {agent: self._observe(agent) for agent in self.agents}, {agent: {} for agent in self.agents}

    def step(self, actions):
        for agent, action in actions.items():
            self.positions[agent] = (self.positions[agent] + self.moves[action]) % self.size
        away = [np.abs(self._toward(self.prey, self.positions[agent])).sum() for agent in self.agents]
        if self.rng.random() < 0.5:
            self.prey = (self.prey + self.moves[self.rng.integers(5)]) % self.size
        caught = min(away) == 0
        self.steps += 1
        rewards = {agent: 1.0 if caught else -0.01 * d for agent, d in zip(self.agents, away)}
        terminated = {agent: bool(caught) for agent in self.agents}
        truncated = {agent: self.steps >= self.max_steps for agent in self.agents}
        observations = {agent: self._observe(agent) for agent in self.agents}
        infos = {agent: {} for agent in self.agents}
        if caught or self.steps >= self.max_steps:
            self.agents = []
        return observations, rewards, terminated, truncated, infos


class DQNAgent:
    def __init__(self, obs_size, n_actions):
        self.n_actions = n_actions
        self.q = nn.Sequential(
            nn.Linear(obs_size, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, n_actions)
        )
        self.target = nn.Sequential(
            nn.Linear(obs_size, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, n_actions)
        )
        self.target.load_state_dict(self.q.state_dict())
        self.optimizer = torch.optim.Adam(self.q.parameters(), lr=1e-3)
        self.memory = deque(maxlen=10000)
        self.epsilon = 1.0

    def act(self, obs):
        if random.random() < self.epsilon:
            return random.randrange(self.n_actions)
        with torch.no_grad():
            return self.q(torch.from_numpy(obs)).argmax().item()

    def remember(self, *transition):
        self.memory.append(transition)

    def learn(self, batch_size=64, gamma=0.98):
        if len(self.memory) < 500:
            return
        self.epsilon = max(0.05, self.epsilon * 0.999)
        batch = random.sample(self.memory, batch_size)
        obs, actions, rewards, next_obs, dones = zip(*batch)
        obs = torch.tensor(np.array(obs))
        actions = torch.tensor(actions).unsqueeze(1)
        rewards = torch.tensor(rewards)
        next_obs = torch.tensor(np.array(next_obs))
        dones = torch.tensor(dones, dtype=torch.float32)
        q = self.q(obs).gather(1, actions).squeeze(1)
        with torch.no_grad():
            y = rewards + gamma * (1 - dones) * self.target(next_obs).max(1).values
        loss = nn.functional.mse_loss(q, y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def sync(self):
        self.target.load_state_dict(self.q.state_dict())


env = Pursuit()
agents = {name: DQNAgent(env.observation_space(name).shape[0], 5) for name in env.possible_agents}
total_steps, step, episode = int(sys.argv[1]), 0, 0
while step < total_steps:
    observations, _ = env.reset()
    score = 0.0
    while env.agents:
        actions = {name: agents[name].act(observations[name]) for name in env.agents}
        playing = env.agents[:]
        next_observations, rewards, terminations, truncations, _ = env.step(actions)
        for name in playing:
            agents[name].remember(
                observations[name], actions[name], rewards[name], next_observations[name], terminations[name]
            )
            agents[name].learn()
        score += sum(rewards.values())
        observations = next_observations
        step += 1
        if step % 200 == 0:
            for agent in agents.values():
                agent.sync()
    episode += 1
    if episode % 10 == 0:
        print(f"episode {episode}, steps {step}, score {score:.2f}")
