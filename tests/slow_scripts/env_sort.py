"""All cells are sorted to delete the left-most few. Remedy: a partial selection."""

import numpy as np
from training import Drift, arguments, train


class Colony(Drift):
    def reset(self):
        self.cells = [(float(x), index) for index, x in enumerate(self.rng.normal(size=2000))]
        self.places = np.array([x for x, _ in self.cells])
        return super().reset()

    def step(self, action):
        state, reward, terminated, truncated, info = super().step(action)
        reward[0] += 1e-4 * sum(self.leftmost(5))
        return state, reward, terminated, truncated, info


class SortedColony(Colony):
    def leftmost(self, k):
        return [index for _, index in sorted(self.cells, key=lambda cell: cell[0])[:k]]


class SelectedColony(Colony):
    def leftmost(self, k):
        return np.argpartition(self.places, k)[:k].tolist()


options = arguments(env_calls=3000)
train(options.env_calls, env=SelectedColony() if options.healthy else SortedColony())
