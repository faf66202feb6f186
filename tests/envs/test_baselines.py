"""Playing at random, whatever an action is."""

import json

import numpy as np
import pytest

from hotloop.cli.main import main
from hotloop.core.errors import EnvError
from hotloop.core.rng import derive_seeds
from hotloop.core.types import BoxActions, HybridActions, MultiDiscreteActions, NodeAction, NodeActions
from hotloop.envs.foreign import require_discrete
from hotloop.envs.registry import RANGE, AtRandom, make_baseline
from hotloop.workloads.durotaxis.env import Durotaxis

OBS = np.zeros((1_000, 3), np.float32)


def test_numbers_fill_their_box_evenly():
    actions = AtRandom(BoxActions((-1.0, 0.0), (1.0, 30.0), (2, 1)), 0).act(OBS, None)
    assert actions.shape == (1_000, 2, 1)
    assert actions.dtype == np.float32
    np.testing.assert_allclose(actions.min(axis=0)[:, 0], (-1, 0), atol=0.2)
    np.testing.assert_allclose(actions.mean(axis=0)[:, 0], (0, 15), atol=1)
    np.testing.assert_allclose(actions.max(axis=0)[:, 0], (1, 30), atol=0.2)


def test_numbers_without_a_bound_stay_near_the_other_or_round_zero():
    box = BoxActions((-np.inf, 50.0, -np.inf), (np.inf, np.inf, -50.0), (3,))
    actions = AtRandom(box, 0).act(OBS, None)
    np.testing.assert_allclose(actions.min(axis=0), (-RANGE / 2, 50, -50 - RANGE), atol=0.2)
    np.testing.assert_allclose(actions.max(axis=0), (RANGE / 2, 50 + RANGE, -50), atol=0.2)


def test_several_choices_each_keep_to_their_part_of_a_mask():
    spec = MultiDiscreteActions((2, 3))
    free = AtRandom(spec, 0).act(OBS, None)
    assert free.dtype == np.int64
    assert {tuple(row) for row in free.tolist()} == {(one, other) for one in range(2) for other in range(3)}
    mask = np.tile(np.array([False, True, True, False, True]), (1_000, 1))
    assert {tuple(row) for row in AtRandom(spec, 0).act(OBS, mask).tolist()} == {(1, 0), (1, 2)}


def test_choices_and_numbers_lie_in_one_row():
    spec = HybridActions(MultiDiscreteActions((2,)), BoxActions((5.0,), (6.0,), (1,)))
    actions = AtRandom(spec, 0).act({"part": OBS}, np.tile(np.array([True, False]), (1_000, 1)))
    assert actions.shape == (1_000, 2)
    assert actions.dtype == np.float32
    assert set(actions[:, 0]) == {0.0}
    assert ((actions[:, 1] >= 5) & (actions[:, 1] <= 6)).all()


def test_every_node_of_every_graph_has_a_choice():
    envs = Durotaxis(40, derive_seeds(0, 40, "env"), action="per_node")
    obs, _ = envs.reset()
    action = make_baseline("random", envs, "durotaxis", 0).act(obs, None)
    assert isinstance(action, NodeAction)
    assert action.numbers.shape == (40, 4)
    assert action.choices.shape == (200,)
    assert 70 < action.choices.sum() < 130
    envs.step(action)


def test_the_same_seed_draws_the_same():
    spec = BoxActions((0.0,), (1.0,), (1,))
    one, same, other = (AtRandom(spec, seed).act(OBS, None) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("mode", ["ratio", "per_node"])
def test_durotaxis_is_evaluated_at_random(mode, capsys):
    words = ["evaluate", "durotaxis-ppo", "--policy", "random", "--episodes", "3", "--json"]
    options = ["--env.options.action", mode, "--env.options.max_nodes", "20", "--env.options.max_steps", "30"]
    assert main([*words, *options]) == 0
    evaluation = json.loads(capsys.readouterr().out)
    assert evaluation["episodes"] == 3
    assert {"success_rate", "final_centroid", "mean_colony_size"} <= evaluation.keys()


def test_choices_of_nodes_are_refused_for_dqn():
    with pytest.raises(EnvError, match="each node of a graph; DQN needs Discrete"):
        require_discrete("mine", NodeActions(2, BoxActions((0.0,), (1.0,), (1,))))
