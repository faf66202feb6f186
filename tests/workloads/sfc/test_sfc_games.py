"""Random play, held equal with the slow rules in every observation, mask, reward, flag and measure."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotloop.core.rng import derive_seeds
from hotloop.workloads.sfc.env import Sfc
from tests.oracles.sfc_oracle import SfcOracle
from tests.oracles.snake_oracle import splitmix_tape


def play_both(seed, calls, choose, num_envs=2, **options):
    """Play ours beside the slow rules and compare after every step; the measures of every episode."""
    seeds = derive_seeds(seed, num_envs, "env")
    ours, slow = Sfc(num_envs, seeds, **options), [SfcOracle(splitmix_tape(int(one)), **options) for one in seeds]
    obs, mask = ours.reset()
    seen = [look(one) for one in slow]
    compare(obs, mask, seen)
    ended = []
    for _ in range(calls):
        action = np.array([choose(allowed) for allowed, _ in seen])
        step = ours.step(action)
        answers = [one.step(int(act)) for one, act in zip(slow, action, strict=True)]
        reward, terminated, truncated = (np.array(values) for values in zip(*answers, strict=True))
        np.testing.assert_array_equal(step.reward, reward.astype(np.float32))
        np.testing.assert_array_equal(step.terminated, terminated)
        np.testing.assert_array_equal(step.truncated, truncated)
        seen = [look(one) for one in slow]
        compare(step.final_obs, step.final_action_mask, seen)
        for index in np.flatnonzero(terminated | truncated):
            ended.append({name: values[index] for name, values in step.episode_stats.items()})
            expected = slow[index].stats()
            assert ended[-1].keys() == expected.keys()
            for name, value in expected.items():
                np.testing.assert_allclose(ended[-1][name], value, rtol=1e-12, err_msg=name)
            slow[index].restart()
            seen[index] = look(slow[index])
        compare(step.obs, step.action_mask, seen)
    return ended, slow


def look(one):
    """The mask and the observation by the slow rules, which take their time: once for each state."""
    return one.action_mask(), one.observe()


def compare(obs, mask, seen):
    np.testing.assert_array_equal(mask, [allowed for allowed, _ in seen])
    for name, part in obs.items():
        expected = np.stack([parts[name] for _, parts in seen])
        np.testing.assert_allclose(part, expected, rtol=2e-7, atol=0, err_msg=name)


def choosing(seed, wrong=0.05, uninstall=0.15, wait=0.05):
    """Mostly allowed allocations, now and then anything at all."""
    draw = np.random.default_rng(seed)

    def choose(mask):
        if draw.random() < wrong:
            return int(draw.integers(13))
        weight = np.array([1.0] * 6 + [uninstall] * 6 + [wait]) * mask
        return int(draw.choice(13, p=weight / weight.sum()))

    return choose


@given(
    centres=st.integers(2, 6), wrong=st.sampled_from([0.02, 0.5]), seed=st.integers(0, 2**32), limit=st.integers(20, 60)
)
@settings(max_examples=5, deadline=None)
def test_every_observation_mask_reward_and_measure_equals_the_slow_rules(centres, wrong, seed, limit):
    options = {"min_data_centres": 2, "max_data_centres": centres, "max_request_count": 2, "max_episode_steps": limit}
    play_both(seed, 50, choosing(seed, wrong), **options)


def test_a_second_round_and_the_first_limits_equal_the_slow_rules():
    """450 units: massive IoT (5 ms) is not yet dropped, the second round has come."""
    _, slow = play_both(3, 450, choosing(3), num_envs=1, min_data_centres=3, max_data_centres=3, min_request_count=2)
    assert slow[0].arrivals == 2
    assert sum(one.state == "satisfied" for one in slow[0].requests) > 3


@pytest.mark.slow
@given(centres=st.integers(2, 8), seed=st.integers(0, 2**32))
@settings(max_examples=4, deadline=None)
def test_whole_episodes_equal_the_slow_rules(centres, seed):
    options = {"min_data_centres": centres, "max_data_centres": centres, "max_request_count": 1}
    ended, _ = play_both(seed, 10_001, choosing(seed), num_envs=1, **options)
    assert len(ended) >= 1
