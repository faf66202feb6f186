"""Neighbors and degrees are asked of NetworkX at every env step. Remedy: lists, read from the graph once."""

import networkx as nx
import numpy as np
from training import Drift, arguments, train

graph = nx.grid_2d_graph(8, 8)


class Walk(Drift):
    def reset(self):
        self.node = (0, 0)
        return super().reset()

    def step(self, action):
        state, reward, terminated, truncated, info = super().step(action)
        for push in range(40):
            ways = self.ways(self.node)
            self.node = ways[(push + int(action[0])) % len(ways)]
            reward[0] += np.float32(0.01 * len(ways))
        return state, reward, terminated, truncated, info


class AskedWalk(Walk):
    def ways(self, node):
        return sorted(graph.neighbors(node), key=lambda other: -graph.degree(other))


class ReadWalk(Walk):
    lists = {node: sorted(graph.neighbors(node), key=lambda other: -graph.degree(other)) for node in graph}

    def ways(self, node):
        return self.lists[node]


options = arguments(env_calls=2000)
train(options.env_calls, env=ReadWalk(count=2) if options.healthy else AskedWalk(count=2))
