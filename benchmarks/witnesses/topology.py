"""A network wired by a NetworkX graph: a scalar parameter per edge and per node, activations in a dictionary."""

import copy

import networkx as nx
import torch
import torch.nn as nn
import torch.nn.functional as F


class TopologyNetwork(nn.Module):
    def __init__(self, topology, inputs, outputs, activation="leaky_relu", activate_outputs=True):
        super().__init__()
        self.topology = topology
        self.inputs, self.outputs = list(inputs), sorted(outputs)
        self.activation, self.activate_outputs = activation, activate_outputs
        self.order = list(nx.topological_sort(topology))
        self.weights = nn.ParameterDict(
            {f"{source}_to_{target}": nn.Parameter(torch.randn(()) * 0.1) for source, target in topology.edges}
        )
        self.biases = nn.ParameterDict(
            {str(node): nn.Parameter(torch.randn(()) * 0.1) for node in self.order if node not in self.inputs}
        )

    def forward(self, x):
        activations = {}
        for i, node in enumerate(self.inputs):
            activations[node] = x[:, i]
        for node in self.order:
            if node in activations:
                continue
            total = torch.full((x.shape[0],), 0.0) + self.biases[str(node)]
            for neighbor in self.topology.predecessors(node):
                total = total + activations[neighbor] * self.weights[f"{neighbor}_to_{node}"]
            activations[node] = self.activate(node, total)
        return torch.stack([activations[node] for node in self.outputs], dim=1)

    def activate(self, node, total):
        if node in self.outputs and not self.activate_outputs:
            return total
        return torch.tanh(total) if self.activation == "tanh" else F.leaky_relu(total, 0.1)


class TopologyAgent:
    """DQN as usual: a target network, mean squared error, Adam."""

    def __init__(self, network, lr=1e-3, gamma=0.99, target_every=500):
        self.online = network
        self.target = copy.deepcopy(network)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=lr)
        self.gamma, self.target_every = gamma, target_every
        self.updates = 0

    def update(self, obs, action, reward, next_obs, done):
        with torch.no_grad():
            next_q = self.target(next_obs).max(dim=1)[0]
            target = reward + self.gamma * next_q * (1 - done)
        q = self.online(obs).gather(1, action.unsqueeze(1)).squeeze(1)
        loss = F.mse_loss(q, target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.updates += 1
        if self.updates % self.target_every == 0:
            self.target.load_state_dict(self.online.state_dict())
        return loss.item()
