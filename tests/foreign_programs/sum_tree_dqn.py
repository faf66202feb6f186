"""Prioritised DQN as blog posts write it: a sum tree in Python, a leaf at a time."""

import random
import sys

import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn


class SumTree:
    def __init__(self, capacity):
        self.capacity = capacity
        self.tree = np.zeros(2 * capacity - 1)
        self.data = np.zeros(capacity, dtype=object)
        self.write = 0
        self.n_entries = 0

    def _propagate(self, idx, change):
        parent = (idx - 1) // 2
        self.tree[parent] += change
        if parent != 0:
            self._propagate(parent, change)

    def _retrieve(self, idx, s):
        left = 2 * idx + 1
        right = left + 1
        if left >= len(self.tree):
            return idx
        if s <= self.tree[left]:
            return self._retrieve(left, s)
        return self._retrieve(right, s - self.tree[left])

    def total(self):
        return self.tree[0]

    def add(self, p, data):
        idx = self.write + self.capacity - 1
        self.data[self.write] = data
        self.update(idx, p)
        self.write = (self.write + 1) % self.capacity
        self.n_entries = min(self.n_entries + 1, self.capacity)

    def update(self, idx, p):
        change = p - self.tree[idx]
        self.tree[idx] = p
        self._propagate(idx, change)

    def get(self, s):
        idx = self._retrieve(0, s)
        return idx, self.tree[idx], self.data[idx - self.capacity + 1]


class Memory:
    e = 0.01
    a = 0.6
    beta = 0.4
    beta_increment_per_sampling = 0.001

    def __init__(self, capacity):
        self.tree = SumTree(capacity)
        self.capacity = capacity

    def _get_priority(self, error):
        return (np.abs(error) + self.e) ** self.a

    def add(self, error, sample):
        self.tree.add(self._get_priority(error), sample)

    def sample(self, n):
        batch, idxs, priorities = [], [], []
        segment = self.tree.total() / n
        self.beta = np.min([1.0, self.beta + self.beta_increment_per_sampling])
        for i in range(n):
            a, b = segment * i, segment * (i + 1)
            idx, p, data = self.tree.get(random.uniform(a, b))
            priorities.append(p)
            batch.append(data)
            idxs.append(idx)
        sampling_probabilities = np.array(priorities) / self.tree.total()
        is_weight = np.power(self.tree.n_entries * sampling_probabilities, -self.beta)
        is_weight /= is_weight.max()
        return batch, idxs, is_weight

    def update(self, idx, error):
        self.tree.update(idx, self._get_priority(error))


class QNet(nn.Module):
    def __init__(self, state_size, action_size):
        super().__init__()
        self.fc = nn.Sequential(
            nn.Linear(state_size, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, action_size)
        )

    def forward(self, x):
        return self.fc(x)


class Agent:
    def __init__(self, state_size, action_size):
        self.action_size = action_size
        self.gamma = 0.99
        self.epsilon, self.epsilon_decay, self.epsilon_min = 1.0, 5e-5, 0.01
        self.batch_size, self.train_start = 64, 1000
        self.memory = Memory(20000)
        self.model = QNet(state_size, action_size)
        self.target = QNet(state_size, action_size)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.update_target()

    def update_target(self):
        self.target.load_state_dict(self.model.state_dict())

    def get_action(self, state):
        if np.random.rand() <= self.epsilon:
            return random.randrange(self.action_size)
        with torch.no_grad():
            return int(self.model(torch.as_tensor(state)).argmax())

    def append_sample(self, state, action, reward, next_state, done):
        with torch.no_grad():
            old = self.model(torch.as_tensor(state))[action]
            best = self.target(torch.as_tensor(next_state)).max()
        target = reward if done else reward + self.gamma * best
        self.memory.add(abs(float(old - target)), (state, action, reward, next_state, done))

    def train_model(self):
        self.epsilon = max(self.epsilon_min, self.epsilon - self.epsilon_decay)
        batch, idxs, is_weights = self.memory.sample(self.batch_size)
        states, actions, rewards, next_states, dones = map(np.array, zip(*batch))
        states = torch.as_tensor(states)
        next_states = torch.as_tensor(next_states)
        actions = torch.as_tensor(actions).unsqueeze(1)
        rewards = torch.as_tensor(rewards, dtype=torch.float32)
        dones = torch.as_tensor(dones, dtype=torch.float32)
        pred = self.model(states).gather(1, actions).squeeze(1)
        with torch.no_grad():
            target = rewards + (1 - dones) * self.gamma * self.target(next_states).max(1).values
        errors = (pred - target).abs().detach().numpy()
        for i in range(self.batch_size):
            self.memory.update(idxs[i], errors[i])
        self.optimizer.zero_grad()
        loss = (torch.as_tensor(is_weights, dtype=torch.float32) * (pred - target) ** 2).mean()
        loss.backward()
        self.optimizer.step()


env = gym.make("CartPole-v1")
agent = Agent(4, 2)
steps, scores = 0, []
while steps < int(sys.argv[1]):
    state, _ = env.reset()
    done, score = False, 0
    while not done:
        action = agent.get_action(state)
        next_state, reward, terminated, truncated, _ = env.step(action)
        done = terminated or truncated
        agent.append_sample(state, action, reward, next_state, terminated)
        if agent.memory.tree.n_entries >= agent.train_start:
            agent.train_model()
        score += reward
        state = next_state
        steps += 1
    agent.update_target()
    scores.append(score)
    if len(scores) % 20 == 0:
        print("episode:", len(scores), "score:", np.mean(scores[-20:]), "epsilon:", round(agent.epsilon, 3))
