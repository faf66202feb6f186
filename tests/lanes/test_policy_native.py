"""The native actor-critic lane held equal to the plain one, for every kind of action and every term of the loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hotloop.core.errors import LaneError, NonFiniteError
from hotloop.core.types import RolloutRow
from hotloop.lanes.policy_objective import KL, MEASURES, Minibatches
from tests.lanes.policy_rollouts import ACTIONS, ENVS, FEATURES, STEPS, make_learner, make_rollout

ORDER = np.stack([np.random.default_rng(seed).permutation(STEPS * ENVS) for seed in range(2)])
RATES = np.full(8, 3e-3)
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "entropy": {"ent_coef": 0.05},
    "value clip": {"value_clip": 0.01},
    "shared": {"network": {"shared": True}, "ent_coef": 0.01},
    "relu": {"network": {"activation": "relu"}},
    "no hidden layers": {"network": {"hidden": []}},
    "not normalized": {"normalize_advantage": "none"},
    "no clipping of gradients": {"optimizer": {"max_grad_norm": 0.0}},
    "a2c": {"policy_loss": "plain", "n_epochs": 1},
}


def both(kind: str, tree: dict[str, Any], **more: Any) -> tuple[Any, Any, Any]:
    """The two lanes after the same updates from the same start, and their statistics."""
    learners = [make_learner(kind, **{**tree, "learner": {"lane": lane}}) for lane in ("eager", "native")]
    rollout = make_rollout(learners[0], **more)
    stats = [np.asarray(each.lane.update(Minibatches(rollout, ORDER, 0.02), RATES, 0).scalars) for each in learners]
    return learners, stats, rollout


def assert_equal_lanes(learners: Any, stats: Any) -> None:
    np.testing.assert_allclose(stats[1], stats[0], rtol=2e-3, atol=2e-5)
    eager, native = (learner.lane.parameters() for learner in learners)
    np.testing.assert_allclose(native, eager, rtol=1e-3, atol=2e-4)


@pytest.mark.parametrize("kind", ACTIONS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_both_lanes_compute_the_same(kind: str, variant: str) -> None:
    learners, stats, _ = both(kind, VARIANTS[variant])
    assert_equal_lanes(learners, stats)


@pytest.mark.parametrize("weight", [0.0, 0.05])
@pytest.mark.parametrize("loss", ["clipped", "plain"])
def test_both_lanes_squash_the_same(weight: float, loss: str) -> None:
    tree = {"network": {"squashed": True, "log_std": 0.3}, "ent_coef": weight}
    tree |= {"policy_loss": loss, "n_epochs": 1 if loss == "plain" else 2}
    learners, stats, _ = both("numbers", tree)
    assert_equal_lanes(learners, stats)


@pytest.mark.parametrize("kind", ["discrete", "several"])
def test_both_lanes_mask_the_same(kind: str) -> None:
    learners, stats, _ = both(kind, {"ent_coef": 0.05}, masked=True)
    assert_equal_lanes(learners, stats)


def test_both_lanes_leave_out_ignored_rows() -> None:
    learners, stats, _ = both("discrete", {}, ignored=True)
    assert_equal_lanes(learners, stats)


def test_both_lanes_stop_at_the_same_epoch() -> None:
    _, stats, _ = both("discrete", {"kl_stop": 1e-6})
    assert stats[0].shape == stats[1].shape == (7, 4)


@pytest.mark.parametrize("kind", ACTIONS)
@pytest.mark.parametrize("shared", [False, True])
def test_before_the_first_update_the_ratio_is_exactly_one(kind: str, shared: bool) -> None:
    tree = {"network": {"shared": shared}, "batch_size": STEPS * ENVS, "learner": {"lane": "native"}}
    learner = make_learner(kind, **tree)
    rollout = make_rollout(learner)  # acted on four rows at a time, learned on all at once
    whole = np.arange(STEPS * ENVS)[None]
    scalars = learner.lane.update(Minibatches(rollout, whole, 1e-15), np.array([1e-3]), 0).scalars
    assert scalars[KL, 0] == 0.0
    assert scalars[MEASURES.index("clip_fraction"), 0] == 0.0


@pytest.mark.parametrize(
    ("kind", "masked"), [*((kind, False) for kind in ACTIONS), ("discrete", True), ("several", True)]
)
def test_both_lanes_draw_the_same_actions(kind: str, masked: bool) -> None:
    eager, native = (
        make_rollout(make_learner(kind, learner={"lane": lane}), masked=masked) for lane in ("eager", "native")
    )
    for name in ("outputs", "value", "action"):
        np.testing.assert_allclose(getattr(native, name), getattr(eager, name), rtol=1e-5, atol=1e-5, err_msg=name)


def test_a_mask_may_lie_in_memory_as_it_likes() -> None:
    learner = make_learner("discrete", learner={"lane": "native"})
    data = make_rollout(learner)
    row = RolloutRow(data.obs[0], data.outputs[0], data.value[0], data.action[0], None)
    mask = np.zeros((3, ENVS), bool).T
    mask[:, 1] = True
    learner.draw(row, np.array([0], np.uint64), mask)
    assert (row.action == 1).all()


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 8, 9, 33])
def test_outputs_and_values_are_the_modules_own_and_do_not_depend_on_the_number_of_rows(rows: int) -> None:
    learner = make_learner("several", learner={"lane": "native"})
    obs = np.random.default_rng(0).normal(size=(33, FEATURES)).astype(np.float32)
    whole, some = learner.lane.infer(obs), learner.lane.infer(obs[:rows])
    for many, few in zip(whole, some, strict=True):
        np.testing.assert_array_equal(many[:rows], few)
    plain = make_learner("several").lane.infer(obs)
    for mine, theirs in zip(whole, plain, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_the_modules_parameters_are_the_lanes() -> None:
    learner = make_learner("numbers", learner={"lane": "native"})
    learner.lane.update(Minibatches(make_rollout(learner), ORDER, 0.2), RATES, 0)
    flat = np.concatenate([parameter.detach().numpy().reshape(-1) for parameter in learner.network.parameters()])
    np.testing.assert_array_equal(flat, learner.lane.parameters())
    np.testing.assert_array_equal(
        learner.network.log_std.detach().numpy(), learner.lane.online[-len(learner.network.log_std) :]
    )


def test_a_loss_that_is_not_finite_stops_before_the_weights_see_it() -> None:
    learner = make_learner(learner={"lane": "native"})
    rollout = make_rollout(learner)
    rollout.returns[0, 0] = np.nan
    order = np.stack([np.arange(STEPS * ENVS)] * 2)
    before = learner.lane.parameters()
    with pytest.raises(NonFiniteError, match="update 1 "):
        learner.lane.update(Minibatches(rollout, order, 0.2), RATES, 0)
    np.testing.assert_array_equal(before, learner.lane.parameters())


@pytest.mark.parametrize("what", ["order", "lr", "action"])
def test_what_does_not_fit_is_refused_instead_of_written_past(what: str) -> None:
    learner = make_learner(learner={"lane": "native"})
    rollout, order, lr = make_rollout(learner), ORDER.copy(), RATES
    if what == "order":
        order[0, 0] = STEPS * ENVS
    elif what == "lr":
        lr = RATES[:-1]
    else:
        rollout.action[0, 0] = 3.0
    with pytest.raises(ValueError, match="rollout"):
        learner.lane.update(Minibatches(rollout, order, 0.2), lr, 0)


def test_what_the_lane_cannot_do_it_refuses_by_name() -> None:
    with pytest.raises(LaneError, match="float32"):
        make_learner(learner={"lane": "native", "precision": "bfloat16"})


def test_a_restored_lane_continues_exactly() -> None:
    one, other = (make_learner(seed=seed, learner={"lane": "native"}) for seed in (0, 5))
    rollout = make_rollout(one)
    one.lane.update(Minibatches(rollout, ORDER, 0.2), RATES, 0)
    other.load_state(one.state())
    for learner in (one, other):
        learner.lane.update(Minibatches(rollout, ORDER, 0.2), RATES, 8)
    np.testing.assert_equal(one.lane.state(), other.lane.state())
