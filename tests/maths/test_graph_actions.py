"""The distribution over what graphs do: by eye, as its parts, and against Monte Carlo within its error."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, tensor
from torch.testing import assert_close

from hotloop.maths import distributions as d
from hotloop.maths.distributions import (
    GraphDistribution,
    graph_action_entropy,
    graph_action_kl,
    graph_action_log_prob,
    graph_distribution,
)

DRAWS = 100_000
NODE_GRAPH = tensor([0, 0, 0, 2])  # three graphs: three nodes, none, one
LOADED = math.log(3.0)  # logits (log 3, 0) are probabilities 3/4 and 1/4


def policy_of(node_logits: Tensor | None = None, mean: float = 0.0, log_std: float = 0.0) -> GraphDistribution:
    numbers = torch.zeros(3, 2)
    return graph_distribution(numbers + mean, numbers + log_std, node_logits, NODE_GRAPH, 3)


def loaded_coins() -> Tensor:
    return tensor([[LOADED, 0.0]]).expand(4, 2)


def random_policy(seed: int, nodes: int = 4) -> GraphDistribution:
    torch.manual_seed(seed)
    mean, log_std = torch.randn(3, 2, dtype=torch.float64), 0.4 * torch.randn(3, 2, dtype=torch.float64)
    return graph_distribution(mean, log_std, torch.randn(nodes, 2, dtype=torch.float64), NODE_GRAPH, 3)


def test_choices_count_by_their_mean_over_a_graphs_nodes():
    u = torch.zeros(3, 2)
    numbers = 2 * -0.5 * math.log(2 * math.pi)  # the slope of tanh at 0 is 1
    choices = tensor([0, 1, 1, 0])
    expected = [(math.log(0.75) + 2 * math.log(0.25)) / 3, 0.0, math.log(0.75)]
    assert_close(graph_action_log_prob(policy_of(loaded_coins()), u, choices), tensor(expected) + numbers)


def test_the_entropy_of_many_fair_coins_is_that_of_one_and_a_graph_without_nodes_has_none():
    with_coins, without = graph_action_entropy(policy_of(torch.zeros(4, 2))), graph_action_entropy(policy_of())
    assert_close(with_coins - without, tensor([math.log(2.0), 0.0, math.log(2.0)]))


def test_the_divergence_of_fair_coins_from_loaded_ones():
    divergence = graph_action_kl(policy_of(torch.zeros(4, 2)), policy_of(loaded_coins()))
    one = 0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25)
    assert_close(divergence, tensor([one, 0.0, one]))


def test_the_divergence_of_numbers_three_deviations_apart():
    assert_close(graph_action_kl(policy_of(), policy_of(mean=3.0)), torch.full((3,), 2 * 4.5))


def test_numbers_alone_are_a_squashed_normal():
    policy, u = random_policy(0)._replace(log_p=None), torch.randn(3, 2, dtype=torch.float64)
    assert_close(graph_action_log_prob(policy, u), d.squashed_log_prob(policy.mean, policy.log_std, u))
    assert_close(graph_action_entropy(policy), d.squashed_entropy(policy.mean, policy.log_std))


def test_only_numbers_that_count_enter():
    old, new, u = random_policy(0), random_policy(1), torch.randn(3, 2, dtype=torch.float64)
    choices, counts = tensor([0, 1, 0, 1]), tensor([[True, False], [False, False], [True, True]])
    cases = [
        (graph_action_log_prob(old, u, choices, counts), graph_action_log_prob(old, u, choices)),
        (graph_action_entropy(old, counts), graph_action_entropy(old)),
        (graph_action_kl(old, new, counts), graph_action_kl(old, new)),
    ]
    for counted, full in cases:
        assert_close(counted[2], full[2])
        assert counted[1] == 0.0  # no node either
        assert counted[0] != full[0]
    first = tensor([[True, False]]).expand(3, 2)
    alone = d.squashed_log_prob(old.mean[:, :1], old.log_std[:, :1], u[:, :1])
    assert_close(graph_action_log_prob(old._replace(log_p=None), u, None, first), alone)


def test_a_number_that_does_not_count_has_no_gradient():
    policy = random_policy(0)
    mean = policy.mean.clone().requires_grad_()
    counts = tensor([[True, False]]).expand(3, 2)
    graph_action_log_prob(
        policy._replace(mean=mean), torch.ones(3, 2).double(), tensor([0, 1, 0, 1]), counts
    ).sum().backward()
    assert mean.grad is not None
    assert mean.grad[:, 0].all()
    assert not mean.grad[:, 1].any()


def test_the_ratio_of_a_policy_to_itself_is_exactly_one():
    policy, again = random_policy(3), random_policy(3)
    u, choices = torch.randn(3, 2, dtype=torch.float64), tensor([1, 1, 0, 0])
    ratio = (graph_action_log_prob(again, u, choices) - graph_action_log_prob(policy, u, choices)).exp()
    assert ratio.tolist() == [1.0, 1.0, 1.0]
    assert graph_action_kl(policy, again).tolist() == pytest.approx([0.0, 0.0, 0.0], abs=1e-15)


def repeated(policy: GraphDistribution, graph: int) -> GraphDistribution:
    """DRAWS copies of one graph."""
    rows = (policy.node_graph == graph).nonzero().squeeze(1)
    assert policy.log_p is not None
    return GraphDistribution(
        policy.mean[graph].expand(DRAWS, -1),
        policy.log_std[graph].expand(DRAWS, -1),
        policy.log_p[rows].repeat(DRAWS, 1),
        torch.arange(DRAWS).repeat_interleave(len(rows)),
        DRAWS,
    )


def within_error(samples: Tensor, value: float) -> bool:
    """Whether the samples' mean is within five standard errors of `value`."""
    return abs(samples.mean().item() - value) < 5.0 * samples.std().item() / math.sqrt(len(samples)) + 1e-6


@pytest.mark.parametrize("graph", [0, 1, 2])
def test_entropy_and_divergence_are_within_monte_carlos_error(graph):
    old, new = random_policy(4), random_policy(5)
    many_old, many_new = repeated(old, graph), repeated(new, graph)
    torch.manual_seed(6)
    u = many_old.mean + many_old.log_std.exp() * torch.randn(DRAWS, 2, dtype=torch.float64)
    choices = (torch.rand(len(many_old.log_p)) < many_old.log_p[:, 1].exp()).long()
    log_p, log_q = graph_action_log_prob(many_old, u, choices), graph_action_log_prob(many_new, u, choices)
    assert within_error(-log_p, graph_action_entropy(old)[graph].item())
    assert within_error(log_p - log_q, graph_action_kl(old, new)[graph].item())
