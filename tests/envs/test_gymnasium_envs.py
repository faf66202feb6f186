import gymnasium
import numpy as np
import pytest

from hotloop.cli.main import main
from hotloop.core.errors import EnvError
from hotloop.envs.gymnasium_envs import GymnasiumEnvs, gymnasium_seeds
from hotloop.envs.gymnasium_vector import GymnasiumVector
from tests.envs import planted_envs as planted

SEEDS = np.array([2**63 + 5, 11], np.uint64)
ACTIONS = np.array([0, 1])


def pair(kind: type, **options: object) -> GymnasiumEnvs:
    return GymnasiumEnvs("planted", [kind(), kind()], SEEDS, **options)


def counts(obs: np.ndarray) -> list[float]:
    return obs[:, 0].tolist()


def test_an_ended_episode_shows_its_last_observation_and_the_next_ones_first():
    envs = pair(planted.Counter)
    envs.reset()
    steps = [envs.step(ACTIONS) for _ in range(6)]
    assert [counts(step.obs) for step in steps] == [[1, 1], [2, 2], [3, 3], [4, 4], [0, 0], [1, 1]]
    assert [counts(step.final_obs) for step in steps] == [[1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [1, 1]]
    assert [step.terminated.all() for step in steps] == [False, False, False, False, True, False]
    assert steps[0].reward.tolist() == [0.0, 1.0]
    assert steps[0].valid is None


def test_play_equals_a_plain_loop_over_the_same_env():
    envs = GymnasiumEnvs("CartPole-v1", [gymnasium.make("CartPole-v1", disable_env_checker=True)], SEEDS[1:])
    env = gymnasium.make("CartPole-v1", disable_env_checker=True)
    obs, _ = env.reset(seed=11)
    assert np.array_equal(envs.reset()[0][0], obs)
    for action in np.random.default_rng(0).integers(0, 2, 300):
        obs, reward, terminated, truncated, _ = env.step(action)
        step = envs.step(np.array([action]))
        assert np.array_equal(step.final_obs[0], obs)
        assert (step.reward[0], step.terminated[0], step.truncated[0]) == (reward, terminated, truncated)
        if terminated or truncated:
            obs, _ = env.reset()
        assert np.array_equal(step.obs[0], obs)


def test_the_seed_is_given_to_the_first_reset_only():
    class Listening(planted.Counter):
        heard: list = []

        def reset(self, *, seed=None, options=None):
            self.heard.append(seed)
            return super().reset(seed=seed)

    envs = pair(Listening)
    envs.reset()
    envs.reset()
    assert Listening.heard == [5, 11, None, None]  # 2^63 + 5 is 5 modulo 2^31
    assert gymnasium_seeds(SEEDS) == [5, 11]


def test_actions_are_translated_to_the_envs_own_numbering():
    envs = pair(planted.FromOne)
    obs, _ = envs.reset()
    assert obs[0].tolist() == [1, 0, 0, 0, 0, 0]
    step = envs.step(ACTIONS)
    assert step.reward.tolist() == [1.0, 2.0]
    assert step.obs[0].tolist() == [0, 1, 0, 0, 0, 0]


def test_masks_come_from_info_or_from_a_method():
    for kind in (planted.MaskInInfo, planted.MaskMethod):
        envs = pair(kind)
        assert envs.has_action_mask
        _, mask = envs.reset()
        assert mask.tolist() == [[True, False]] * 2
        steps = [envs.step(ACTIONS * 0) for _ in range(5)]
        assert steps[0].action_mask.tolist() == [[False, True]] * 2
        assert steps[4].action_mask.tolist() == [[True, False]] * 2  # the new episode's
        assert steps[4].final_action_mask.any(axis=1).all()


def test_a_mask_that_only_step_gives_is_an_error_that_names_it():
    envs = pair(planted.MaskInStepOnly)
    envs.reset()
    with pytest.raises(
        EnvError, match="env 0 returned `action_mask` in `info`, which the first `reset` of each env did"
    ):
        envs.step(ACTIONS)
    with pytest.raises(
        EnvError, match="env 1 returned `action_mask` in `info`, which the first `reset` of each env did"
    ):
        GymnasiumEnvs("mine", [planted.Counter(), planted.MaskInInfo()], SEEDS)
    vector = GymnasiumVector("mine", planted.LateMasks(2), SEEDS)
    vector.reset()
    with pytest.raises(EnvError, match="returned `action_mask` in `info`, which the first `reset` of each env did not"):
        vector.step(ACTIONS)


def test_envs_check_says_that_only_step_gives_a_mask(capsys):
    assert main(["envs", "check", f"{planted.__file__}:MaskInStepOnly"]) == 1
    assert "returned `action_mask` in `info`, which the first `reset`" in capsys.readouterr().out


def test_an_error_names_env_index_steps_and_field_with_a_hint():
    envs = GymnasiumEnvs("mine", [planted.Counter(), planted.WrongShape()], SEEDS)
    envs.reset()
    envs.step(ACTIONS)
    envs.step(ACTIONS)
    with pytest.raises(EnvError) as caught:
        envs.step(ACTIONS)
    assert caught.value.message == (
        "`mine` env 1 returned `obs` of shape (3,) where its space has shape (2,), after 2 steps of each env"
    )
    assert caught.value.hint == "run `hotloop envs check mine` for the whole contract"
    envs.close()


def test_close_is_safe_even_where_the_env_cannot_close():
    envs = pair(planted.CloseFails)
    envs.close()
    envs.close()


def test_adapters_say_that_they_cannot_save_state():
    envs = pair(planted.Counter)
    assert not envs.saves_state
    with pytest.raises(EnvError, match="cannot save"):
        envs.get_state()


def vector(kind: type) -> GymnasiumVector:
    envs = GymnasiumVector("planted", kind(2), SEEDS)
    envs.reset()
    return envs


def test_next_step_reset_comes_out_as_an_invalid_row():
    envs = vector(planted.NextStepVector)
    steps = [envs.step(ACTIONS) for _ in range(7)]
    assert [counts(step.obs)[0] for step in steps] == [1, 2, 3, 4, 5, 0, 1]
    assert [step.terminated[0] for step in steps] == [False] * 4 + [True, False, False]
    assert [step.valid is None for step in steps] == [True] * 5 + [False, True]
    assert steps[5].valid.tolist() == [False, False]
    assert steps[5].reward.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("kind", [planted.SameStepVector, planted.DisabledVector])
def test_other_modes_restart_in_the_same_step(kind):
    envs = vector(kind)
    steps = [envs.step(ACTIONS) for _ in range(6)]
    assert [counts(step.obs)[0] for step in steps] == [1, 2, 3, 4, 0, 1]
    assert [counts(step.final_obs)[0] for step in steps] == [1, 2, 3, 4, 5, 1]
    assert all(step.valid is None for step in steps)


@pytest.mark.parametrize("kind", [planted.SameStepVector, planted.DisabledVector])
def test_vector_and_single_adapters_agree_on_the_same_seeds(kind):
    one, other = vector(kind), pair(planted.Counter)
    other.reset()
    for _ in range(12):
        left, right = one.step(ACTIONS), other.step(ACTIONS)
        assert np.array_equal(left.obs, right.obs)
        assert np.array_equal(left.final_obs, right.final_obs)


@pytest.mark.parametrize("kind", [planted.SameStepMasks, planted.DisabledMasks])
def test_vector_masks_belong_to_obs_and_final_obs(kind):
    envs = vector(kind)
    steps = [envs.step(ACTIONS) for _ in range(5)]
    assert steps[3].action_mask.tolist() == [[True, False]] * 2
    assert steps[4].action_mask.tolist() == [[True, False]] * 2
    assert steps[4].final_action_mask.tolist() == [[True, True]] * 2  # terminated: no action follows
