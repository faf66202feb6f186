"""A memory is a list whose oldest entries are popped from the front. Remedy: a deque with a bound."""

from collections import deque

import numpy as np
from training import OUTCOME, Ring, arguments, train

CAPACITY = 200_000


class Remembering(Ring):
    def __init__(self, memory):
        super().__init__()
        self.memory = memory

    def add(self, obs, action, reward, next_obs):
        super().add(obs, action, reward, next_obs)
        for one in reward.tolist():
            self.memory.append(one)
            if len(self.memory) > CAPACITY:
                self.memory.pop(0)


class Bounded(Remembering):
    def add(self, obs, action, reward, next_obs):
        Ring.add(self, obs, action, reward, next_obs)
        self.memory.extend(reward.tolist())


options = arguments(env_calls=1000)
full = [0.0] * CAPACITY
ring = Bounded(deque(full, maxlen=CAPACITY)) if options.healthy else Remembering(full)
train(options.env_calls, ring=ring)
OUTCOME["memory"] = np.array(ring.memory)
