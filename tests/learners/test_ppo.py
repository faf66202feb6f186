"""The actor-critic learner: advantages of a rollout, schedules, adaptation, weights and state."""

from __future__ import annotations

import numpy as np
import pytest

from hotloop.core.types import UpdateStats
from hotloop.lanes.policy_objective import KL
from tests.lanes.policy_rollouts import ENVS, FEATURES, STEPS, make_learner, make_rollout

LAST = np.zeros((ENVS, FEATURES), np.float32)


def stats_with(kl: float) -> UpdateStats:
    scalars = np.zeros((7, 8), np.float32)
    scalars[KL, 4:] = kl  # of the last epoch
    return UpdateStats(scalars)


def test_a_time_out_bootstraps_from_the_value_of_its_final_observation():
    learner = make_learner(gamma=0.5, gae_lambda=0.0)
    rollout = make_rollout(learner)
    rollout.reward[:], rollout.truncated[3, 1] = 1.0, True
    final = np.full((1, FEATURES), 2.0, np.float32)
    learner.compute_advantages(rollout, LAST, (np.array([3]), np.array([1]), final))
    expected = 1.0 + 0.5 * learner.lane.infer(final)[1][0] - rollout.value[3, 1]
    assert rollout.advantage[3, 1] == pytest.approx(expected, rel=1e-5)
    last = 1.0 + 0.5 * learner.lane.infer(LAST)[1][0] - rollout.value[STEPS - 1, 0]
    assert rollout.advantage[STEPS - 1, 0] == pytest.approx(last, rel=1e-5)


def test_advantages_of_a_whole_rollout_can_be_normalized_at_once():
    learner = make_learner(normalize_advantage="rollout")
    rollout = make_rollout(learner, ignored=True)
    rollout.reward[:] = np.random.default_rng(0).normal(size=(STEPS, ENVS))
    learner.compute_advantages(rollout, LAST, None)
    counted = rollout.advantage[rollout.weight > 0]
    assert counted.mean() == pytest.approx(0.0, abs=1e-5)
    assert counted.std() == pytest.approx(1.0, abs=1e-4)


def test_learning_rate_and_clip_follow_their_schedules(monkeypatch):
    half = {"kind": "linear", "start": 1.0, "end": 0.0, "over": 100}
    learner = make_learner(clip_range=0.2, clip_schedule=half, optimizer={"learning_rate": 0.1, "lr_schedule": half})
    rollout, clips = make_rollout(learner), []
    monkeypatch.setattr(learner.lane, "update", lambda *given: clips.append(given) or stats_with(0.0))
    learner.counters.env_steps = 50
    learner.update(rollout)
    data, rates, *_ = clips[0]
    assert data.clip == pytest.approx(0.1)
    assert rates == pytest.approx(np.full(8, 0.05))


def test_a_learning_rate_over_updates_changes_within_a_rollout():
    schedule = {"kind": "linear", "start": 1.0, "end": 0.0, "over": 10, "unit": "updates"}
    learner = make_learner(optimizer={"learning_rate": 1.0, "lr_schedule": schedule})
    learner.counters.updates = 2
    assert learner.learning_rates()[:3] == pytest.approx([0.8, 0.7, 0.6])


@pytest.mark.parametrize(("kl", "scale"), [(0.021, 1 / 1.5), (0.01, 1.0), (0.004, 1.5)])
def test_the_learning_rate_adapts_to_how_far_the_policy_moved(monkeypatch, kl, scale):
    learner = make_learner(kl_target=0.01, optimizer={"learning_rate": 0.1})
    monkeypatch.setattr(learner.lane, "update", lambda *given: stats_with(kl))
    learner.update(make_rollout(learner))
    assert learner.learning_rates()[0] == pytest.approx(0.1 * scale)


def test_the_adaptation_has_bounds(monkeypatch):
    learner = make_learner(kl_target=0.01)
    monkeypatch.setattr(learner.lane, "update", lambda *given: stats_with(1.0))
    for _ in range(50):
        learner.update(make_rollout(learner))
    assert learner.rates.scale == pytest.approx(0.01)


def test_weights_hold_parameters_and_what_observations_are_normalized_by():
    one, other = (make_learner(normalize={"obs": True}, seed=seed) for seed in (0, 1))
    one.obs_normalizer.absorb(np.random.default_rng(0).normal(3.0, 2.0, (50, FEATURES)).astype(np.float32))
    one.obs_normalizer.refresh()
    other.load_weights(one.weights())
    obs = np.random.default_rng(1).normal(size=(4, FEATURES)).astype(np.float32)
    for mine, theirs in zip(one.lane.infer(one.normalize(obs)), other.lane.infer(other.normalize(obs)), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert not np.array_equal(one.normalize(obs), obs)


def test_a_restored_learner_continues_exactly():
    tree = {"normalize": {"obs": True, "reward": True}, "kl_target": 0.01}
    one, other = make_learner(**tree), make_learner(**tree, seed=5)

    def go_on(learner, count):
        rollout = make_rollout(one, seed=count)
        rollout.reward[:] = 1.0
        learner.obs_normalizer.absorb(rollout.obs[0])
        learner.compute_advantages(rollout, LAST, None)
        learner.update(rollout)

    go_on(one, 0)
    other.load_state(one.state())
    rollouts = [make_rollout(one, seed=9) for _ in range(2)]
    for learner, rollout in zip((one, other), rollouts, strict=True):
        learner.compute_advantages(rollout, LAST, None)
        learner.update(rollout)
    assert one.counters.updates == other.counters.updates == 16
    np.testing.assert_equal(one.state(), other.state())
