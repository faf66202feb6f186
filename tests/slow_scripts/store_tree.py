"""A sum tree is walked in Python for every row that is drawn or changed. Remedy: all rows at once, in an array."""

import numpy as np
import torch
from training import Drift, Ring, arguments, train

CAPACITY = 4_096
options = arguments(env_calls=3000)


class SumTree:
    """Leaf i holds the priority of row i, each node the sum of the two below it."""

    def __init__(self):
        self.nodes = np.zeros(2 * CAPACITY)

    def total(self):
        return self.nodes[1]

    def put(self, row, priority):
        node = row + CAPACITY
        change = priority - self.nodes[node]
        while node:
            self.nodes[node] += change
            node //= 2

    def find(self, mass):
        node = 1
        while node < CAPACITY:
            node *= 2
            if mass >= self.nodes[node]:
                mass -= self.nodes[node]
                node += 1
        return node - CAPACITY


class LeafByLeaf(Ring):
    def __init__(self):
        super().__init__(CAPACITY)
        self.tree = SumTree()

    def add(self, obs, action, reward, next_obs):
        self.put([(self.added + row) % CAPACITY for row in range(len(reward))], np.ones(len(reward)))
        super().add(obs, action, reward, next_obs)

    def put(self, rows, priorities):
        for row, priority in zip(rows, priorities, strict=True):
            self.tree.put(row, float(priority))

    def draw(self, size):
        masses = self.rng.random(size) * self.tree.total()
        return np.array([self.tree.find(mass) for mass in masses.tolist()])

    def sample(self, size):
        rows = self.draw(size)
        fields = self.obs[rows], self.action[rows], self.reward[rows], self.next_obs[rows]
        self.put(rows, np.floor(64 * np.abs(fields[2]) + 1) / 64)  # sums of 64ths are exact in any order
        return tuple(torch.from_numpy(field) for field in fields)


class AllAtOnce(LeafByLeaf):
    def __init__(self):
        super().__init__()
        self.priorities = np.zeros(CAPACITY)

    def put(self, rows, priorities):
        self.priorities[rows] = priorities

    def draw(self, size):
        sums = np.cumsum(self.priorities)
        return np.searchsorted(sums, self.rng.random(size) * sums[-1], side="right")


train(options.env_calls, env=Drift(4), ring=AllAtOnce() if options.healthy else LeafByLeaf(), updates_every=2)
