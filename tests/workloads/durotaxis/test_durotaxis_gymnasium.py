"""Durotaxis as anybody's Gymnasium env."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import GraphInstance
from gymnasium.utils.env_checker import check_env

from hotloop.core.errors import EnvError, SettingsError
from hotloop.core.rng import derive_seed
from hotloop.envs.as_gymnasium import register
from hotloop.workloads.durotaxis.env import Durotaxis
from hotloop.workloads.durotaxis.gymnasium_env import ENV_ID, DurotaxisEnv

FULL_ID = f"hotloop.workloads.durotaxis.gymnasium_env:{ENV_ID}"


def make(**options):
    return gymnasium.make(FULL_ID, disable_env_checker=True, **options).unwrapped


@pytest.mark.filterwarnings("ignore:.*we recommend using a symmetric and normalized space")
@pytest.mark.parametrize("options", [{}, {"action": "per_node"}, {"curriculum_steps": 9}])
def test_gymnasiums_own_checker_is_content(options):
    check_env(make(**options))


def test_registering_again_does_nothing():
    register(ENV_ID, DurotaxisEnv)
    assert ENV_ID in gymnasium.registry


def test_it_plays_what_the_batched_env_plays():
    env, batched = (
        make(substrate="random"),
        Durotaxis(1, np.array([derive_seed(5, "durotaxis")], np.uint64), substrate="random"),
    )
    obs, info = env.reset(seed=5)
    graphs, _ = batched.reset()
    env.action_space.seed(0)
    for _ in range(40):
        assert isinstance(obs, GraphInstance)
        np.testing.assert_array_equal(obs.nodes, graphs.nodes)
        np.testing.assert_array_equal(obs.edges, graphs.edge_features)
        np.testing.assert_array_equal(obs.edge_links, graphs.edges)
        np.testing.assert_array_equal(info["graph"], graphs.graph[0])
        action = env.action_space.sample()
        obs, reward, terminated, truncated, info = env.step(action)
        step = batched.step(action[None])
        assert (reward, terminated, truncated) == (step.reward[0], step.terminated[0], step.truncated[0])
        if terminated or truncated:
            assert info["success"] == step.episode_stats["success"][0]
            obs, info = env.reset()
        graphs = step.obs


def test_where_nodes_choose_only_those_that_are_there_count():
    env = make(action="per_node", max_nodes=20)
    env.reset(seed=0)
    choices = np.ones(20, np.int8)
    choices[:2] = 0
    obs, *_ = env.step({"numbers": np.array([5, 2, 0.5, 0], np.float32), "choices": choices})
    assert len(obs.nodes) == 4


def test_wrong_options_and_actions_are_named():
    with pytest.raises(SettingsError, match="max_node"):
        make(max_node=7)
    env = make()
    env.reset(seed=0)
    with pytest.raises(EnvError, match="not in"):
        env.step(np.zeros(4, np.float32))
