"""Every row asks for the largest priority of all, every batch for the sum. Remedy: a running maximum, a sum tree."""

import numpy as np
import torch
from training import Drift, Ring, arguments, train

CAPACITY = 16_384
options = arguments(env_calls=1200)


class Prioritised(Ring):
    def __init__(self):
        super().__init__(CAPACITY)
        self.priorities = [1.0] * CAPACITY
        self.rng = np.random.RandomState(1)

    def add(self, obs, action, reward, next_obs):
        for row in range(len(reward)):
            self.priorities[(self.added + row) % CAPACITY] = max(self.priorities)
        super().add(obs, action, reward, next_obs)

    def draw(self, size):
        weight = np.array(self.priorities[: min(self.added, CAPACITY)])
        return self.rng.choice(len(weight), size, p=weight / weight.sum())

    def sample(self, size):
        rows = self.draw(size)
        fields = self.obs[rows], self.action[rows], self.reward[rows], self.next_obs[rows]
        self.update(rows, 1.0 - np.exp(-np.abs(fields[2])))
        return tuple(torch.from_numpy(field) for field in fields)

    def update(self, rows, priorities):
        for row, priority in zip(rows, priorities, strict=True):
            self.priorities[row] = float(priority)


class Tree(Prioritised):
    """The same rows are drawn: leaf i holds the priority of row i, and each node the sum of the two below it."""

    def __init__(self):
        super().__init__()
        self.nodes = np.zeros(2 * CAPACITY)

    def add(self, obs, action, reward, next_obs):
        self.put((self.added + np.arange(len(reward))) % CAPACITY, 1.0)
        Ring.add(self, obs, action, reward, next_obs)

    def put(self, rows, priorities):
        node = rows + CAPACITY
        self.nodes[node] = priorities
        while node[0] > 1:
            node = np.unique(node // 2)
            self.nodes[node] = self.nodes[2 * node] + self.nodes[2 * node + 1]

    def update(self, rows, priorities):
        rows, last = np.unique(rows[::-1], return_index=True)
        self.put(rows, priorities[::-1][last])

    def draw(self, size):
        left, node = self.rng.random_sample(size) * self.nodes[1], np.ones(size, np.int64)
        while node[0] < CAPACITY:
            node *= 2
            to_the_right = left >= self.nodes[node]
            left -= np.where(to_the_right, self.nodes[node], 0.0)
            node += to_the_right
        return node - CAPACITY


train(options.env_calls, env=Drift(4), ring=Tree() if options.healthy else Prioritised())
