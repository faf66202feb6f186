"""Saving and restoring colonies exactly, and showing one."""

import numpy as np
import pytest

from hotloop.core.errors import EnvError
from hotloop.core.graphs import same_graphs
from hotloop.core.rng import derive_seeds
from hotloop.envs.contract_play import Chooser, difference, play_on
from hotloop.workloads.durotaxis.env import Durotaxis

MODES = [
    {"substrate": "random"},
    {"action": "per_node", "recovery": True, "start_nodes": 8},
    {"curriculum_steps": 30, "max_steps": 12, "reward": "full"},
    {"max_delete_ratio": 0.4, "max_nodes": 150},
]


def make(options, num_envs=4, seed=0):
    return Durotaxis(num_envs, derive_seeds(seed, num_envs, "env"), **options)


@pytest.mark.parametrize("options", MODES)
def test_a_restored_state_continues_exactly_and_is_itself_the_same(options):
    one, other = make(options), make(options, seed=1)
    other.reset()
    obs, mask = one.reset()
    last = play_on(one, Chooser(4), obs, mask, 30)[-1]
    other.set_state(one.get_state())
    assert_same_state(one, other)
    steps = zip(*(play_on(envs, Chooser(4), last.obs, last.action_mask, 30) for envs in (one, other)), strict=True)
    assert [difference(left, right) for left, right in steps] == [""] * 30
    assert_same_state(one, other)


def assert_same_state(one, other):
    left, right = one.get_state(), other.get_state()
    assert list(left) == list(right)
    for name in left:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)


def test_a_state_holds_what_there_is_and_no_room_for_more():
    envs = make({"max_nodes": 2000})
    envs.reset()
    assert sum(value.nbytes for value in envs.get_state().values()) < 4_000


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("steps", np.zeros(3, np.int64), r"int64\(3,\); expected int64\(4,\)"),
        ("num_nodes", np.full(4, 9_000), "room for 500"),
        ("num_nodes", np.full(4, 501), "501 nodes; there is room for 500"),
        ("positions", np.zeros((3, 2)), r"\(20, 2\)"),
        ("milestones", np.full(4, -(10**9)), "milestones"),
        ("ages", np.zeros(20), "float64"),
        ("edges", np.full((16, 2), 5), "not there"),
        ("edges", np.full((16, 2), -1), "not there"),
        ("field", np.array([300.0, 400.0]), "300 x 400"),
    ],
)
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(name, value, words):
    envs = make({})
    envs.reset()
    before = envs.get_state()
    with pytest.raises(EnvError, match=words):
        envs.set_state({**before, name: value})
    for key, array in envs.get_state().items():
        np.testing.assert_array_equal(array, before[key])


def test_the_number_of_colonies_changes_none_of_them():
    alone, together = make({}, 1), make({}, 4)
    first, others = alone.reset()[0], together.reset()[0]
    assert same_graphs(first, others[[0]])


def test_a_snapshot_is_of_the_one_colony():
    envs = make({"substrate": "exponential"}, 3)
    envs.reset()
    envs.step(np.tile(np.array([0.0, 5.0, 2.0, 0.5, 10.0], np.float32), (3, 1)))
    state, colony = envs.get_state(), envs.snapshot(1)
    np.testing.assert_array_equal(colony["positions"], state["positions"][10:20])
    np.testing.assert_allclose(colony["centroid"], colony["positions"].mean(axis=0))
    assert len(colony["edges"]) == 9  # four of the chain, five to children
    assert colony["ages"].tolist() == [1] * 5 + [0] * 5
    assert (colony["substrate"], colony["m"], colony["b"]) == ("exponential", 0.01, 1.0)
    assert colony["field"] == [600.0, 400.0]
    assert (colony["step"], colony["action"]) == (1, [0.0, 5.0, 2.0, 0.5, 10.0])
    colony["positions"][:] = 0
    assert envs.get_state()["positions"].all()


def test_a_colony_takes_modest_memory():
    envs = make({}, 1)
    assert sum(array.nbytes for array in envs._colonies) < 600_000
