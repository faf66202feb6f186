"""The second plain program of networks wired by a graph, level by level, against the first, node by node."""

from __future__ import annotations

import networkx
import pytest
import torch
from torch.testing import assert_close

from benchmarks.topology import SIZES
from benchmarks.witnesses.topology import TopologyNetwork
from benchmarks.witnesses.topology_levels import LevelNetwork

DIAMOND = networkx.DiGraph([(0, 3), (1, 3), (3, 4), (0, 4), (3, 5), (4, 5), (1, 5)])
DIAMOND.add_node(2)  # no edge leads to it: its bias alone
SMALL_WORLD = SIZES[1].graph()
GRAPHS = {
    "diamond": (DIAMOND, [0, 1], [5, 2]),
    "small world": (networkx.DiGraph(list(SMALL_WORLD.edges())), SMALL_WORLD.inputs, SMALL_WORLD.outputs),
}


def pair(name: str, activation: str) -> tuple[TopologyNetwork, LevelNetwork]:
    graph, inputs, outputs = GRAPHS[name]
    one, other = TopologyNetwork(graph, inputs, outputs, activation), LevelNetwork(graph, inputs, outputs, activation)
    with torch.no_grad():
        other.weight.copy_(torch.stack([one.weights[f"{source}_to_{target}"] for source, target in other.edges]) * 5)
        other.bias.copy_(torch.stack([one.biases[str(node)] for node in other.nodes]))
        for parameter in one.weights.values():
            parameter.mul_(5)
    return one, other


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("activation", ["leaky_relu", "tanh"])
def test_both_have_the_same_outputs_and_gradients(name, activation):
    torch.manual_seed(0)
    one, other = pair(name, activation)
    obs = torch.randn(7, len(GRAPHS[name][1]))
    found = []
    for network in (one, other):
        out = network(obs)
        out.square().sum().backward()
        found.append(out.detach())
    assert_close(found[0], found[1])
    weights = torch.stack([one.weights[f"{source}_to_{target}"].grad for source, target in other.edges])
    biases = torch.stack([one.biases[str(node)].grad for node in other.nodes])
    assert_close(other.weight.grad, weights)
    assert_close(other.bias.grad, biases)


def test_a_level_is_as_wide_as_the_nodes_that_wait_for_the_same_one():
    """2 hangs on nothing and 3 on inputs alone: level 1; 4 waits for 3, 5 for 4."""
    _, other = pair("diamond", "tanh")
    assert other.widths == [2, 1, 1]
    _, deep = pair("small world", "tanh")
    assert len(deep.widths) + 1 == 31
