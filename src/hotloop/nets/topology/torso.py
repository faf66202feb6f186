"""A graph as a Q-network: its output nodes are the Q-values, with no linear layer after them."""

from __future__ import annotations

from torch import Tensor, nn

from hotloop.nets.heads import dueling_q
from hotloop.nets.settings import NetworkSettings
from hotloop.nets.topology.generators import dense, dense_small_world, small_world
from hotloop.nets.topology.graph import Topology
from hotloop.nets.topology.network import TopologyNetwork
from hotloop.nets.torsos import as_vector


class TopologyTorso(nn.Module):
    """Any observation, flattened, at the input nodes of a generated graph."""

    def __init__(self, settings: NetworkSettings, num_in: int, num_out: int) -> None:
        super().__init__()
        topology = settings.topology
        self.network = TopologyNetwork(
            generate(settings, num_in, num_out),
            activation=topology.activation,
            activate_outputs=topology.activate_outputs,
            learn_biases=topology.learn_biases,
        )

    def forward(self, obs: Tensor | dict[str, Tensor]) -> Tensor:
        return self.network(as_vector(obs))


class OutputNodes(nn.Module):
    """Nodes [B, A x Z] as Q [B, A] or logits [B, A, Z]; dueling: the Z nodes of the state's value come first."""

    def __init__(self, num_actions: int, atoms: int, dueling: bool) -> None:
        super().__init__()
        self.shape = (num_actions, atoms)
        self.dueling = dueling
        self.num_in = num_actions * atoms + (atoms if dueling else 0)

    def forward(self, nodes: Tensor) -> Tensor:
        atoms = self.shape[1]
        if self.dueling:
            q = dueling_q(nodes[..., :atoms].unsqueeze(-2), nodes[..., atoms:].unflatten(-1, self.shape))
        else:
            q = nodes.unflatten(-1, self.shape)
        return q if atoms > 1 else q.squeeze(-1)


def generate(settings: NetworkSettings, num_in: int, num_out: int) -> Topology:
    """The graph of the settings between so many inputs and outputs."""
    topology = settings.topology
    if topology.generator == "small_world":
        shape = (topology.hidden, num_out, topology.ring_degree)
        return small_world(num_in, *shape, topology.rewiring, topology.graph_seed)
    if topology.generator == "dense":
        return dense(num_in, settings.hidden, num_out)
    return dense_small_world(num_in, settings.hidden, num_out, topology.rewiring, topology.graph_seed)
