"""Graphs that can be networks are ordered; all others are refused with the node or edge named."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotloop.core.errors import HotloopError
from hotloop.nets.topology.generators import dense, dense_small_world, small_world
from hotloop.nets.topology.graph import TopologyError, make_topology

TABLE = [  # hidden, ring degree, rewiring, seed -> nodes, edges, levels, widest level, scalars
    ((64, 8, 0.1, 47), (70, 294, 64, 4, 360)),
    ((32, 9, 0.2, 47), (38, 172, 31, 4, 206)),
    ((32, 8, 0.1, 43), (38, 166, 32, 4, 200)),
    ((128, 20, 0.2, 47), (134, 1345, 112, 4, 1475)),
    ((264, 40, 0.2, 47), (270, 5310, 233, 4, 5576)),
]


@pytest.mark.parametrize(("arguments", "expected"), TABLE)
def test_a_seed_gives_the_small_world_it_always_gave(arguments, expected):
    hidden, ring_degree, rewiring, seed = arguments
    graph = small_world(4, hidden, 2, ring_degree, rewiring, seed)
    levels = graph.levels()
    widest = max(levels.count(level) for level in levels)
    scalars = graph.num_edges + len(graph.computed)
    assert (len(graph.nodes), graph.num_edges, len(set(levels)), widest, scalars) == expected


def test_a_small_world_without_rewiring_is_the_lattice_with_its_ends():
    graph = small_world(1, 4, 1, 2, 0.0, 0)
    assert graph.edges() == [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (3, 5), (4, 5)]
    assert graph.nodes == (0, 1, 2, 3, 4, 5)


def test_dense_layers_connect_each_node_with_all_of_the_next_layer():
    graph = dense(2, (3,), 1)
    assert graph.edges() == [(s, t) for t in (2, 3, 4) for s in (0, 1)] + [(2, 5), (3, 5), (4, 5)]
    assert graph.levels() == [0, 0, 1, 1, 1, 2]


def test_rewiring_dense_layers_makes_shortcuts_and_no_edge_backwards():
    graph = dense_small_world(4, (6, 6, 6), 2, 0.5, 3)
    layer = [0] * 4 + [1] * 6 + [2] * 6 + [3] * 6 + [4] * 2
    spans = [layer[target] - layer[source] for source, target in graph.edges()]
    assert min(spans) == 1
    assert max(spans) > 1
    assert graph.edges() == dense_small_world(4, (6, 6, 6), 2, 0.5, 3).edges()
    assert dense_small_world(4, (6, 6), 2, 0.0, 3).edges() == dense(4, (6, 6), 2).edges()


@pytest.mark.parametrize("make", [
    lambda: small_world(4, 8, 2, 8, 0.1, 0),
    lambda: small_world(4, 8, 2, 1, 0.1, 0),
    lambda: small_world(4, 8, 2, 4, 1.5, 0),
    lambda: small_world(0, 8, 2, 4, 0.1, 0),
    lambda: dense(4, (3, 0), 2),
    lambda: dense(4, (3,), 0),
])  # fmt: skip
def test_a_generator_refuses_what_it_cannot_make(make):
    with pytest.raises(TopologyError):
        make()


def test_compressed_rows_hold_the_sources_of_each_node_in_order():
    graph = make_topology("abcd", [("a", "c"), ("b", "c"), ("c", "d"), ("a", "d")], "ab", "d")
    assert graph.nodes == ("a", "b", "c", "d")
    assert graph.starts.tolist() == [0, 2, 4]
    assert graph.sources.tolist() == [0, 1, 0, 2]
    assert graph.output_positions.tolist() == [3]


@pytest.mark.parametrize(
    ("nodes", "edges", "inputs", "outputs", "named"),
    [
        ("abc", ["ab", "bc", "cb"], "a", "c", r"cycle: '[bc]' -> '[bc]' -> '[bc]'"),
        ("ab", ["ab", "bb"], "a", "b", r"cycle: 'b' -> 'b'"),
        ("abc", ["ab"], "a", "c", "output 'c' cannot be reached"),
        ("ab", ["ab"], "x", "b", "`inputs` lists node 'x'"),
        ("ab", ["ab"], "a", "y", "`outputs` lists node 'y'"),
        ("ab", ["az"], "a", "b", "names node 'z'"),
        ("aab", ["ab"], "a", "b", "lists node 'a' more than once"),
        ("ab", ["ab"], "aa", "b", "`inputs` lists node 'a' more than once"),
        ("ab", ["ab"], "a", "bb", "`outputs` lists node 'b' more than once"),
        ("ab", ["ab", "ab"], "a", "b", "'a' -> 'b' is there twice"),
        ("abc", ["ab", "bc"], "ab", "c", "input 'b' has an incoming edge from 'a'"),
        ("ab", ["ab"], "a", "ab", "'a' is both an input and an output"),
        ("ab", ["ab"], "", "b", "`inputs` is empty"),
        ("ab", ["ab"], "a", "", "`outputs` is empty"),
    ],
)
def test_what_is_no_network_is_refused_by_name(nodes, edges, inputs, outputs, named):
    with pytest.raises(HotloopError, match=named):
        make_topology(nodes, [tuple(edge) for edge in edges], inputs, outputs)


def test_ids_that_only_look_the_same_are_told_apart():
    with pytest.raises(TopologyError, match="did you mean that"):
        make_topology([1, 2], [(1, 2)], ["1"], [2])


def test_a_node_that_leads_nowhere_and_one_that_nothing_leads_to_are_allowed():
    graph = make_topology("iobde", [("i", "o"), ("b", "o"), ("i", "d")], "i", "o")
    assert set(graph.nodes) == set("iobde")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=25), st.permutations(range(10)))
def test_every_source_comes_before_its_targets_whatever_the_order_of_the_nodes(pairs, names):
    edges = {(names[min(pair)], names[max(pair)]) for pair in pairs if pair[0] != pair[1]}
    edges = {edge for edge in edges if edge[1] != names[0]} | {(names[0], names[9])}
    graph = make_topology(range(10), edges, [names[0]], [names[9]])
    place = {node: position for position, node in enumerate(graph.nodes)}
    assert all(place[source] < place[target] for source, target in edges)
    assert set(graph.edges()) == edges
