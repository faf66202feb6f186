"""Service chains as anybody's Gymnasium env."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from hotloop.core.errors import EnvError, SettingsError
from hotloop.envs.as_gymnasium import register
from hotloop.envs.contract import check_env as check_contract
from hotloop.presets.env_settings import EnvSettings
from hotloop.workloads.sfc import draw
from hotloop.workloads.sfc.gymnasium_env import ENV_ID, SfcEnv, SfcVectorEnv

FULL_ID = f"hotloop.workloads.sfc.gymnasium_env:{ENV_ID}"


@pytest.mark.parametrize("render_mode", ["rgb_array", "ansi"])
def test_gymnasiums_own_checker_is_content(render_mode):
    check_env(gymnasium.make(FULL_ID, render_mode=render_mode).unwrapped)


def test_registering_again_does_nothing():
    register(ENV_ID, SfcEnv, SfcVectorEnv)
    assert ENV_ID in gymnasium.registry


def test_env_i_of_a_batch_plays_what_a_single_env_with_its_seed_plays():
    options = {"max_episode_steps": 25, "max_data_centres": 6}
    batch, singles = SfcVectorEnv(3, **options), [SfcEnv(**options) for _ in range(3)]
    assert batch.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    obs, info = batch.reset(seed=5)
    for index, env in enumerate(singles):
        first, first_info = env.reset(seed=5 + index)
        np.testing.assert_array_equal(info["action_mask"][index], first_info["action_mask"])
        for name in obs:
            np.testing.assert_array_equal(obs[name][index], first[name])
    pick, ended = np.random.default_rng(0), 0
    for _ in range(60):
        action = (pick.random((3, 13)) * info["action_mask"]).argmax(axis=1)
        obs, reward, terminated, truncated, info = batch.step(action)
        for index, env in enumerate(singles):
            one = env.step(action[index])
            assert one[1:4] == (reward[index], terminated[index], truncated[index])
            done = one[2] or one[3]
            last = info["final_obs"][index] if done else {name: obs[name][index] for name in obs}
            for name in last:
                np.testing.assert_array_equal(last[name], one[0][name])
            if done:
                ended += 1
                assert one[4]["acceptance"] == info["final_info"]["acceptance"][index]
                env.reset()
    assert ended == 6


def test_its_options_are_those_of_the_workload():
    with pytest.raises(SettingsError, match="max_data_centres"):
        gymnasium.make(FULL_ID, max_data_centers=7)
    with pytest.raises(EnvError, match="render_mode"):
        gymnasium.make_vec(FULL_ID, num_envs=2, render_mode="human")
    assert gymnasium.make_vec(FULL_ID, num_envs=2, max_data_centres=8).reset()[0]["placed"].shape == (2, 6, 13)
    with pytest.raises(EnvError, match="not in"):
        gymnasium.make(FULL_ID, disable_env_checker=True).unwrapped.step(13)


@pytest.mark.parametrize("dict_obs", ["keep", "flatten"])
def test_through_gymnasium_it_keeps_the_contract_too(dict_obs):
    results = check_contract(EnvSettings(id=FULL_ID, dict_obs=dict_obs), env_steps=300)
    assert [result for result in results if not result.ok] == []


def test_a_picture_shows_centres_and_services_and_a_text_too():
    env = gymnasium.make(FULL_ID, render_mode="rgb_array", min_data_centres=4).unwrapped
    env.reset(seed=1)
    assert env.render().shape == (320, 480, 3)
    state = env._envs.get_state()
    plain = draw.text(state, 0, color=False).split("\n")
    assert plain[0] == "   0.00 ms   round 1 of 5   acceptance   0.0%"
    assert sum(line.startswith((" DC", ">DC")) for line in plain) == 4
    assert sum(line.startswith(">DC") for line in plain) == 1
    assert sum("pending" in line for line in plain) == 6
    assert "\x1b[38;2;" in draw.text(state, 0)
