"""The compiled actor-critic lane held equal to the plain one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hotloop.core.errors import LaneError
from hotloop.lanes import compiling
from hotloop.lanes.compiling import compiler_problem
from hotloop.lanes.nonfinite import NonFiniteTensorError
from hotloop.lanes.policy_objective import KL, Minibatches
from tests.lanes.policy_rollouts import ENVS, FEATURES, STEPS, make_learner, make_rollout

PROBLEM = compiler_problem()
pytestmark = pytest.mark.skipif(bool(PROBLEM), reason=f"the compiled lane cannot be used: {PROBLEM}")
ORDER = np.stack([np.random.default_rng(seed).permutation(STEPS * ENVS) for seed in range(2)])
RATES = np.full(8, 3e-3)


def both(kind: str, tree: dict[str, Any], **more: Any) -> tuple[Any, Any]:
    """The two lanes after the same updates from the same start, and their statistics."""
    learners = [make_learner(kind, **{**tree, "learner": {"lane": lane}}) for lane in ("eager", "compiled")]
    rollout = make_rollout(learners[0], **more)
    return learners, [
        np.asarray(each.lane.update(Minibatches(rollout, ORDER, 0.02), RATES, 0).scalars) for each in learners
    ]


@pytest.mark.parametrize(
    ("kind", "tree", "more"),
    [
        ("discrete", {"ent_coef": 0.05, "value_clip": 0.01}, {"masked": True}),
        ("both", {"network": {"shared": True}}, {"ignored": True}),
        ("numbers", {"network": {"squashed": True}, "policy_loss": "plain", "n_epochs": 1}, {}),
    ],
)
def test_both_lanes_compute_the_same(kind: str, tree: dict[str, Any], more: dict[str, Any]) -> None:
    learners, stats = both(kind, tree, **more)
    np.testing.assert_allclose(stats[1], stats[0], rtol=2e-3, atol=2e-5)
    eager, compiled = (learner.lane.parameters() for learner in learners)
    np.testing.assert_allclose(compiled, eager, rtol=1e-3, atol=2e-4)


def test_epochs_stop_where_the_policy_has_moved_too_far() -> None:
    _, stats = both("discrete", {"kl_stop": 1e-6})
    assert stats[0].shape == stats[1].shape == (7, 4)
    assert stats[1][KL, 0] == pytest.approx(0.0, abs=1e-6)


def test_no_step_is_made_on_numbers_that_are_not_finite_nor_after_it() -> None:
    learner = make_learner("discrete", learner={"lane": "compiled"})
    rollout = make_rollout(learner)
    order = np.stack([np.arange(STEPS * ENVS)] * 2)
    rollout.returns.reshape(-1)[9] = np.nan  # in the second of four minibatches, all in one call
    before = learner.lane.parameters()
    with pytest.raises(NonFiniteTensorError, match="update 2 is NaN or infinite, first of all: returns") as caught:
        learner.lane.update(Minibatches(rollout, order, 0.02), RATES, 0)
    assert np.isfinite(learner.lane.parameters()).all()
    assert not np.array_equal(learner.lane.parameters(), before)
    assert caught.value.failed.update == 2
    np.testing.assert_array_equal(caught.value.failed.batch["obs"], rollout.obs.reshape(-1, FEATURES)[8:16])


def test_it_acts_as_the_plain_lane_does_for_any_number_of_rows() -> None:
    lane: Any = make_learner("numbers", learner={"lane": "compiled"}).lane
    for rows in (ENVS, 3):
        obs = np.random.default_rng(0).normal(size=(rows, FEATURES)).astype(np.float32)
        for one, other in zip(lane.infer(obs), lane.eager.infer(obs), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_without_a_compiler_it_refuses_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "compiler_problem", lambda: "no compiler")
    with pytest.raises(LaneError, match="no compiler"):
        make_learner("discrete", learner={"lane": "compiled"})
