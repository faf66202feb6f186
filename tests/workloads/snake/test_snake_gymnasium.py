"""Snake as anybody's Gymnasium env."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from hotloop.core.errors import EnvError, SettingsError
from hotloop.core.rng import derive_seeds
from hotloop.envs.as_gymnasium import register
from hotloop.envs.contract import check_env as check_contract
from hotloop.envs.registry import make_envs
from hotloop.presets.env_settings import EnvSettings
from hotloop.workloads.snake import draw
from hotloop.workloads.snake.gymnasium_env import ENV_ID, SnakeEnv, SnakeVectorEnv

FULL_ID = f"hotloop.workloads.snake.gymnasium_env:{ENV_ID}"


@pytest.mark.parametrize("render_mode", ["rgb_array", "ansi"])
@pytest.mark.parametrize("observation", ["basic", "enhanced", "foresight", "grid"])
def test_gymnasiums_own_checker_is_content(observation, render_mode):
    env = gymnasium.make(FULL_ID, observation=observation, render_mode=render_mode)
    check_env(env.unwrapped)


def test_registering_again_does_nothing():
    register(ENV_ID, SnakeEnv, SnakeVectorEnv)
    assert ENV_ID in gymnasium.registry


def test_env_i_of_a_batch_plays_what_a_single_env_with_its_seed_plays():
    batch = gymnasium.make_vec(FULL_ID, num_envs=3, observation="flood_fill", max_steps=30)
    singles = [gymnasium.make(FULL_ID, observation="flood_fill", max_steps=30) for _ in range(3)]
    assert batch.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    obs, _ = batch.reset(seed=5)
    np.testing.assert_array_equal(obs, [env.reset(seed=5 + i)[0] for i, env in enumerate(singles)])
    draw_action, ended = np.random.default_rng(0), 0
    for _ in range(120):
        action = draw_action.integers(0, 3, 3)
        obs, reward, terminated, truncated, info = batch.step(action)
        for index, env in enumerate(singles):
            one = env.step(action[index])
            assert one[1:4] == (reward[index], terminated[index], truncated[index])
            last = info["final_obs"][index] if one[2] or one[3] else obs[index]
            np.testing.assert_array_equal(last, one[0])
            if one[2] or one[3]:
                ended += 1
                assert one[4]["score"] == info["final_info"]["score"][index]
                np.testing.assert_array_equal(obs[index], env.reset()[0])
    assert ended > 3


def test_its_options_are_those_of_the_game():
    with pytest.raises(SettingsError, match="board_size"):
        gymnasium.make(FULL_ID, bord_size=7)
    with pytest.raises(EnvError, match="render_mode"):
        gymnasium.make_vec(FULL_ID, num_envs=2, render_mode="human")
    assert gymnasium.make(FULL_ID, board_size=7, observation="grid").observation_space.shape == (7, 7, 3)


def test_a_finished_game_is_still_shown_as_it_ended():
    env = gymnasium.make(FULL_ID, render_mode="rgb_array")
    env.reset(seed=0)
    done = False
    while not done:
        before = env.render()
        _, _, done, _, info = env.step(0)  # straight into the wall
    np.testing.assert_array_equal(env.render(), before)
    assert info["death_wall"]


def test_a_picture_shows_every_cell_and_a_text_too():
    env = gymnasium.make(FULL_ID, render_mode="rgb_array", board_size=8).unwrapped
    env.reset(seed=1)
    state = env._envs.get_state()
    assert env.render().shape == (320, 320, 3)
    colors = draw.colors(state, 0)
    assert tuple(colors[4, 4]) == draw.FACE
    assert (colors == draw.APPLE).all(axis=-1).sum() == 1
    plain = draw.text(state, 0, color=False).split("\n")
    assert plain[4].startswith(". . o o @ ")
    assert sum(line.count("*") for line in plain) == 1
    assert draw.text(state, 0).count("\x1b[48;2;") == 64


@pytest.mark.parametrize("env_id", ["snake", FULL_ID])
@pytest.mark.parametrize("options", [{"observation": "flood_fill"}, {"observation": "grid", "board_size": 6}])
def test_both_ways_to_make_it_keep_the_contract(env_id, options):
    results = check_contract(EnvSettings(id=env_id, options=options), env_steps=300)
    assert [result for result in results if not result.ok] == []


def test_its_options_come_from_the_settings():
    envs = make_envs(EnvSettings(id="snake", options={"observation": "flood_fill"}), 2, derive_seeds(0, 2, "env"))
    assert (envs.obs_spec.shape, envs.action_spec.count) == ((14,), 3)
    with pytest.raises(SettingsError, match="did you mean `board_size`"):
        make_envs(EnvSettings(id="snake", options={"boardsize": 8}), 1, derive_seeds(0, 1, "env"))
