"""Plain replay buffers: in memory, on disk, by priority.

Experience replay: a deque of tuples, random.sample, np.stack.

Experience replay on disk: one numpy.memmap per field, a write position, fancy indexing.

Prioritized experience replay (Schaul et al. 2015): a binary sum tree in an array, a list of transitions.
"""

import os
import random
from collections import deque

import numpy as np


class ReplayBuffer:
    def __init__(self, capacity):
        self.buffer: deque = deque(maxlen=capacity)

    def add(self, obs, action, reward, next_obs, done):
        self.buffer.append((obs, action, reward, next_obs, done))

    def add_many(self, obs, action, reward, next_obs, done):
        """One transition from each of several environments."""
        for i in range(len(action)):
            self.buffer.append((obs[i], action[i], reward[i], next_obs[i], done[i]))

    def sample(self, batch_size, rng=random):
        return self.collate(rng.sample(self.buffer, batch_size))

    @staticmethod
    def collate(transitions):
        obs, action, reward, next_obs, done = zip(*transitions, strict=True)
        return (
            np.stack(obs),
            np.array(action, dtype=np.int64),
            np.array(reward, dtype=np.float32),
            np.stack(next_obs),
            np.array(done, dtype=np.float32),
        )

    def __len__(self):
        return len(self.buffer)


class MemmapReplayBuffer:
    def __init__(self, folder, capacity, obs_size, seed=0):
        def make(name, dtype, *shape):
            return np.memmap(os.path.join(folder, name), dtype=dtype, mode="w+", shape=(capacity, *shape))

        self.capacity = capacity
        self.obs = make("obs", np.float32, obs_size)
        self.action = make("action", np.int64)
        self.reward = make("reward", np.float32)
        self.next_obs = make("next_obs", np.float32, obs_size)
        self.done = make("done", np.float32)
        self.position = 0
        self.size = 0
        self.random = np.random.default_rng(seed)

    def add(self, obs, action, reward, next_obs, done):
        """One transition from each of several environments."""
        count = len(action)
        rows = (self.position + np.arange(count)) % self.capacity
        self.obs[rows] = obs
        self.action[rows] = action
        self.reward[rows] = reward
        self.next_obs[rows] = next_obs
        self.done[rows] = done
        self.position = (self.position + count) % self.capacity
        self.size = min(self.size + count, self.capacity)

    def sample(self, batch_size):
        return self.gather(self.random.integers(self.size, size=batch_size))

    def gather(self, rows):
        return self.obs[rows], self.action[rows], self.reward[rows], self.next_obs[rows], self.done[rows]


class SumTree:
    def __init__(self, capacity):
        self.capacity = 1
        while self.capacity < capacity:
            self.capacity *= 2
        self.nodes = np.zeros(2 * self.capacity)

    def set(self, leaf, value):
        node = leaf + self.capacity
        self.nodes[node] = value
        while node > 1:
            node //= 2
            self.nodes[node] = self.nodes[2 * node] + self.nodes[2 * node + 1]

    def find(self, target):
        node = 1
        while node < self.capacity:
            node *= 2
            if target >= self.nodes[node]:
                target -= self.nodes[node]
                node += 1
        return node - self.capacity

    def __getitem__(self, leaf):
        return self.nodes[leaf + self.capacity]

    @property
    def total(self):
        return self.nodes[1]


class PrioritizedReplay:
    def __init__(self, capacity, alpha=0.6, epsilon=1e-6):
        self.capacity, self.alpha, self.epsilon = capacity, alpha, epsilon
        self.tree = SumTree(capacity)
        self.transitions = []
        self.position = 0
        self.max_priority = 1.0

    def add(self, obs, action, reward, next_obs, done):
        transition = (obs, action, reward, next_obs, done)
        if len(self.transitions) < self.capacity:
            self.transitions.append(transition)
        else:
            self.transitions[self.position] = transition
        self.tree.set(self.position, self.max_priority)
        self.position = (self.position + 1) % self.capacity

    def sample(self, batch_size, beta, rng=random):
        """Transitions, importance weights and indices, one from each of `batch_size` equal stretches."""
        segment = self.tree.total / batch_size
        indices = [self.tree.find((i + rng.random()) * segment) for i in range(batch_size)]
        priorities = np.array([self.tree[i] for i in indices])
        weights = (len(self.transitions) * priorities / self.tree.total) ** -beta
        weights = (weights / weights.max()).astype(np.float32)
        obs, action, reward, next_obs, done = zip(*[self.transitions[i] for i in indices], strict=True)
        batch = (
            np.stack(obs),
            np.array(action, dtype=np.int64),
            np.array(reward, dtype=np.float32),
            np.stack(next_obs),
            np.array(done, dtype=np.float32),
        )
        return batch, weights, indices

    def update_priorities(self, indices, errors):
        for index, error in zip(indices, errors, strict=True):
            priority = (abs(float(error)) + self.epsilon) ** self.alpha
            self.tree.set(index, priority)
            self.max_priority = max(self.max_priority, priority)
