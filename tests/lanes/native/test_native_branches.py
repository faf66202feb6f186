"""The native lane on branches with attention, held equal to the eager one."""

from dataclasses import replace

import numpy as np
import pytest

from hotloop.core.errors import LaneError, NonFiniteError
from hotloop.core.types import ArraySpec, Batch
from hotloop.learners.dqn import DQNLearner
from hotloop.presets.dqn_settings import DQNSettings, LearnerSettings, OptimizerSettings, TargetSettings
from hotloop.presets.env_settings import EnvSettings
from hotloop.presets.network_settings import BranchSettings, NetworkSettings
from hotloop.workloads.sfc.env import PARTS

ROWS, ACTIONS = 11, 5
SMALL = BranchSettings(vector_hidden=(9,), row_width=5, width=6, attention=7)
ODD = {"one": ArraySpec((3,)), "table": ArraySpec((4, 2)), "wide": ArraySpec((1, 17)), "zero": ArraySpec(())}


def learner(lane, spec, branches=SMALL, hidden=(10, 8), target_every=3, network=None, **changes):
    return DQNLearner(
        DQNSettings(
            batch_size=ROWS,
            env=EnvSettings(num_envs=ROWS),
            network=NetworkSettings(torso="branch_attention", branches=branches, hidden=hidden, **(network or {})),
            optimizer=OptimizerSettings(learning_rate=1e-3, max_grad_norm=0.5),
            target=TargetSettings(every=target_every),
            learner=LearnerSettings(lane=lane),
            **changes,
        ),
        spec,
        ACTIONS,
    )


def batches(spec, seed, k=1, masked=True):
    draw = np.random.default_rng(seed)

    def obs():
        return {name: draw.normal(size=(k, ROWS, *part.shape)).astype(np.float32) for name, part in spec.items()}

    mask = draw.random((k, ROWS, ACTIONS)) < 0.6
    mask[..., 0] = True
    return Batch(
        obs=obs(),
        action=draw.integers(0, ACTIONS, (k, ROWS)),
        reward=draw.normal(size=(k, ROWS)).astype(np.float32),
        discount=(0.9 * (draw.random((k, ROWS)) > 0.2)).astype(np.float32),
        next_obs=obs(),
        weight=draw.uniform(0.2, 1, (k, ROWS)).astype(np.float32),
        index=np.zeros((k, ROWS), np.int64),
        next_action_mask=mask if masked else None,
    )


def assert_same(one, other):
    """But for the bias of the scores: a softmax does not feel it, so that its gradient is nothing but rounding."""
    gap = one.lane.parameters() - other.lane.parameters()
    names, sizes = zip(*((name, each.numel()) for name, each in one.network.named_parameters()), strict=True)
    gap[sum(sizes[: names.index("torso.score.bias")])] = 0.0
    assert np.linalg.norm(gap) / np.linalg.norm(one.lane.parameters()) < 2e-5


VARIANTS = {
    "dqn": {},
    "mse": {"loss": "mse"},
    "double": {"double": True},
    "dueling": {"network": {"dueling": True}},
    "c51": {"network": {"atoms": 7, "v_min": -3.0, "v_max": 3.0}},
    "all": {"double": True, "network": {"dueling": True, "atoms": 7, "v_min": -3.0, "v_max": 3.0}},
    "tanh": {"network": {"activation": "tanh"}},
    "selu": {"network": {"activation": "selu"}},
    "leaky": {"network": {"activation": "leaky_relu"}},
    "one hidden layer": {"hidden": (9,)},
    "three": {"hidden": (9, 17, 33)},
    "deep branches": {"branches": BranchSettings(vector_hidden=(5, 4, 3), row_width=3, width=20, attention=33)},
    "shallow branches": {"branches": BranchSettings(vector_hidden=(), row_width=1, width=1, attention=1)},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_updates_equal_the_eager_lane(variant):
    eager, native = (learner(lane, ODD, **VARIANTS[variant]) for lane in ("eager", "native"))
    for seed in range(4):
        batch = batches(ODD, seed, k=2, masked=seed % 2 == 0)
        told, said = eager.update(batch), native.update(batch)
        np.testing.assert_allclose(said.td_error, told.td_error.numpy(), rtol=2e-3, atol=1e-4)
        np.testing.assert_allclose(said.scalars, told.scalars.numpy(), rtol=2e-3, atol=1e-4)
        assert_same(eager, native)


def test_the_specified_network_equals_the_eager_lane():
    published = {"branches": BranchSettings(), "hidden": (256, 128, 64), "loss": "mse"}
    eager, native = (learner(lane, dict(PARTS), **published) for lane in ("eager", "native"))
    for seed in range(3):
        batch = batches(dict(PARTS), seed)
        eager.update(batch)
        native.update(batch)
    assert_same(eager, native)


@pytest.mark.parametrize("rows", [1, 2, 5, 40])
def test_it_acts_as_the_eager_lane_does(rows):
    eager, native = (learner(lane, ODD, network={"dueling": True}) for lane in ("eager", "native"))
    draw = np.random.default_rng(rows)
    obs = {name: draw.normal(size=(rows, *spec.shape)).astype(np.float32) for name, spec in ODD.items()}
    mask = draw.random((rows, ACTIONS)) < 0.5
    mask[:, 2] = True
    for allowed in (None, mask):
        np.testing.assert_array_equal(
            native.lane.infer(obs, allowed, False)[0], eager.lane.infer(obs, allowed, False)[0]
        )


def test_the_rule_takes_it_for_branches_and_another_lane_for_noise_or_bytes():
    chosen = learner("auto", ODD).choice
    assert (chosen.name, chosen.reason) == ("native", "branches with attention on a CPU")
    assert learner("auto", ODD, network={"noisy": True}).choice.name != "native"
    with pytest.raises(LaneError, match="branches with attention"):
        learner("native", ODD | {"bytes": ArraySpec((2,), np.dtype(np.uint8))})
    with pytest.raises(LaneError, match="native"):
        learner("native", ODD, hidden=())


def test_a_restored_lane_continues_bit_identically():
    one, other = learner("native", ODD), learner("native", ODD)
    one.update(batches(ODD, 0))
    other.load_state(one.state())
    for each in (one, other):
        each.update(batches(ODD, 1))
    np.testing.assert_array_equal(one.lane.parameters(), other.lane.parameters())


def test_a_loss_that_is_not_finite_stops_before_the_parameters_see_it():
    native = learner("native", ODD)
    before, batch = native.lane.parameters(), batches(ODD, 0)
    batch.reward[0, 3] = np.nan
    with pytest.raises(NonFiniteError, match="update 1 is NaN"):
        native.update(batch)
    np.testing.assert_array_equal(native.lane.parameters(), before)


def test_batches_of_other_sizes_are_refused():
    native, batch = learner("native", ODD), batches(ODD, 0)
    few = {name: part[:, :3] for name, part in batch.obs.items()}
    with pytest.raises(ValueError, match="does not fit"):
        native.update(replace(batch, obs=few))
    batch.action[0, 0] = ACTIONS
    with pytest.raises(ValueError, match="outside"):
        native.update(batch)
