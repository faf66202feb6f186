import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotloop.core.errors import EnvError
from hotloop.core.rng import derive_seeds
from hotloop.envs.cartpole import CartPole
from tests.oracles.cartpole_gymnasium import CartPoleOracle

ORACLE = CartPoleOracle()


def made(num_envs: int = 1, **options: object) -> CartPole:
    envs = CartPole(num_envs, derive_seeds(7, num_envs, "env"), **options)
    envs.reset()
    return envs


def put(envs: CartPole, body: list[list[float]], elapsed: list[int]) -> None:
    envs.set_state({**envs.get_state(), "body": np.array(body), "elapsed": np.array(elapsed, np.int64)})


def test_a_push_to_the_right_from_rest_accelerates_the_cart_by_force_over_mass():
    envs = made()
    put(envs, [[0.0, 0.0, 0.0, 0.0]], [0])
    step = envs.step(np.array([1]))
    push = 10.0 / 1.1
    angular = -push / (0.5 * (4 / 3 - 0.1 / 1.1))  # pole upright: cosine 1, sine 0
    linear = push - 0.05 * angular / 1.1
    np.testing.assert_allclose(step.obs[0], [0.0, 0.02 * linear, 0.0, 0.02 * angular], rtol=1e-6)
    assert step.reward.tolist() == [1.0]
    assert step.obs.dtype == step.reward.dtype == np.float32


finite = st.floats(-3.0, 3.0)


@given(body=st.tuples(finite, finite, st.floats(-0.25, 0.25), finite), action=st.integers(0, 1), late=st.booleans())
@settings(max_examples=200, deadline=None)
def test_one_step_from_any_state_equals_gymnasium(body, action, late):
    envs = made()
    elapsed = 499 if late else 3
    put(envs, [list(body)], [elapsed])
    step = envs.step(np.array([action]))
    obs, reward, terminated, truncated, state = ORACLE.step_from(np.array(body), elapsed, action)
    np.testing.assert_allclose(step.final_obs[0], obs, rtol=1e-6, atol=1e-30)
    assert (step.reward[0], step.terminated[0], step.truncated[0]) == (reward, terminated, truncated)
    if not (terminated or truncated):
        np.testing.assert_allclose(envs.get_state()["body"][0], state, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("sutton", [False, True])
def test_whole_episodes_of_random_play_equal_gymnasium(sutton):
    envs = made(max_episode_steps=25, sutton_barto_reward=sutton)
    env = gymnasium.make("CartPole-v1", disable_env_checker=True, max_episode_steps=25, sutton_barto_reward=sutton)
    draw = np.random.default_rng(0)
    ends = set()
    for _ in range(30):
        env.reset(seed=0)
        env.unwrapped.state = envs.get_state()["body"][0]
        done = False
        while not done:
            action = draw.integers(0, 2, 1)
            step = envs.step(action)
            obs, reward, terminated, truncated, _ = env.step(int(action[0]))
            np.testing.assert_allclose(step.final_obs[0], obs, rtol=1e-5, atol=1e-7)
            assert (step.reward[0], step.terminated[0], step.truncated[0]) == (reward, terminated, truncated)
            done = terminated or truncated
        ends.add((terminated, truncated))
    assert {(True, False), (False, True)} <= ends


def test_falling_on_the_last_step_sets_both_flags():
    envs = made()
    put(envs, [[0.0, 0.0, 0.2, 3.0]], [499])
    step = envs.step(np.array([0]))
    assert step.terminated.tolist() == step.truncated.tolist() == [True]


def test_only_the_env_that_ended_starts_anew_and_shows_its_last_observation_apart():
    envs = made(2)
    put(envs, [[0.0, 0.0, 0.2, 3.0], [0.0, 0.0, 0.0, 0.0]], [10, 20])
    step = envs.step(np.array([0, 0]))
    assert step.terminated.tolist() == [True, False]
    assert step.final_obs[0, 2] > 0.2095
    assert np.abs(step.obs[0]).max() <= 0.05
    assert np.array_equal(step.obs[1], step.final_obs[1])
    assert envs.get_state()["elapsed"].tolist() == [0, 21]


def test_starts_are_uniform_between_minus_and_plus_five_hundredths():
    obs, _ = CartPole(5000, derive_seeds(1, 5000, "env")).reset()
    assert np.abs(obs).max() <= 0.05
    assert np.abs(obs.mean(axis=0)).max() < 0.002  # standard error 0.0004
    np.testing.assert_allclose(obs.std(axis=0), 0.1 / np.sqrt(12), rtol=0.05)


def test_a_state_of_other_size_is_refused():
    with pytest.raises(EnvError, match="as many envs as were saved"):
        made(2).set_state(made(3).get_state())
