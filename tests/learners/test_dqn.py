"""The DQN learner: what it hands to its lane, and when its target follows."""

import numpy as np
import pytest

from hotloop.core.errors import NonFiniteError
from hotloop.core.schedules import Counters
from hotloop.core.settings import build
from hotloop.core.types import ArraySpec, Batch
from hotloop.learners.dqn import DQNLearner, q_spec
from hotloop.presets.dqn_settings import DQNSettings, OptimizerSettings, TargetSettings


def made(counters: Counters | None = None, **tree) -> DQNLearner:
    """On the plain lane: what a learner does is the same on all of them, and this one needs no compiling."""
    plain = {"network": {"hidden": [4]}, "learner": {"lane": "eager"}}
    return DQNLearner(build(DQNSettings, plain | tree), ArraySpec((3,)), 2, counters)


def batches_of(k: int, rows: int) -> Batch:
    draw = np.random.default_rng(0)
    floats = [draw.random((k, rows), dtype=np.float32) for _ in range(2)]
    obs = draw.random((2, k, rows, 3), dtype=np.float32)
    index = np.zeros((k, rows), np.int64)
    return Batch(obs[0], index, floats[0], floats[1], obs[1], np.ones((k, rows), np.float32), index)


def test_the_spec_says_what_the_settings_say():
    settings = DQNSettings(
        double=True,
        loss="mse",
        optimizer=OptimizerSettings(max_grad_norm=3.0, accumulate=2, beta1=0.8, beta2=0.9, eps=1e-5),
        target=TargetSettings(tau=0.5, every=7),
    )
    spec = q_spec(settings)
    assert (spec.double, spec.loss, spec.target_tau, spec.target_every) == (True, "mse", 0.5, 7)
    assert (spec.max_grad_norm, spec.accumulate) == (3.0, 2)
    assert (spec.beta1, spec.beta2, spec.epsilon) == (0.8, 0.9, 1e-5)


@pytest.mark.parametrize("unit", ["env_steps", "episodes"])
def test_a_target_that_counts_something_else_is_not_the_lanes_business(unit):
    assert q_spec(DQNSettings(target=TargetSettings(every=7, unit=unit))).target_every == 0


def test_rows_of_an_update_are_all_accumulated_batches():
    assert made(batch_size=8, optimizer={"accumulate": 3}).rows_per_update == 24


def test_a_constant_learning_rate():
    assert made(Counters(updates=9), optimizer={"learning_rate": 0.5}).learning_rates(3).tolist() == [0.5, 0.5, 0.5]


def test_a_learning_rate_over_updates_changes_within_a_call():
    schedule = {"kind": "linear", "start": 1.0, "end": 0.0, "over": 10, "unit": "updates"}
    learner = made(Counters(updates=3), optimizer={"learning_rate": 2.0, "lr_schedule": schedule})
    assert learner.learning_rates(4) == pytest.approx([1.4, 1.2, 1.0, 0.8])


def test_a_learning_rate_over_env_steps_holds_for_a_call():
    schedule = {"kind": "decay", "start": 1.0, "end": 0.0, "factor": 0.5, "every": 10, "unit": "env_steps"}
    learner = made(Counters(env_steps=25, updates=99), optimizer={"learning_rate": 1.0, "lr_schedule": schedule})
    assert learner.learning_rates(2).tolist() == [0.25, 0.25]


@pytest.mark.parametrize(
    ("unit", "before", "after", "moves"),
    [
        ("env_steps", 0, 9, 0),
        ("env_steps", 9, 10, 1),
        ("env_steps", 10, 19, 0),
        ("env_steps", 8, 40, 4),
        ("env_steps", 10 * 2**60 - 1, 10 * 2**60, 1),
        ("episodes", 9, 21, 2),
        ("updates", 0, 1_000, 0),
    ],
)
def test_the_target_follows_once_for_every_multiple_passed(monkeypatch, unit, before, after, moves):
    learner = made(Counters(**{unit: after}), target={"unit": unit, "every": 10, "tau": 0.25})
    taus = []
    monkeypatch.setattr(learner.lane, "move_target", taus.append)
    learner.update_target_if_due(Counters(**{unit: before}))
    assert taus == [0.25] * moves


def test_it_counts_its_own_updates_and_the_target_follows_them():
    learner = made(batch_size=8, target={"every": 4, "tau": 1.0})
    start = learner.state()["target"]
    learner.update(batches_of(3, 8))
    np.testing.assert_array_equal(learner.state()["target"], start)
    learner.update(batches_of(1, 8))
    np.testing.assert_array_equal(learner.state()["target"], learner.state()["online"])
    assert learner.counters.updates == 4


def test_counters_that_a_run_shares_are_counted_in_and_saved_by_the_run():
    counters = Counters(updates=7)
    learner = made(counters, batch_size=8)
    learner.update(batches_of(3, 8))
    assert counters.updates == 10
    assert learner.state().keys() == learner.lane.state().keys()  # as in checkpoints of earlier versions
    learner.load_state(learner.lane.state())
    assert counters.updates == 10


def test_an_update_that_was_not_made_is_not_counted():
    learner, batches = made(batch_size=8), batches_of(1, 8)
    batches.reward[0, 0] = np.nan
    with pytest.raises(NonFiniteError, match="update 1 "):
        learner.update(batches)
    assert learner.counters.updates == 0


def test_the_network_is_the_one_the_lane_trains():
    learner = made(batch_size=8)
    learner.update(batches_of(2, 8))
    flat = np.concatenate([parameter.detach().numpy().reshape(-1) for parameter in learner.network.parameters()])
    np.testing.assert_array_equal(flat, learner.lane.parameters())


def test_the_seed_decides_the_start():
    one, same, other = (made(seed=seed).state()["online"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_a_restored_learner_continues_exactly():
    one, other = made(network={"hidden": [4], "noisy": True}), made(seed=5, network={"hidden": [4], "noisy": True})
    one.update(batches_of(3, 8))
    other.load_state(one.state())
    for learner in (one, other):
        learner.update(batches_of(2, 8))
    for name, value in one.state().items():
        np.testing.assert_array_equal(value, other.state()[name])


def test_the_schedule_of_a_constant_learning_rate_multiplies_it():
    learner = made(optimizer={"learning_rate": 0.5, "lr_schedule": {"start": 0.5}})
    assert learner.learning_rates(1).tolist() == [0.25]
