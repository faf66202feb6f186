"""The plain durotaxis program by eye: a field of 100 x 100 (margin 2), substrates with round numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from benchmarks.witnesses import durotaxis_network, durotaxis_ppo
from benchmarks.witnesses.durotaxis_env import Colony, convex_hull
from benchmarks.witnesses.durotaxis_network import GraphActorCritic, Outputs, to_tensors
from benchmarks.witnesses.durotaxis_ppo import Agent, Config, compute_gae

CONSTANT = ("linear", 0.0, 2.0)
"""Intensity 2 everywhere: with gamma 5, alpha 2 and noise 0.5 a child is 5 / (1 + 1) + 0.5 = 3 away."""
SLOPE = ("linear", 1.0, 1.0)
"""Intensity x + 1."""
CHAIN = [(10, 50), (20, 50), (30, 50)]
CHAIN_EDGES = [(0, 1), (1, 2)]


def act(ratio: float = 0.0, theta: float = 0.0) -> list[float]:
    return [ratio, 5.0, 2.0, 0.5, theta]


def colony(xy=CHAIN, edges=CHAIN_EDGES, ages=None, substrate=CONSTANT, options=None, **progress) -> Colony:
    made = Colony({"width": 100.0, "height": 100.0} | (options or {}))
    made.load(xy, edges, [0] * len(xy) if ages is None else ages, substrate, **progress)
    return made


def per_node(**arguments) -> Colony:
    options = {"action": "per_node"} | arguments.pop("options", {})
    return colony(options=options, **arguments)


def xs(env: Colony) -> list[float]:
    return [node.x for node in env.nodes]


def edges_of(observation) -> list[tuple[int, int]]:
    return [tuple(edge) for edge in observation["edges"].tolist()]


def test_a_colony_starts_in_the_left_tenth_as_a_chain_ordered_by_x():
    tape: Iterator[float] = iter([0.5, 0.0, 0.1, 0.5, 0.9, 0.999])
    observation = Colony({"start_nodes": 3}).reset(lambda: next(tape))
    assert_allclose(observation["nodes"][:, 0] * 600, [30, 6, 54])
    assert_allclose(observation["nodes"][:, 1] * 400, [160, 200, 160 + 80 * 0.999])
    assert edges_of(observation) == [(0, 2), (1, 0)]  # 6 -> 30 -> 54


def test_a_random_substrate_draws_kind_m_and_b_before_the_nodes():
    env = Colony({"substrate": "random", "start_nodes": 1})
    env.reset(iter([0.4, 0.5, 0.5, 0, 0]).__next__)
    assert env.substrate == ("linear", pytest.approx(0.055), pytest.approx(1.25))
    env.reset(iter([0.5, 0.5, 0.5, 0, 0]).__next__)
    assert env.substrate == ("exponential", pytest.approx(0.006), pytest.approx(1.0))


def test_every_node_of_a_chain_of_three_spawns_to_the_right():
    env = colony()
    observation, *_ = env.step(act())
    assert xs(env) == [10, 20, 30, 13, 23, 33]
    assert edges_of(observation) == [(0, 1), (0, 3), (1, 2), (1, 4), (2, 5)]
    assert [node.age for node in env.nodes] == [1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize(("alpha", "length"), [(1.0, 10.0), (2.0, 4.0), (3.0, 2.0)])
def test_the_step_length_is_a_hill_function_of_the_parents_intensity(alpha, length):
    env = colony(xy=[(50, 50)], edges=[], substrate=("exponential", 0.0, 1.0))  # 20 / 2, 20 / 5, 20 / 10 ...
    child = env.spawn(env.nodes[0], 20.0, alpha, 0.0, 0.0)
    assert child.x == 50 + length


def test_theta_is_in_degrees_and_children_stay_within_the_margin():
    env = colony(xy=[(50, 50), (97, 97)], edges=[])
    env.step(act(theta=30))
    assert (env.nodes[2].x, env.nodes[2].y) == (pytest.approx(50 + 3 * math.sqrt(3) / 2), pytest.approx(51.5))
    assert (env.nodes[3].x, env.nodes[3].y) == (98, 98)


def test_a_deleted_node_joins_its_neighbors():
    env = per_node()
    observation, *_ = env.step((act()[1:], [0, 1, 0]))
    assert xs(env) == [10, 30, 13, 33]
    assert edges_of(observation) == [(0, 1), (0, 2), (1, 3)]


def test_deleting_a_run_of_nodes_joins_what_is_left_of_it_with_what_is_right():
    env = per_node(xy=[(10, 50), (20, 50), (30, 50), (40, 50), (40, 60)], edges=[(0, 1), (1, 2), (2, 3), (2, 4)])
    observation, *_ = env.step((act()[1:], [0, 1, 1, 0, 0]))
    assert edges_of(observation) == [(0, 1), (0, 2), (0, 3), (1, 4), (2, 5)]


def test_the_share_of_the_left_most_is_rounded_down_and_the_older_goes_first():
    env = colony(xy=[(30, 50), (10, 10), (10, 20), (10, 30)], edges=[])
    env.step(act(0.7))  # 2.8
    assert [(node.x, node.y) for node in env.nodes[:2]] == [(30, 50), (10, 30)]


def test_a_ratio_is_float32_and_held_to_its_bound():
    env = colony(xy=[(x, 50) for x in range(10, 20)], edges=[])
    assert len(env.read_action(act(np.float32(0.7)))[0]) == 6  # 0.69999999 * 10
    assert len(env.read_action(act(0.9))[0]) == 7
    assert len(env.read_action(act(-1.0))[0]) == 0


def test_only_the_ratio_counts_while_the_curriculum_lasts():
    env = colony(options={"curriculum_steps": 2})
    assert env.action_mask().tolist() == [True, False, False, False, False]
    env.step([0.0, 15.0, 4.0, 0.05, 30.0])
    assert xs(env)[3:] == [13, 23, 33]
    env.step(act())
    assert env.action_mask().all()


def test_the_features_of_a_chain_of_two():
    env = colony(xy=[(10, 20), (40, 60)], edges=[(0, 1)], ages=[0, 11])  # 50 apart
    observation = env.observe()
    log2, log3 = math.log(2) / 6, math.log(3) / 6
    first = [0.1, 0.2, log3, 0, log2, 2.0, 0.25, 1, 1, 0, 0]  # centrality 100 / 50
    second = [0.4, 0.6, log3, log2, 0, 2.0, 0.25, 1, 0, 0.11, 0.2]
    assert_allclose(observation["nodes"], [first, second], atol=1e-7)
    assert_allclose(observation["edge_features"], [[0.5, 0.6, 0.8]])
    box = [0.1, 0.2, 0.4, 0.6, 0.3, 0.4, 0.12, 0.0]
    degrees = [log2, log2, log3]  # mean 1, max 1, sum 2
    intensities = [log3, log3, math.log(5) / 6]
    assert_allclose(observation["graph"], [log3, log2, 0.5, 0.25, 0.4, *box, *degrees, *intensities])


def test_centrality_is_capped_and_a_node_alone_has_the_cap():
    assert colony(xy=[(50, 50)], edges=[]).observe()["nodes"][0, 5] == 10
    assert colony(xy=[(50, 50), (50, 50)], edges=[(0, 1)]).observe()["nodes"][0, 5] == 10


def test_an_edge_without_length_has_no_direction():
    observation = colony(xy=[(50, 50), (50, 50)], edges=[(0, 1)]).observe()
    assert observation["edge_features"].tolist() == [[0, 0, 0]]


def test_an_empty_colony_is_all_zeros():
    observation = colony(xy=[], edges=[]).observe()
    assert observation["nodes"].shape == (0, 11)
    assert observation["edges"].shape == (0, 2)
    assert observation["edge_features"].shape == (0, 3)
    assert observation["graph"].tolist() == [0] * 19


@pytest.mark.parametrize(
    ("points", "members", "area"),
    [
        ([(0, 0), (4, 0), (4, 4), (0, 4), (2, 2)], [0, 1, 2, 3], 16),  # one inside
        ([(0, 0), (2, 0), (4, 0), (0, 4)], [0, 2, 3], 8),  # one within an edge
        ([(0, 0), (4, 0), (0, 4), (0, 0)], [0, 1, 2], 8),  # the younger of two in one place
        ([(0, 0), (1, 1), (2, 2), (2, 2)], [0, 1, 2, 3], 0),
        ([(1, 1), (1, 1), (1, 1)], [0, 1, 2], 0),
        ([(1, 1)], [0], 0),
        ([], [], 0),
    ],
)
def test_the_hull_has_corners_only_unless_there_is_no_area(points, members, area):
    found, size = convex_hull(points, 1e-9)
    assert sorted(found) == members
    assert size == area


def rewards_after(env: Colony, action=None):
    return env.step(act() if action is None else action)[1]


def test_the_record_has_fourteen_entries():
    names = "total graph spawn delete deletion_efficiency edge centroid milestone node_rewards total_node survival"
    rest = "empty_graph_recovery_penalty termination num_nodes"
    assert set(rewards_after(colony())) == {*names.split(), *rest.split()}


def test_the_graph_reward_adds_up():
    rewards = rewards_after(colony())  # 3 -> 6 nodes, mean x 20 -> 21.5
    assert rewards["centroid"] == 7.5
    assert rewards["spawn"] == -3
    assert rewards["edge"] == 2.5
    assert rewards["graph"] == pytest.approx(0.1 + 7.5 - 3 + 2.5)
    assert rewards["num_nodes"] == 6


@pytest.mark.parametrize(("nodes", "population"), [(1, 0.1), (25, 0.1), (26, -3.12), (50, -6.0)])
def test_a_population_after_the_step_above_fifty_costs(nodes, population):
    env = colony(xy=[(10 + 0.1 * i, 50) for i in range(nodes)], edges=[])
    env.step(act())
    assert env.population_reward() == pytest.approx(population)  # 2, 50, 52 and 100 nodes


def test_a_single_node_is_too_few():
    assert colony(xy=[(50, 50)], edges=[]).population_reward() == -5


@pytest.mark.parametrize(("noise", "reward"), [(0.5, 2.5), (0.25, -1.0)])
def test_a_child_on_ground_stiffer_by_two_and_a_half_is_rewarded(noise, reward):
    env = colony(xy=[(0, 50)], edges=[], substrate=SLOPE)  # 10 / (1 + 4) + noise
    assert rewards_after(env, [0.0, 10.0, 2.0, noise, 0.0])["spawn"] == reward


@pytest.mark.parametrize(("choices", "reward"), [([1, 0, 0], 2), ([0, 0, 0], -2), ([0, 1, 0], -4), ([1, 0, 1], 0)])
def test_marked_nodes_should_go_and_no_others(choices, reward):
    env = per_node(ages=[3, 2, 9], substrate=SLOPE)  # mean intensity 21: only the first is old enough and below
    assert rewards_after(env, (act()[1:], choices))["delete"] == reward


@pytest.mark.parametrize(("age", "reward"), [(21, 0.0), (31, 1.0), (50, 2.9), (61, 0.55 + 4.0)])
def test_deleting_old_nodes_is_efficient(age, reward):
    env = per_node(ages=[age, 0, 0])  # stagnation is age - 1; 0.1 for each beyond 20, 0.05 for each step beyond 50
    assert rewards_after(env, (act()[1:], [1, 0, 0]))["deletion_efficiency"] == pytest.approx(reward)


def test_edges_to_the_right_are_rewarded_and_those_to_the_left_cost():
    env = colony(xy=[(10, 50), (20, 50), (20, 60)], edges=[(0, 1), (1, 2), (2, 0)])
    assert env.edge_reward() == pytest.approx(0.5 + 0.0 - 0.05)


@pytest.mark.parametrize(
    ("y", "zone"), [(50, 0), (15, 0), (14.9, 0.5), (92.1, 2), (8, 0.5), (7.9, 2), (2.9, 5), (97.5, 5)]
)
def test_only_the_innermost_zone_counts(y, zone):
    env = colony(xy=[(50, y)], edges=[])
    assert env.node_reward(env.nodes[0]) == pytest.approx(0.6 + 0.1 - zone)


def test_a_node_is_rewarded_for_stiff_ground_up_to_a_hundred_and_not_in_the_left_tenth():
    env = colony(xy=[(9.9, 50), (50, 50)], edges=[], substrate=("linear", 10.0, 1.0))
    assert [env.node_reward(node) for node in env.nodes] == pytest.approx([30 + 0.1 - 0.2, 30 + 0.1])


def test_survival_pays_more_from_step_a_hundred_on():
    assert rewards_after(colony(step=98))["survival"] == 0.01
    assert rewards_after(colony(step=99))["survival"] == 0.03


def test_milestones_fire_once_and_several_at_a_time():
    env = colony(xy=[(48, 50)], edges=[])
    assert rewards_after(env)["milestone"] == 200  # 25 and 50 % at once
    assert rewards_after(env)["milestone"] == 0
    assert env.milestones == [True, True, False, False]


def test_the_full_total_is_the_sum_of_its_parts():
    rewards = rewards_after(colony(options={"reward": "full"}))
    nodes = 6 * 0.6 + 6 * 0.1  # on a line: all in the hull
    assert rewards["total_node"] == pytest.approx(nodes)
    assert rewards["total"] == pytest.approx(7.1 + nodes + 0.01 + 50)


def test_the_default_total_is_how_far_the_centroid_came_but_not_in_the_first_step():
    env = colony()
    assert rewards_after(env)["total"] == 0
    assert rewards_after(env)["total"] == pytest.approx(5 * 1.5 / 99)


def test_the_simple_total_is_deletion_and_too_many_or_too_few():
    env = per_node(ages=[3, 2, 9], substrate=SLOPE, options={"reward": "simple_delete_only"})
    assert rewards_after(env, (act()[1:], [1, 0, 0]))["total"] == 2  # a good population adds nothing
    env = per_node(options={"reward": "simple_delete_only"})
    assert rewards_after(env, (act()[1:], [1, 1, 1]))["total"] == -5 - 6 - 2


def ending(env: Colony, action=None):
    _, rewards, terminated, truncated, info = env.step(act() if action is None else action)
    return info["reason"], rewards["termination"], rewards["total"], terminated, truncated


def test_too_many_nodes_end_the_episode():
    assert ending(colony(options={"max_nodes": 5})) == ("too_many_nodes", -15, -0.3, True, False)
    assert ending(colony(options={"max_nodes": 6}))[0] is None


def test_an_empty_colony_ends_the_episode():
    assert ending(per_node(), (act()[1:], [1, 1, 1])) == ("no_nodes", -100, -2, True, False)


def test_a_node_outside_ends_the_episode():
    assert ending(colony(xy=[(-1, 50), (50, 50)], edges=[])) == ("out_of_bounds", -100, -2, True, False)


def test_thirty_steps_to_the_left_in_a_row_end_the_episode():
    away = {"xy": [(10, 50), (90, 50)], "edges": [], "step": 40}
    reason, termination, total, *_ = ending(per_node(drift=29, **away), (act()[1:], [0, 1]))
    assert (reason, termination) == ("leftward_drift", -50)
    assert total == pytest.approx(5 * (11.5 - 50) / 99 - 1)
    env = per_node(drift=28, **away)
    assert ending(env, (act()[1:], [0, 1]))[0] is None
    assert env.drift == 29
    env.step((act()[1:], [0, 0]))  # to the right again
    assert env.drift == 0


def test_the_right_end_is_success():
    assert ending(colony(xy=[(92, 50)], edges=[])) == ("success", 500, 10, True, False)  # 95 of 100
    assert ending(colony(xy=[(91.9, 50)], edges=[]))[0] is None


def test_endings_are_looked_for_in_their_order():
    both = colony(xy=[(92, 50), (-1, 50)], edges=[], options={"max_nodes": 3})
    assert ending(both)[0] == "too_many_nodes"
    assert ending(colony(xy=[(92, 50), (-1, 50)], edges=[]))[0] == "out_of_bounds"
    assert ending(colony(xy=[(92, 50)], edges=[], step=999))[3:] == (True, False)


def test_the_time_limit_truncates():
    assert ending(colony(options={"max_steps": 8}, step=7)) == ("time_out", 0, pytest.approx(7.5 / 99), False, True)
    assert ending(colony(options={"max_steps": 8}, step=6))[0] is None


def test_an_empty_colony_recovers_twice_on_a_circle():
    env = per_node(options={"recovery": True, "start_nodes": 4, "reward": "full"}, xy=[(50, 50), (50, 50)], edges=[])
    observation, rewards, terminated, _, _ = env.step((act()[1:], [1, 1]))
    assert not terminated
    assert rewards["empty_graph_recovery_penalty"] == -50
    assert rewards["total"] == pytest.approx(-5 - 4 + 0.01 - 50)  # few nodes, two deleted, one more step, recovered
    assert [(round(node.x, 9), round(node.y, 9), node.age) for node in env.nodes] == [
        (60, 50, 0), (50, 60, 0), (40, 50, 0), (50, 40, 0),
    ]  # fmt: skip
    assert len(edges_of(observation)) == 3
    assert ending(env, (act()[1:], [1] * 4))[0] is None
    assert ending(env, (act()[1:], [1] * 4))[0] == "no_nodes"


def test_advantages_by_hand():
    # gamma 0.5, lambda 0.5; the second step terminates, the fourth is truncated where a value of 4 was left
    advantages, returns = compute_gae(
        [1, 1, 1, 1, 1], [1, 2, 1, 2, 1], 2, [0, 0, 0, 4, 0], [0, 1, 0, 0, 0], [0, 0, 0, 1, 0], 0.5, 0.5
    )
    # deltas: 1+1-1, 1-2, 1+1-1, 1+2-2, 1+1-1
    assert advantages == [1 - 0.25, -1, 1 + 0.25, 1, 1]
    assert returns == [1.75, 1, 2.25, 3, 2]


def policy(mean, log_std, logits=None) -> Outputs:
    values = torch.zeros(6)
    return Outputs(torch.tensor(mean), torch.tensor(log_std), values, None if logits is None else torch.tensor(logits))


ALL = torch.tensor([True, True])
HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def test_the_log_probability_by_hand():
    u = torch.tensor([0.0, 1.0])
    slope = math.log(1 - math.tanh(1.0) ** 2)
    numbers = -2 * HALF_LOG_TWO_PI - 0.5 - slope
    two = policy([0.0, 0.0], [0.0, 0.0])
    assert_close(durotaxis_ppo.log_prob(two, {"u": u}, ALL), torch.tensor(numbers))
    first = torch.tensor([True, False])
    assert_close(durotaxis_ppo.log_prob(two, {"u": u}, first), torch.tensor(-HALF_LOG_TWO_PI))
    nodes = policy([0.0, 0.0], [0.0, 0.0], [[0.0, math.log(3.0)], [0.0, 0.0], [0.0, 0.0]])  # 1/4 and 3/4, then evens
    action = {"u": u, "choices": torch.tensor([1, 0, 1])}
    choices = (math.log(0.75) + 2 * math.log(0.5)) / 3
    assert_close(durotaxis_ppo.log_prob(nodes, action, ALL), torch.tensor(numbers + choices))


def test_entropy_and_divergence_by_hand():
    narrow = policy([0.0, 0.0], [-5.0, -5.0])  # tanh is a straight line there
    assert_close(durotaxis_ppo.entropy(narrow, ALL), torch.tensor(2 * (-5 + 0.5 + HALF_LOG_TWO_PI)), atol=1e-4, rtol=0)
    evens = policy([0.0, 0.0], [-5.0, -5.0], [[0.0, 0.0]] * 3)
    more = durotaxis_ppo.entropy(evens, ALL) - durotaxis_ppo.entropy(narrow, ALL)
    assert_close(more, torch.tensor(math.log(2.0)), atol=1e-5, rtol=0)
    old, new = policy([0.0, 0.0], [0.0, 0.0]), policy([1.0, 2.0], [0.0, 0.0])
    assert_close(durotaxis_ppo.kl(old, new, ALL), torch.tensor(0.5 + 2.0))
    assert_close(durotaxis_ppo.kl(old, new, torch.tensor([True, False])), torch.tensor(0.5))


def small_graph():
    return to_tensors(colony(xy=[(10, 20), (40, 60), (70, 30)], edges=[(0, 1), (0, 2)]).observe())


def test_attention_is_a_softmax_over_the_messages_that_arrive():
    torch.manual_seed(0)
    network = GraphActorCritic()
    layer, (links, senders, receivers) = network.layers[0], network.messages(small_graph())
    y = torch.randn(4, 128)
    q, k, v = layer.queries_keys_values(y).split(128, dim=1)
    e = layer.links(links)
    expected = torch.zeros(4, 128)
    for row in range(4):
        arriving = [m for m in range(len(senders)) if receivers[m] == row]
        for columns in (slice(h * 32, h * 32 + 32) for h in range(4)):
            keys = torch.stack([k[senders[m], columns] + e[m, columns] for m in arriving])
            values = torch.stack([v[senders[m], columns] + e[m, columns] for m in arriving])
            expected[row, columns] = torch.softmax(keys @ q[row, columns] / math.sqrt(32), 0) @ values
    assert_close(layer.attend(y, links, senders, receivers), expected)
    arrows = sorted(zip(senders.tolist(), receivers.tolist(), strict=True))
    assert arrows == [(0, 1), (0, 2), (0, 3), (1, 0), (1, 3), (2, 0), (2, 3), (3, 0), (3, 1), (3, 2)]


def test_a_message_back_along_an_edge_sees_it_the_other_way_round():
    network, graph = GraphActorCritic(), small_graph()
    links, *_ = network.messages(graph)
    length, dx, dy = graph["edge_features"][0].tolist()
    assert_close(links[2], network.edge_embedding(torch.tensor([length, -dx, -dy])))


def test_the_order_of_nodes_does_not_matter():
    network = GraphActorCritic(num_numbers=4, per_node=True)
    graph, order = small_graph(), torch.tensor([2, 0, 1])
    moved = graph | {"nodes": graph["nodes"][order], "edges": torch.tensor([[1, 2], [1, 0]])}
    one, other = network(graph), network(moved)
    assert_close(one.values, other.values)
    assert_close(one.logits[order], other.logits)


def test_the_network_is_near_even_at_first_and_takes_an_empty_graph():
    network = GraphActorCritic(log_std=-0.5)
    empty = network(to_tensors(colony(xy=[], edges=[]).observe()))
    assert torch.isfinite(empty.values).all()
    outputs = network(small_graph())
    assert_close(outputs.mean, torch.zeros(5), atol=0.1, rtol=0)
    assert_close(outputs.log_std, torch.full((5,), -0.5), atol=0.1, rtol=0)
    assert_close(network.simplicial(torch.randn(2, 128)).view(2, 16, 8).sum(-1), torch.ones(2, 16))


def test_parameters_have_the_names_and_sizes_that_others_can_copy():
    names = [name for name, _ in GraphActorCritic(num_numbers=4, per_node=True).named_parameters()]
    tops = list(dict.fromkeys(name.split(".")[0] for name in names))
    embeddings = ["token_embedding", "node_embedding", "edge_embedding"]
    heads = ["actor", "node_head", "critic"]
    assert tops == ["token_links", *embeddings, "layers", "final_norm", "simplices", *heads]  # PyTorch: own ones first
    layer = 2 * 256 + 128 * 384 + 384 + 128 * 128 + 128 * 128 + 128 + 128 * 256 + 256 + 256 * 128 + 128
    embedded = sum(size * 128 + 128 + 256 for size in (11, 3, 19)) + 256
    rest = 256 + 128 * 128 + 128 + 2 * (256 * 128 + 128) + 128 * 10 + 10 + 128 * 6 + 6
    assert sum(p.numel() for p in GraphActorCritic().parameters()) == embedded + 4 * layer + rest


class Tape:
    """Numbers that are the same every time."""

    def __init__(self) -> None:
        self.generator = np.random.default_rng(0)

    def normal(self, count):
        return self.generator.normal(size=count)

    def uniform(self, count):
        return self.generator.random(count)

    def permutation(self, count):
        return self.generator.permutation(count)


def agent_and_colonies(mode: str, **config):
    torch.manual_seed(0)
    generator = np.random.default_rng(1)
    colonies = [Colony({"action": mode, "reward": "full", "max_steps": 3, "start_nodes": 3}) for _ in range(2)]
    network = GraphActorCritic(num_numbers=4 if mode == "per_node" else 5, per_node=mode == "per_node")
    agent = Agent(Config(rollout_steps=8, batch_size=4, epochs=2, **config), network, to_tensors, Tape())
    return agent, colonies, [env.reset(generator.random) for env in colonies]


@pytest.mark.parametrize("mode", ["ratio", "per_node"])
def test_the_ratio_is_one_before_the_first_update(mode):
    agent, colonies, observations = agent_and_colonies(mode)
    rows, _ = agent.collect(colonies, observations)
    for row in rows:
        again = durotaxis_ppo.log_prob(agent.network(row["graph"]), row["action"], row["mask"])
        assert torch.exp(again - row["log_prob"]).item() == 1.0
    _, measure = agent.loss(rows)
    assert measure["clip_fraction"] == 0
    assert measure["kl"] == pytest.approx(0, abs=1e-7)
    assert measure["policy_loss"] == pytest.approx(0, abs=1e-6)  # minus the mean of normalized advantages


@pytest.mark.parametrize("mode", ["ratio", "per_node"])
def test_the_same_tape_trains_the_same_network(mode):
    trained = []
    for _ in range(2):
        agent, colonies, observations = agent_and_colonies(mode, kl_stop=1e9)
        rows, episodes = agent.collect(colonies, observations)
        assert len(agent.update(rows)) == 4
        assert len(rows) == 8
        assert all(episode["length"] <= 3 for episode in episodes)
        trained.append([parameter.detach().clone() for parameter in agent.network.parameters()])
    for one, other in zip(*trained, strict=True):
        assert torch.equal(one, other)


def test_a_truncated_row_bootstraps_from_what_its_last_action_led_to():
    agent, colonies, observations = agent_and_colonies("ratio")
    rows, _ = agent.collect(colonies, observations)
    row = rows[4]  # the first colony's third step
    assert row["truncated"]
    for part in range(6):
        assert row["returns"][part] == pytest.approx(row["rewards"][part] + 0.99 * row["final_values"][part])


def test_too_large_a_divergence_stops_after_the_epoch():
    agent, colonies, observations = agent_and_colonies("ratio", kl_stop=1e-12)
    rows, _ = agent.collect(colonies, observations)
    assert len(agent.update(rows)) == 2  # one epoch of two minibatches


def test_a_value_may_not_gain_by_moving_far():
    agent, _, _ = agent_and_colonies("ratio")
    rows = [{"values": [0.0] * 6, "returns": [1.0] * 6}]
    moved = torch.tensor([[1.0, 0.1, 0.1, 0.1, 0.1, 0.1]])  # the first is held at 0.2
    assert agent.value_loss(moved, rows).item() == pytest.approx(0.64 + 0.81 * (0.4 + 0.3 + 0.2 + 0.2 + 0.3))


def test_weights_are_copied_in_order():
    one, other = GraphActorCritic(), GraphActorCritic()
    durotaxis_network.copy_weights(other, [parameter.detach().numpy() for parameter in one.parameters()])
    assert_close(one(small_graph()).values, other(small_graph()).values, rtol=0, atol=0)


def assert_allclose(actual, expected, atol: float = 1e-12) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=atol)
