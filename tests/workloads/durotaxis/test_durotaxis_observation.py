"""What is seen of a colony, by hand, and the convex hull."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from tests.workloads.durotaxis.test_durotaxis_env import look, plant

TRIANGLE = [(100, 50), (100, 350), (500, 50)]  # sides of 300, 400 and 500


def seen(count):
    return math.log1p(count) / 6


def test_the_eleven_features_of_a_node():
    graph = look(plant(TRIANGLE, [(0, 1), (0, 2)], ages=[0, 1, 7]))
    centroid = (700 / 3, 150)
    expected = [
        [1 / 6, 50 / 400, seen(6), 0, seen(2), 600 / 350, math.dist((100, 50), centroid) / 600, 1, 1, 0, 0],
        [1 / 6, 350 / 400, seen(6), seen(1), 0, 600 / 400, math.dist((100, 350), centroid) / 600, 1, 0, 0.01, 0],
        [5 / 6, 50 / 400, seen(26), seen(1), 0, 600 / 450, math.dist((500, 50), centroid) / 600, 1, 0, 0.07, 6 / 50],
    ]
    np.testing.assert_allclose(graph.nodes, expected, rtol=1e-6)


def test_the_three_features_of_an_edge_and_their_order():
    graph = look(plant([*TRIANGLE, (100, 50)], [(2, 1), (0, 3), (0, 1)]))
    assert graph.edges.tolist() == [[0, 1], [0, 3], [2, 1]]
    np.testing.assert_allclose(
        graph.edge_features, [(300 / 600, 0, 1), (0, 0, 0), (500 / 600, -0.8, 0.6)], rtol=1e-6, atol=1e-7
    )


def test_the_nineteen_features_of_a_graph():
    graph = look(plant(TRIANGLE, [(0, 1), (0, 2)]))
    expected = [
        seen(3), seen(2), 2 / 6, 700 / 3 / 600, 150 / 400, 100 / 600, 50 / 400, 500 / 600, 350 / 400, 400 / 600,
        300 / 400, 400 * 300 / 240_000, 60_000 / 240_000, seen(4 / 3), seen(2), seen(4),
        seen(38 / 3), seen(26), seen(38),
    ]  # fmt: skip
    np.testing.assert_allclose(graph.graph[0], expected, rtol=1e-6)


def test_somebody_alone_is_as_central_as_can_be():
    graph = look(plant([(300, 200)]))
    assert graph.nodes[0, 5] == 10.0  # 1 * width, capped
    assert graph.graph[0, 2] == 0.0  # density
    near = look(plant([(300, 200), (300, 200)]))
    assert near.nodes[:, 5].tolist() == [10.0, 10.0]


@pytest.mark.parametrize(
    ("positions", "members", "area"),
    [
        ([(10, 10)], [1], 0),
        ([(10, 10), (20, 10)], [1, 1], 0),
        ([(10, 10), (20, 20), (30, 30), (40, 40)], [1, 1, 1, 1], 0),  # on a line
        ([(10, 10), (10, 30), (10, 20)], [1, 1, 1], 0),  # upright
        ([(10, 10), (10, 10), (10, 10)], [1, 1, 1], 0),
        ([(10, 10), (20, 10), (10, 20)], [1, 1, 1], 50),
        ([(10, 10), (30, 10), (30, 30), (10, 30), (20, 20)], [1, 1, 1, 1, 0], 400),  # one inside
        ([(10, 10), (30, 10), (30, 30), (10, 30), (20, 10), (10, 20)], [1, 1, 1, 1, 0, 0], 400),  # two on the sides
        ([(10, 10), (30, 10), (10, 30), (30, 10), (10, 10)], [1, 1, 1, 0, 0], 200),  # the older of two at a corner
        ([(30, 10), (10, 10), (30, 10), (20, 20)], [1, 1, 0, 1], 100),
        ([(10, 10), (20, 10.0000000001), (30, 10)], [1, 1, 1], 0),  # a line, but for rounding
    ],
)
def test_hull_members_are_the_corners(positions, members, area):
    graph = look(plant(positions))
    assert graph.nodes[:, 7].tolist() == members
    assert graph.graph[0, 12] * 240_000 == pytest.approx(area, rel=1e-5, abs=1e-6)


@given(st.integers(4, 300), st.integers(0, 2**32))
def test_the_hull_is_that_of_an_independent_library(count, seed):
    points = np.random.default_rng(seed).random((count, 2)) * (600, 400)
    hull = ConvexHull(points)
    graph = look(plant(points.tolist()))
    assert np.flatnonzero(graph.nodes[:, 7]).tolist() == sorted(hull.vertices.tolist())
    assert graph.graph[0, 12] == pytest.approx(hull.volume / 240_000, rel=1e-5)


@given(st.integers(2, 130), st.integers(0, 2**32))
def test_centrality_is_the_mean_distance_turned_over(count, seed):
    points = np.random.default_rng(seed).random((count, 2)) * (600, 400)
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1).sum(axis=1) / (count - 1)
    graph = look(plant(points.tolist()))
    np.testing.assert_allclose(graph.nodes[:, 5], np.minimum(600 / (distances + 1e-6), 10), rtol=1e-5)


def test_counts_beyond_a_word_of_bits_are_seen_too():
    """A star of 150: the first points at all others."""
    graph = look(plant([(x, 200) for x in range(150)], [(0, other) for other in range(1, 150)]))
    assert graph.edges[:, 1].tolist() == list(range(1, 150))
    assert graph.nodes[0, 4] == pytest.approx(seen(149))
    assert graph.graph[0, 14] == pytest.approx(seen(149))
    assert graph.graph[0, 1] == pytest.approx(seen(149))
