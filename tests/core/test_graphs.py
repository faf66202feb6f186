"""Graphs of different sizes laid end to end."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hotloop.core.graphs import FIELDS, Graphs, join_graphs, same_graphs


def make(*sizes: tuple[int, int], first: float = 0.0) -> Graphs:
    """Graphs with so many nodes and edges; every node, edge and graph is numbered on from `first`."""
    nodes, edges = (np.concatenate([[0], np.cumsum(column, dtype=np.int64)]) for column in zip(*sizes, strict=True))
    numbers = np.arange(edges[-1], dtype=np.int32)
    return Graphs(
        nodes=first + np.arange(2 * nodes[-1], dtype=np.float32).reshape(-1, 2),
        edges=np.stack([numbers, numbers], axis=1),
        edge_features=first + np.arange(edges[-1], dtype=np.float32)[:, None],
        graph=first + np.arange(len(sizes), dtype=np.float32)[:, None],
        node_offsets=nodes,
        edge_offsets=edges,
    )


THREE = ((2, 1), (1, 0), (3, 2))


def test_a_batch_knows_how_large_its_graphs_are():
    graphs = make(*THREE)
    assert len(graphs) == 3
    assert graphs.num_nodes.tolist() == [2, 1, 3]


def test_taking_graphs_takes_their_rows_in_that_order():
    taken = make(*THREE).take(np.array([2, 0]))
    assert taken.graph[:, 0].tolist() == [2, 0]
    assert taken.nodes[:, 0].tolist() == [6, 8, 10, 0, 2]
    assert taken.edge_features[:, 0].tolist() == [1, 2, 0]
    assert taken.edges[:, 0].tolist() == [1, 2, 0]
    assert taken.node_offsets.tolist() == [0, 3, 5]
    assert taken.edge_offsets.tolist() == [0, 2, 3]


def test_the_same_graph_may_be_taken_twice_and_none_at_all():
    graphs = make(*THREE)
    assert graphs.take(np.array([1, 1])).nodes[:, 0].tolist() == [4, 4]
    none = graphs.take(np.empty(0, np.int64))
    assert len(none) == 0
    assert none.nodes.shape == (0, 2)
    assert none.node_offsets.tolist() == [0]


def test_slices_masks_and_lists_choose_graphs():
    graphs = make(*THREE)
    assert same_graphs(graphs[1:], graphs.take(np.array([1, 2])))
    assert same_graphs(graphs[np.array([True, False, True])], graphs.take(np.array([0, 2])))
    assert same_graphs(graphs[[2]], graphs.take(np.array([2])))
    assert same_graphs(graphs[:], graphs)


def test_joining_undoes_splitting():
    graphs = make(*THREE)
    assert same_graphs(join_graphs([graphs[:1], graphs[1:]]), graphs)
    both = join_graphs([graphs, make((1, 1), first=50.0)])
    assert both.node_offsets.tolist() == [0, 2, 3, 6, 7]
    assert both.nodes[-1].tolist() == [50, 51]


def test_a_copy_and_what_was_taken_stand_on_their_own():
    graphs = make(*THREE)
    for other in (graphs.copy(), graphs[:]):
        for name in FIELDS:
            assert not np.shares_memory(getattr(graphs, name), getattr(other, name))
        other.nodes[0] = -1
        assert not same_graphs(graphs, other)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7)), min_size=1, max_size=8), st.data())
def test_what_is_taken_is_what_lies_between_the_offsets(sizes, data):
    graphs = make(*sizes)
    rows = data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=10))
    taken = graphs.take(np.array(rows, np.int64))
    for at, row in enumerate(rows):
        for values, offsets in (
            ("nodes", "node_offsets"),
            ("edges", "edge_offsets"),
            ("edge_features", "edge_offsets"),
        ):
            start, end = getattr(taken, offsets)[at : at + 2]
            first, last = getattr(graphs, offsets)[row : row + 2]
            np.testing.assert_array_equal(getattr(taken, values)[start:end], getattr(graphs, values)[first:last])
