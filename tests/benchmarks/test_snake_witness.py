"""The plain program of the proof cases plays what the env plays."""

import numpy as np
import pytest

from benchmarks.witnesses.snake_env import SnakeGames
from hotloop.core.rng import derive_seeds
from hotloop.workloads.snake.env import Snake
from tests.oracles.snake_oracle import splitmix_tape

MODES = {"basic": {}, "flood_fill": {"use_flood_fill": True}, "enhanced": {"use_enhanced": True}}


@pytest.mark.parametrize("mode", MODES)
def test_the_plain_program_agrees_on_the_same_tape(mode):
    seeds = derive_seeds(11, 6, "env")
    tapes = [splitmix_tape(int(seed)) for seed in seeds]
    ours = Snake(6, seeds, observation=mode, max_steps=60, board_size=7)
    plain = SnakeGames(6, lambda game, count: tapes[game](count), grid_size=7, max_steps=60, **MODES[mode])
    obs = ours.reset()[0]
    np.testing.assert_array_equal(obs, plain.reset())
    draw, ended = np.random.default_rng(2), 0
    for _ in range(300):
        action = np.where(draw.random(6) < 0.9, np.argmin(obs[:, :3], axis=1), draw.integers(0, 3, 6))
        step, (obs, reward, terminated, truncated, final_obs, score) = ours.step(action), plain.step(action)
        np.testing.assert_array_equal(step.obs, obs)
        np.testing.assert_array_equal(step.final_obs, final_obs)
        np.testing.assert_array_equal(step.reward, reward)
        np.testing.assert_array_equal(step.terminated, terminated)
        np.testing.assert_array_equal(step.truncated, truncated)
        done = terminated | truncated
        np.testing.assert_array_equal(step.episode_stats["score"][done], score[done])
        ended += done.sum()
    assert ended > 20
