"""The network over graphs: against one graph and one node at a time, alone and in batches, under permutations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from hotloop.core.errors import SettingsError
from hotloop.core.graphs import Graphs, GraphSpec
from hotloop.nets.graphs.attention import to_tensors
from hotloop.nets.graphs.network import GraphOutcome, build_graph_actor_critic
from hotloop.presets.network_settings import GraphNetworkSettings
from tests.oracles.graph_attention_oracle import outcome_of_one_graph

SPEC = GraphSpec(node_features=5, edge_features=3, graph_features=4)
SMALL = GraphNetworkSettings(width=16, heads=2, layers=2, feed_forward=12, groups=4)
NUMBERS, VALUES = 3, 2


def made(settings=SMALL, per_node=True, seed=0, fused=None, log_std=-0.5):
    return build_graph_actor_critic(settings, SPEC, NUMBERS, VALUES, per_node, log_std, seed, fused)


def lively(**options):
    """Heads that start near zero would hide mistakes below them."""
    network = made(**options)
    with torch.no_grad():
        for head in (network.actor[-1], network.node_head):
            if head is not None:
                torch.manual_seed(5)
                head.weight.normal_()
    return network


def random_graphs(sizes, seed=0):
    random = np.random.default_rng(seed)
    pairs = [[(u, v) for u in range(n) for v in range(n) if u != v and random.random() < 0.4] for n in sizes]
    edges = np.array([pair for some in pairs for pair in some], np.int32).reshape(-1, 2)

    def normal(rows, columns):
        return random.normal(size=(rows, columns)).astype(np.float32)

    return Graphs(
        nodes=normal(sum(sizes), SPEC.node_features),
        edges=edges,
        edge_features=normal(len(edges), SPEC.edge_features),
        graph=normal(len(sizes), SPEC.graph_features),
        node_offsets=np.cumsum([0, *sizes]),
        edge_offsets=np.cumsum([0, *map(len, pairs)]),
    )


def outcome(network, graphs) -> GraphOutcome:
    with torch.no_grad():
        return network(to_tensors(graphs))


@pytest.mark.parametrize("fused", [False, True])
def test_outputs_are_those_of_one_graph_and_one_node_at_a_time(fused):
    network, graphs = lively(fused=fused), random_graphs([3, 0, 1, 6])
    got, first = outcome(network, graphs), 0
    for g in range(len(graphs)):
        one = graphs[[g]]
        mean, log_std, value, logits = outcome_of_one_graph(
            network.state_dict(), SMALL.heads, SMALL.groups, one.nodes, one.edges, one.edge_features, one.graph[0]
        )
        for ours, expected in zip(got[:3], (mean, log_std, value), strict=True):
            assert_close(ours[g].double(), torch.from_numpy(expected), rtol=1e-4, atol=1e-5)
        for node, expected in enumerate(logits):
            assert_close(got.node_logits[first + node].double(), torch.from_numpy(expected), rtol=1e-4, atol=1e-5)
        first += len(one.nodes)


def test_a_graph_means_the_same_alone_and_in_a_batch():
    network, graphs = lively(), random_graphs([4, 1, 0, 7])
    together = outcome(network, graphs)
    alone = [outcome(network, graphs[[g]]) for g in range(len(graphs))]
    for place, all_of_them in enumerate(together):
        assert_close(all_of_them, torch.cat([one[place] for one in alone]), rtol=1e-4, atol=1e-5)


def test_renaming_the_nodes_moves_their_logits_and_leaves_the_rest():
    network, graphs = lively(), random_graphs([6])
    order = np.array([3, 0, 5, 1, 4, 2])  # new place -> old place
    renamed = graphs.copy()
    renamed.nodes, renamed.edges = graphs.nodes[order], np.argsort(order)[graphs.edges].astype(np.int32)
    before, after = outcome(network, graphs), outcome(network, renamed)
    for place in range(3):
        assert_close(after[place], before[place], rtol=1e-4, atol=1e-5)
    assert_close(after.node_logits, before.node_logits[order], rtol=1e-4, atol=1e-5)


def test_turning_an_edge_round_is_another_graph():
    network, graphs = lively(), random_graphs([4])
    turned = graphs.copy()
    turned.edges = np.ascontiguousarray(graphs.edges[:, ::-1])
    assert (outcome(network, turned).value - outcome(network, graphs).value).abs().max() > 1e-4


@pytest.mark.parametrize("sizes", [[0], [0, 0], [1], [1, 0]])
def test_empty_and_single_node_graphs_have_finite_outputs_and_gradients(sizes):
    network = lively()
    answer = network(to_tensors(random_graphs(sizes)))
    assert answer.mean.shape == (len(sizes), NUMBERS)
    assert answer.node_logits.shape == (sum(sizes), 2)
    sum(part.square().sum() for part in answer).backward()
    assert all(parameter.grad.isfinite().all() for parameter in network.parameters() if parameter.grad is not None)


def test_machine_code_has_the_gradients_of_torch_operations_in_every_parameter():
    graphs = random_graphs([5, 2, 0, 9, 1])
    gradients = []
    for fused in (False, True):
        network = lively(settings=GraphNetworkSettings(), fused=fused)
        answer = network(to_tensors(graphs))
        sum(part.square().sum() for part in answer).backward()
        gradients.append({name: parameter.grad for name, parameter in network.named_parameters()})
    for name, gradient in gradients[0].items():
        largest = max(gradient.abs().max().item(), 1e-3)
        assert_close(gradients[1][name], gradient, rtol=1e-3, atol=1e-4 * largest, msg=name)


def test_without_choices_there_are_no_logits_and_no_head_for_them():
    network = made(per_node=False)
    assert outcome(network, random_graphs([3])).node_logits is None
    assert not [name for name, _ in network.named_parameters() if name.startswith("node_head")]


def test_a_policy_starts_near_the_middle_with_the_deviation_asked_for_and_values_do_not_start_at_zero():
    answer = outcome(made(settings=GraphNetworkSettings(), log_std=-0.7), random_graphs([5] * 20))
    assert answer.mean.abs().max() < 0.05
    assert_close(answer.log_std, torch.full((20, NUMBERS), -0.7), rtol=0.0, atol=0.05)
    assert answer.node_logits.abs().max() < 0.05
    assert answer.value.abs().max() > 0.02


@pytest.mark.parametrize(("bias", "bounded"), [(-9.0, -5.0), (4.0, 1.0)])
def test_deviations_stay_within_their_bounds(bias, bounded):
    assert outcome(made(log_std=bias), random_graphs([2])).log_std.tolist() == [[bounded] * NUMBERS]


def test_the_seed_alone_decides_the_start_and_torchs_own_generator_is_left_alone():
    before = torch.random.get_rng_state()
    one, same, other = (torch.nn.utils.parameters_to_vector(made(seed=seed).parameters()) for seed in (3, 3, 4))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_parameters_have_the_names_and_order_that_references_copy_them_by():
    names = [name.partition(".")[0] for name, _ in made().named_parameters()]
    assert list(dict.fromkeys(names)) == [
        "token_links",  # a module's own parameters come before its children's
        *["token_embedding", "node_embedding", "edge_embedding", "layers", "final_norm", "simplices"],
        *["actor", "node_head", "critic"],
    ]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"width": 130}, "no multiple of `heads`"),
        ({"groups": 3}, "no multiple of `groups`"),
        ({"groups": 128}, "expected at most 64"),
        ({"layers": 0}, "at least 1"),
    ],
)
def test_settings_that_make_no_network_are_refused(wrong, says):
    with pytest.raises(SettingsError, match=says):
        GraphNetworkSettings(**wrong)
