"""The shortest way is looked for among all simple paths. Remedy: Dijkstra, once per graph."""

import networkx as nx
import numpy as np
from training import Drift, arguments, train

NODES = 6
rng = np.random.default_rng(4)
graph = nx.complete_graph(NODES)
nx.set_edge_attributes(graph, {edge: {"km": float(rng.integers(100, 1000))} for edge in graph.edges})


def length(path):
    return sum(graph.edges[a, b]["km"] for a, b in zip(path, path[1:], strict=False))


def enumerated(source, target):
    best = float("inf")
    for path in nx.all_simple_paths(graph, source, target):
        best = min(best, length(path))
    return best


class Routes(Drift):
    def step(self, action):
        state, reward, terminated, truncated, info = super().step(action)
        source = int(abs(state[0, 2]) * 7) % NODES
        delay = self.shortest(source, (source + 2) % NODES)
        return state, reward - np.float32(1e-4 * delay), terminated, truncated, info


options = arguments(env_calls=800)
kilometres = dict(nx.all_pairs_dijkstra_path_length(graph, weight="km"))
Routes.shortest = staticmethod((lambda a, b: kilometres[a][b]) if options.healthy else enumerated)
train(options.env_calls, env=Routes())
