"""How an agent acts: shares of random actions, masks, and when the network is asked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.core.schedules import Counters, Schedule
from hotloop.learners.dqn import EpsilonGreedy, GreedyQPolicy


class FakeLane:
    """Always prefers one action, and remembers what it was asked."""

    def __init__(self, action: int = 2) -> None:
        self.action, self.asked = action, []

    def infer(self, obs, action_mask=None, noisy=False):
        rows = len(next(iter(obs.values())) if isinstance(obs, dict) else obs)
        self.asked.append((action_mask, noisy))
        return (np.full(rows, self.action, np.int64),)


def made(epsilon: float, num_actions: int = 4, seed: int = 1) -> tuple[FakeLane, EpsilonGreedy]:
    lane = FakeLane()
    return lane, EpsilonGreedy(lane, Schedule(start=epsilon), Counters(), num_actions, seed)


def within_chance(count: int, draws: int, share: float) -> bool:
    return abs(count - draws * share) <= 4.5 * np.sqrt(draws * share * (1 - share)) + 1e-9


def test_reseeded_it_draws_as_one_that_was_made_with_that_seed():
    (_, policy), (_, other) = made(epsilon=1.0, seed=1), made(epsilon=1.0, seed=2)
    policy.act(np.zeros((8, 3)), None)
    policy.reseed(2)
    assert np.array_equal(policy.act(np.zeros((64, 3)), None)[0], other.act(np.zeros((64, 3)), None)[0])


def test_random_actions_come_as_often_as_epsilon_says():
    _, policy = made(epsilon=0.4)
    actions = policy.act(np.zeros((40_000, 3)), None)[0]
    counts = np.bincount(actions, minlength=4)
    for action, share in enumerate([0.1, 0.1, 0.7, 0.1]):  # 0.4 / 4 each, and 0.6 more for the best
        assert within_chance(counts[action], 40_000, share)
    assert actions.dtype == np.int64


def test_all_random_never_asks_the_lane_and_all_greedy_always_does():
    lane, policy = made(epsilon=1.0)
    for _ in range(100):
        policy.act(np.zeros((8, 3)), None)
        policy.act(np.zeros((8, 3)), np.ones((8, 4), bool))
    assert lane.asked == []
    lane, policy = made(epsilon=0.0)
    for _ in range(100):
        assert policy.act(np.zeros((8, 3)), None)[0].tolist() == [2] * 8
    assert len(lane.asked) == 100
    assert all(noisy for _, noisy in lane.asked)


@given(st.integers(0, 2**63), st.integers(1, 7), st.floats(0, 1))
def test_forbidden_actions_are_never_drawn(seed, num_actions, epsilon):
    mask = np.random.default_rng(seed).random((50, num_actions)) < 0.3
    mask[np.arange(50), np.arange(50) % num_actions] = True

    class Obedient(FakeLane):
        def infer(self, obs, action_mask=None, noisy=False):
            return (action_mask.argmax(1),)

    policy = EpsilonGreedy(Obedient(), Schedule(start=epsilon), Counters(), num_actions, seed)
    actions = policy.act(np.zeros((50, 2)), mask)[0]
    assert mask[np.arange(50), actions].all()


def test_allowed_actions_are_drawn_evenly():
    _, policy = made(epsilon=1.0)
    mask = np.tile([True, False, True, True], (30_000, 1))
    counts = np.bincount(policy.act(np.zeros((30_000, 1)), mask)[0], minlength=4)
    assert counts[1] == 0
    assert all(within_chance(counts[action], 30_000, 1 / 3) for action in (0, 2, 3))


def test_greedy_rows_get_the_lanes_action_and_the_lane_gets_the_mask():
    lane, policy = made(epsilon=0.5)
    mask = np.ones((1_000, 4), bool)
    actions = policy.act(np.zeros((1_000, 3)), mask)[0]
    assert within_chance((actions == 2).sum(), 1_000, 0.625)
    assert lane.asked[0][0] is mask


def test_dict_observations_are_counted_by_their_first_part():
    _, policy = made(epsilon=1.0)
    assert policy.act({"a": np.zeros((5, 2)), "b": np.zeros((5, 9))}, None)[0].shape == (5,)


def test_epsilon_follows_its_schedule():
    counters = Counters()
    policy = EpsilonGreedy(FakeLane(), Schedule(kind="linear", start=1.0, end=0.0, over=10), counters, 2, 0)
    assert policy.epsilon == 1.0
    counters.env_steps = 5
    assert policy.epsilon == 0.5


def test_a_restored_policy_continues_exactly():
    _, one = made(epsilon=0.7, seed=2**64 - 1)
    _, other = made(epsilon=0.7, seed=3)
    one.act(np.zeros((5, 1)), None)
    saved = one.state()
    other.load_state(saved)
    first = [one.act(np.zeros((9, 1)), None)[0].tolist() for _ in range(5)]
    assert [other.act(np.zeros((9, 1)), None)[0].tolist() for _ in range(5)] == first
    again = made(epsilon=0.7, seed=3)[1]
    again.load_state(saved)
    assert again.act(np.zeros((9, 1)), None)[0].tolist() == first[0]  # the state was a copy


@pytest.mark.parametrize("mask", [None, np.ones((3, 4), bool)])
def test_evaluation_is_greedy_and_without_noise(mask):
    lane = FakeLane()
    assert GreedyQPolicy(lane).act(np.zeros((3, 1)), mask).tolist() == [2, 2, 2]
    assert lane.asked == [(mask, False)]
