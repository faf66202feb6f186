"""Colonies by hand: who is deleted, where children settle, and which edges remain."""

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.core.graphs import Graphs, same_graphs
from hotloop.core.kernels import next_uniform
from hotloop.core.rng import derive_seeds
from hotloop.core.types import EnvStep, NodeAction
from hotloop.workloads.durotaxis.env import Durotaxis

HALF = {"gamma": 15.0, "alpha": 4.0, "noise": 0.5}
"""Where the ground is 4 stiff (x = 60 of the usual substrate), children settle 15 / 2 + 0.5 = 8 away."""


def plant(positions, edges=(), ages=None, *, fields=None, **options) -> Durotaxis:
    """One colony with these nodes and edges; `fields` of its record."""
    envs = Durotaxis(1, np.zeros(1, np.uint64), **options)
    envs.reset()
    state = envs.get_state()
    state["num_nodes"][0], state["num_edges"][0] = len(positions), len(edges)
    state["positions"] = np.array(positions, np.float64).reshape(-1, 2)
    state["ages"] = np.zeros(len(positions), np.int64) if ages is None else np.array(ages)
    state["edges"] = np.array(edges, np.int64).reshape(-1, 2)
    for name, value in (fields or {}).items():
        state[name][0] = value
    envs.set_state(state)
    return envs


def act(envs, ratio=0.0, *, gamma=0.5, alpha=4.0, noise=0.05, theta=0.0, choices=None) -> EnvStep:
    if choices is None:
        return envs.step(np.array([[ratio, gamma, alpha, noise, theta]], np.float32))
    return envs.step(NodeAction(np.array([[gamma, alpha, noise, theta]], np.float32), np.array(choices)))


def look(envs) -> Graphs:
    """What is seen of colonies as they are, without a step."""
    state = envs.get_state()
    offsets = np.zeros((2, envs.num_envs + 1), np.int64)
    offsets[:, 1:] = np.cumsum([state["num_nodes"], state["num_edges"]], axis=1)
    return envs._observe(offsets, envs._everybody)


def edges_of(envs):
    return [tuple(edge) for edge in envs.get_state()["edges"].tolist()]


def test_a_child_settles_where_the_hill_function_says():
    envs = plant([(60, 200)])
    act(envs, **HALF)
    np.testing.assert_allclose(envs.get_state()["positions"], [(60, 200), (68, 200)])
    assert edges_of(envs) == [(0, 1)]
    assert envs.get_state()["ages"].tolist() == [1, 0]


def test_theta_is_in_degrees_and_turns_children_up():
    envs = plant([(60, 200)])
    act(envs, **HALF, theta=30.0)
    np.testing.assert_allclose(envs.get_state()["positions"][1], (60 + 8 * 3**0.5 / 2, 204))


def test_children_stay_a_margin_inside_the_field():
    envs = plant([(597, 398), (100, 3)])
    envs.hold_finished()
    act(envs, **HALF, theta=-30.0)
    children = envs.get_state()["positions"][2:]
    assert children[0, 0] == 594  # 1 % of 600
    assert children[1, 1] == 4  # 1 % of 400


@pytest.mark.parametrize(("height", "margin"), [(100.0, 2.0), (1000.0, 10.0)])
def test_the_margin_is_two_or_one_per_cent(height, margin):
    envs = plant([(60, 0)], height=height)
    act(envs, **HALF)
    assert envs.get_state()["positions"][1, 1] == margin


def test_an_exponential_substrate_is_felt():
    envs = plant([(100, 200)], substrate="exponential")
    act(envs, **HALF)
    stiff = np.exp(1.0)  # 0.01 * 100
    assert envs.get_state()["positions"][1, 0] == pytest.approx(100 + 15 / (1 + (4 / stiff) ** 2) + 0.5)


def test_the_left_most_go_and_every_other_node_has_a_child():
    """k = floor(0.5 * 5) = 2: the nodes at 20 and 30 go; of survivors and children N' = 2 * (5 - 2)."""
    envs = plant([(50, 200), (20, 200), (40, 200), (30, 200), (60, 200)])
    step = act(envs, 0.5)
    assert envs.get_state()["positions"][:3, 0].tolist() == [50, 40, 60]
    assert edges_of(envs) == [(0, 3), (1, 4), (2, 5)]
    assert step.obs.num_nodes.tolist() == [6]


def test_of_equally_left_nodes_the_older_goes():
    envs = plant([(50, 100), (20, 200), (20, 300), (50, 120)])
    act(envs, 0.25)
    assert envs.get_state()["positions"][:3].tolist() == [[50, 100], [20, 300], [50, 120]]


def test_how_many_go_is_computed_from_the_float32_that_was_given():
    """float32(0.3) is 0.30000001..., float32(0.7) is 0.69999999...: of ten nodes 3 and 6."""
    for ratio, kept in ((0.3, 7), (0.7, 4)):
        envs = plant([(x, 200) for x in range(10)])
        assert act(envs, ratio).obs.num_nodes[0] == 2 * kept


def test_actions_outside_their_bounds_are_clipped():
    one, other = (plant([(x, 200) for x in range(40, 50)]) for _ in range(2))
    act(one, 7.0, gamma=99.0, alpha=-1.0, noise=9.0, theta=400.0)
    act(other, 0.71, gamma=15.0, alpha=0.5, noise=0.5, theta=30.0)
    assert one.get_state()["positions"].tolist() == other.get_state()["positions"].tolist()
    assert one.snapshot(0)["action"] == [0.7, 15.0, 0.5, 0.5, 30.0]


@pytest.mark.parametrize(
    ("edges", "deleted", "left"),
    [
        ([(0, 1), (1, 2)], [1], [(0, 2)]),  # predecessor to successor
        ([(0, 1), (1, 2), (2, 3)], [1, 2], [(0, 3)]),  # through two
        ([(0, 1), (1, 2), (0, 2)], [1], [(0, 2)]),  # merged with the one that was there
        ([(0, 1), (1, 0)], [1], []),  # no edge to itself
        ([(0, 2), (1, 2), (2, 3), (2, 0)], [2], [(0, 3), (1, 0), (1, 3)]),  # all with all
        ([(0, 1), (1, 2), (2, 1), (2, 3)], [1, 2], [(0, 3)]),  # a ring of deleted nodes
        ([(1, 0), (1, 2)], [1], []),  # nobody before it
        ([(0, 1), (2, 1)], [1], []),  # nobody after it
        ([(3, 1), (1, 0), (0, 2)], [0, 1], [(3, 2)]),  # back to a lower number
    ],
)
def test_a_deleted_node_connects_its_predecessors_to_its_successors(edges, deleted, left):
    envs = plant([(50 + x, 200) for x in range(4)], edges, action="per_node")
    choices = [int(node in deleted) for node in range(4)]
    act(envs, choices=choices)
    survivors = [node for node in range(4) if node not in deleted]
    found = [(survivors[a], survivors[b]) for a, b in edges_of(envs) if b < len(survivors)]
    assert found == left
    assert set(edges_of(envs)) >= {(node, node + len(survivors)) for node in range(len(survivors))}


@given(st.integers(1, 150), st.floats(0.0, 0.1), st.floats(0.0, 1.0), st.integers(0, 2**32))
def test_edges_after_a_step_are_those_of_deleting_one_node_after_another(count, density, share, seed):
    draw = np.random.default_rng(seed)
    edges = [(a, b) for a, b in np.argwhere(draw.random((count, count)) < density).tolist() if a != b]
    choices = (draw.random(count) < share).astype(int).tolist()
    envs = plant([(x, 200) for x in range(count)], edges, action="per_node")
    envs.hold_finished()
    act(envs, choices=choices)
    graph = networkx.DiGraph(edges)
    graph.add_nodes_from(range(count))
    for node in draw.permutation(np.flatnonzero(choices)).tolist():
        graph.add_edges_from(
            (a, b) for a in list(graph.predecessors(node)) for b in list(graph.successors(node)) if a != b
        )
        graph.remove_node(node)
    place = {node: index for index, node in enumerate(sorted(graph))}
    kept = len(place)
    expected = [(place[a], place[b]) for a, b in graph.edges] + [(node, kept + node) for node in range(kept)]
    assert edges_of(envs) == sorted(expected)


def test_a_new_colony_is_a_chain_from_left_to_right_at_the_left():
    envs = Durotaxis(20, derive_seeds(3, 20, "env"), start_nodes=7)
    obs, mask = envs.reset()
    assert mask is None
    assert obs.num_nodes.tolist() == [7] * 20
    for index in range(20):
        colony = envs.snapshot(index)
        x, y = colony["positions"].T
        assert (x < 60).all()
        assert (np.abs(y - 200) <= 40).all()
        order = np.argsort(x)
        assert {tuple(edge) for edge in colony["edges"].tolist()} == set(zip(order[:-1], order[1:], strict=True))
        assert colony["ages"].tolist() == [0] * 7


def test_positions_are_drawn_one_after_another_from_the_colonys_own_generator():
    envs = Durotaxis(2, np.array([5, 6], np.uint64), start_nodes=2)
    envs.reset()
    generator = np.array([6], np.uint64)
    draws = [next_uniform(generator, 0) for _ in range(4)]
    expected = [(60 * draws[0], 400 * (0.4 + 0.2 * draws[1])), (60 * draws[2], 400 * (0.4 + 0.2 * draws[3]))]
    np.testing.assert_allclose(envs.snapshot(1)["positions"], expected)


def test_a_random_substrate_is_drawn_within_its_bounds():
    envs = Durotaxis(200, derive_seeds(0, 200, "env"), substrate="random")
    envs.reset()
    colonies = [envs.snapshot(index) for index in range(200)]
    bounds = {"linear": (0.01, 0.1, 0.5, 2.0), "exponential": (0.002, 0.01, 0.5, 1.5)}
    for kind, (m_low, m_high, b_low, b_high) in bounds.items():
        drawn = np.array([(one["m"], one["b"]) for one in colonies if one["substrate"] == kind])
        assert 60 < len(drawn) < 140
        assert (drawn >= (m_low, b_low)).all()
        assert (drawn <= (m_high, b_high)).all()


def test_an_episode_that_ends_leaves_its_last_graph_and_starts_anew_beside_the_others():
    envs = Durotaxis(3, derive_seeds(0, 3, "env"), action="per_node", start_nodes=3)
    obs, _ = envs.reset()
    running = obs.copy()
    numbers = np.tile(np.array([5.0, 2.0, 0.5, 0.0], np.float32), (3, 1))
    step = envs.step(NodeAction(numbers, np.array([0, 0, 0, 1, 1, 1, 0, 1, 0])))
    assert step.terminated.tolist() == [False, True, False]
    assert step.final_obs.num_nodes.tolist() == [6, 0, 4]
    assert step.obs.num_nodes.tolist() == [6, 3, 4]
    for index in (0, 2):
        assert same_graphs(step.obs[[index]], step.final_obs[[index]])
    assert step.final_obs.graph[1].tolist() == [0.0] * 19
    assert same_graphs(obs, running)
    assert same_graphs(step.obs, look(envs))
    assert step.episode_stats["colony_size"].tolist()[1] == 0
    step = envs.step(NodeAction(numbers, np.zeros(13, np.int64)))
    assert step.final_obs is step.obs
