"""A network wired by a graph, its weights looked up by name, its edges asked of NetworkX. Remedy: TopologyNetwork."""

import networkx as nx
import torch
from torch import nn
from training import Learner, arguments, train

from hotloop.nets import TopologyNetwork

HIDDEN = range(4, 24)
graph = nx.DiGraph([(source, target) for target in HIDDEN for source in range(max(0, target - 4), target)])
graph.add_edges_from([(source, target) for target in (24, 25) for source in range(18, 24)])


class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.order = list(nx.topological_sort(graph))
        self.weights = nn.ParameterDict({f"{a}_to_{b}": nn.Parameter(torch.randn(()) * 0.1) for a, b in graph.edges})
        self.biases = nn.ParameterDict({str(node): nn.Parameter(torch.zeros(())) for node in self.order[4:]})

    def forward(self, x):
        values = {node: x[:, node] for node in range(4)}
        for node in self.order:
            if node in values:
                continue
            total = self.biases[str(node)].expand(len(x))
            for source in graph.predecessors(node):
                total = total + values[source] * self.weights[f"{source}_to_{node}"]
            values[node] = torch.nn.functional.leaky_relu(total, 0.1)
        return torch.stack([values[24], values[25]], dim=1)


options = arguments(env_calls=150)
net = named = Named()
if options.healthy:
    net = TopologyNetwork(graph, inputs=range(4), outputs=[24, 25])
    net.load_named(named.state_dict())
train(options.env_calls, learner=Learner(net), updates_every=2)
