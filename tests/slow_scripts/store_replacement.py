"""Rows are drawn without replacement, which shuffles all of them. Remedy: a draw that costs what it takes."""

import random

import numpy as np
import torch
from training import OUTCOME, Ring, arguments, train

options = arguments(env_calls=1500)
np.random.seed(0)
random.seed(0)


class Distinct(Ring):
    def __init__(self):
        super().__init__(100_000)
        self.fewest = self.capacity

    def sample(self, size):
        held = min(self.added, self.capacity)
        rows = random.sample(range(held), size) if options.healthy else np.random.choice(held, size, replace=False)
        self.fewest = min(self.fewest, len(set(rows)))
        fields = self.obs[rows], self.action[rows], self.reward[rows], self.next_obs[rows]
        return tuple(torch.from_numpy(field) for field in fields)


ring = Distinct()
train(options.env_calls, ring=ring)
OUTCOME["fewest"] = np.array(ring.fewest)
