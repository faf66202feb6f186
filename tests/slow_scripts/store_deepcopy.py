"""The env's whole state is deep-copied at every env step. Remedy: the arrays in it are copied."""

import copy

import numpy as np
from training import OUTCOME, Drift, arguments, train


def as_table(world):
    return np.array([[*one["place"], one["age"], *one["links"]] for one in world.values()])


class World(Drift):
    def reset(self):
        self.world = {f"cell {i}": {"place": [0.0, float(i)], "age": 0, "links": [1, 2, 3]} for i in range(20)}
        self.table = as_table(self.world)
        return super().reset()

    def step(self, action):
        self.before = self.keep()
        return super().step(action)


class DeepWorld(World):
    def keep(self):
        return copy.deepcopy(self.world)


class FlatWorld(World):
    def keep(self):
        return self.table.copy()


options = arguments(env_calls=4000)
env = FlatWorld(count=8) if options.healthy else DeepWorld(count=8)
train(options.env_calls, env=env)
OUTCOME["before"] = env.before if options.healthy else as_table(env.before)
