"""What the contract finds wrong with graphs, one planted fault each."""

import numpy as np
import pytest

from hotloop.core.graphs import Graphs, GraphSpec
from hotloop.envs.contract import check_env
from hotloop.envs.contract_play import fault_in
from hotloop.workloads.durotaxis.env import Durotaxis

SPEC = GraphSpec(2, 1, 3)


def two() -> Graphs:
    """One graph of two nodes and an edge, one of a single node."""
    return Graphs(
        nodes=np.zeros((3, 2), np.float32),
        edges=np.array([[0, 1]], np.int32),
        edge_features=np.zeros((1, 1), np.float32),
        graph=np.zeros((2, 3), np.float32),
        node_offsets=np.array([0, 2, 3]),
        edge_offsets=np.array([0, 1, 1]),
    )


def test_good_graphs_have_no_fault():
    assert fault_in(two(), SPEC, 2) == ""


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("nodes", np.zeros((3, 2)), "`nodes` float64(3, 2) where float32(3, 2)"),
        ("nodes", np.zeros((3, 4), np.float32), "`nodes` float32(3, 4) where float32(3, 2)"),
        ("edges", np.array([[0, 1]]), "`edges` int64(1, 2) where int32(1, 2)"),
        ("edges", np.array([[0, 2]], np.int32), "an edge to a node that is not in its graph"),
        ("edge_features", np.zeros((2, 1), np.float32), "`edge_features`"),
        ("graph", np.zeros((3, 3), np.float32), "`graph`"),
        ("node_offsets", np.array([0, 4, 3]), "`node_offsets` that do not rise"),
        ("edge_offsets", np.array([1, 1, 1]), "`edge_offsets` that do not rise"),
        ("edge_offsets", np.array([0, 1]), "`edge_offsets` int64(2,) where int64(3,)"),
    ],
)
def test_each_fault_is_named(name, value, words):
    graphs = two()
    setattr(graphs, name, value)
    assert words in fault_in(graphs, SPEC, 2)


def test_another_kind_of_observation_is_named():
    assert fault_in(np.zeros(3), SPEC, 2) == "is a ndarray where Graphs were declared"


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("parts", "shapes and dtypes are as declared"),
        ("edges", "shapes and dtypes are as declared"),
        ("nan", "observations and rewards are finite"),
        ("final_obs", "final_obs equals obs while an episode runs"),
        ("written", "arrays handed out are left alone"),
    ],
)
def test_a_promise_about_graphs_that_is_broken_is_found(fault, check):
    class Spoiled(Durotaxis):
        last = None

        def step(self, action):
            step = super().step(action)
            if fault == "parts":
                step.reward_parts = step.reward_parts[:, :5]
            elif fault == "edges":
                step.obs.edges[0, 1] = 999
            elif fault == "nan":
                step.obs.graph[0, 0] = np.nan
            elif fault == "final_obs":
                step.final_obs = step.final_obs.copy()
                step.final_obs.nodes += 1
            elif self.last is not None:
                self.last.nodes += 1
            self.last = step.obs
            return step

    failed = [result.name for result in check_env(Spoiled, 30) if not result.ok]
    assert check in failed
