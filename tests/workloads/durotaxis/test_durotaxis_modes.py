"""Settings, kinds of actions, and what is refused."""

import numpy as np
import pytest

from hotloop.core.errors import EnvError, SettingsError
from hotloop.core.rng import derive_seeds
from hotloop.core.types import BoxActions, NodeAction, NodeActions
from hotloop.envs.contract import check_env
from hotloop.envs.registry import make_baseline
from hotloop.presets.env_settings import EnvSettings
from hotloop.workloads.durotaxis.env import Durotaxis
from hotloop.workloads.durotaxis.settings import DurotaxisSettings
from tests.workloads.durotaxis.test_durotaxis_env import act, plant


def test_a_curriculum_begins_with_the_ratio_alone():
    """In the first stage gamma 5, alpha 2 and noise 0.5 settle a child of x = 20 at 20 + 5 / 2 + 0.5."""
    envs = plant([(20, 200)], curriculum_steps=2, max_steps=1)
    assert envs.action_spec.masked
    assert envs.action_spec.mask_width == 5
    assert envs.reset()[1].tolist() == [[True, False, False, False, False]]
    envs = plant([(20, 200)], curriculum_steps=2)
    step = act(envs, gamma=15.0, theta=30.0)
    np.testing.assert_allclose(envs.get_state()["positions"][1], (23, 200))
    assert step.action_mask.tolist() == [[True, False, False, False, False]]
    assert step.final_action_mask.tolist() == step.action_mask.tolist()
    step = act(envs, 0.5)
    assert envs.get_state()["positions"][0, 0] == pytest.approx(23)  # the ratio does count
    assert step.action_mask.all()
    act(envs, 0.5, gamma=15.0, alpha=4.0, noise=0.5, theta=30.0)
    assert envs.get_state()["positions"][1, 1] > 201
    assert envs.reset()[1].all()  # a colony's own total goes on over episodes


def test_specs_are_in_the_units_of_the_env():
    ratio = Durotaxis(1, np.zeros(1, np.uint64), max_delete_ratio=0.5)
    low, high = (0.0, 0.5, 0.5, 0.05, -30.0), (0.5, 15.0, 4.0, 0.5, 30.0)
    assert ratio.action_spec == BoxActions(low, high, (5,))
    per_node = Durotaxis(1, np.zeros(1, np.uint64), action="per_node")
    assert per_node.action_spec == NodeActions(2, BoxActions(low[1:], high[1:], (4,)))
    assert ratio.reward_parts == ("total", "graph", "spawn", "delete", "edge", "total_node")


@pytest.mark.parametrize("options", [{"action": "per_node"}, {"curriculum_steps": 50}, {"substrate": "random"}])
def test_every_mode_keeps_the_contract(options):
    results = check_env(EnvSettings(id="durotaxis", options={**options, "max_steps": 20}), 300)
    assert [result for result in results if not result.ok] == []


def test_wrong_actions_are_refused_and_change_nothing():
    envs = Durotaxis(2, derive_seeds(0, 2, "env"))
    envs.reset()
    before = envs.get_state()
    numbers = np.zeros((2, 5), np.float32)
    for wrong in (numbers[:1], numbers[:, :4], numbers[0]):
        with pytest.raises(EnvError, match="shape"):
            envs.step(wrong)
    with pytest.raises(EnvError, match="is a NodeAction"):
        envs.step(NodeAction(numbers, np.zeros(10, np.int64)))
    with pytest.raises(EnvError, match="NaN"):
        envs.step(np.full((2, 5), np.nan, np.float32))
    assert all(np.array_equal(before[name], value) for name, value in envs.get_state().items())


def test_wrong_choices_are_refused():
    envs = Durotaxis(2, derive_seeds(0, 2, "env"), action="per_node")
    envs.reset()
    numbers = np.zeros((2, 4), np.float32)
    with pytest.raises(EnvError, match="9 choices were given for 10 nodes"):
        envs.step(NodeAction(numbers, np.zeros(9, np.int64)))
    with pytest.raises(EnvError, match="neither 0 nor 1"):
        envs.step(NodeAction(numbers, np.full(10, 2)))
    with pytest.raises(EnvError, match="is a ndarray"):
        envs.step(numbers)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"width": 5.0}, "`width`"),
        ({"height": float("nan")}, "`height`"),
        ({"max_nodes": 1}, "`max_nodes`"),
        ({"start_nodes": 11, "max_nodes": 10}, "`start_nodes` is 11; expected 1 to 10"),
        ({"max_delete_ratio": 1.5}, "`max_delete_ratio`"),
        ({"curriculum_steps": 5, "action": "per_node"}, "no delete ratio"),
        ({"substrate": "random", "m": 1.0}, "draws them"),
        ({"m": -1.0}, "stiff at the left"),
        ({"substrate": "exponential", "m": 99.0}, "inf at the right"),
        ({"max_steps": -1}, "`max_steps`"),
    ],
)
def test_impossible_settings_are_refused(options, words):
    with pytest.raises(SettingsError, match=words):
        DurotaxisSettings(**options)


@pytest.mark.parametrize("action", ["ratio", "per_node"])
def test_the_forward_rule_reaches_the_goal_with_a_small_colony(action):
    envs = Durotaxis(4, derive_seeds(0, 4, "env"), action=action)
    rule = make_baseline("forward", envs, "durotaxis", 0)
    (obs, mask), ended = envs.reset(), 0
    for _ in range(50):
        step = envs.step(rule.act(obs, mask))
        done = step.terminated | step.truncated
        assert step.episode_stats["success"][done].all()
        assert (step.final_obs.num_nodes == 6).all()
        ended += done.sum()
        obs, mask = step.obs, step.action_mask
    assert ended == 4
