"""SAC, TD3 and DDPG: the eager lane against a plain program, the compiled lane against the eager one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from hotloop.core.errors import NonFiniteError
from hotloop.lanes import compiling
from hotloop.lanes.compiled import CompiledLane, adam_factors
from hotloop.lanes.eager import EagerLane
from hotloop.lanes.sac_objective import SACObjective
from tests.lanes.sac_pairs import (
    LR,
    VARIANTS,
    K,
    assert_plain_updates,
    assert_same_state,
    assert_same_updates,
    make_batches,
    make_network,
    make_spec,
    objective_of,
    plain_agent,
    rates,
)

PLAIN = ("sac", "fixed-temperature", "td3")


def make_lane(variant: str, kind: type[Any] = EagerLane) -> Any:
    objective = objective_of(variant)
    return kind(objective, make_network(objective.spec))


@pytest.mark.parametrize("variant", PLAIN)
def test_the_eager_lane_makes_the_updates_of_a_plain_program(variant: str) -> None:
    lane = make_lane(variant)
    assert_plain_updates(lane, plain_agent(lane.network, lane.objective.spec, LR), calls=10, k=K, tolerance=1e-4)


def test_ddpg_is_td3_with_one_critic_no_smoothing_and_no_delay() -> None:
    lane = make_lane("ddpg")
    stats = lane.update(make_batches(lane.objective.spec, K), rates(K), 0)
    assert stats.scalars.shape == (4, K)
    assert (stats.scalars[2] != 0.0).all()  # an actor's loss in every update


def test_a_delayed_policy_moves_in_every_second_update_and_its_targets_with_it() -> None:
    lane = make_lane("td3")
    batches = make_batches(lane.objective.spec, 1)
    before = lane.state()
    first = lane.update(batches, rates(1), 0)
    after = lane.state()
    for name in ("online", "target", "critics_target"):
        np.testing.assert_array_equal(before[name], after[name])
    assert not np.array_equal(before["critics"], after["critics"])
    assert first.scalars[2, 0] == 0.0
    second = lane.update(batches, rates(1), 1)
    moved = np.abs(lane.state()["online"] - after["online"])
    assert moved.max() == pytest.approx(LR, rel=1e-3)  # Adam's first step of the actor: its count is its own
    assert not np.array_equal(after["critics_target"], lane.state()["critics_target"])
    assert second.scalars[2, 0] != 0.0


def test_accumulated_parts_are_one_batch() -> None:
    whole, parts = make_lane("sac"), make_lane("accumulate")
    batches = make_batches(whole.objective.spec, K)
    found, expected = (lane.update(batches, rates(K), 0) for lane in (parts, whole))
    np.testing.assert_allclose(found.scalars[:6], expected.scalars[:6], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(parts.state()["critics"], whole.state()["critics"], rtol=1e-4, atol=1e-5)


def test_the_norm_is_that_of_all_gradients_before_clipping() -> None:
    free, clipped = make_lane("sac"), make_lane("clipped")
    batches = make_batches(free.objective.spec, 1)
    found, expected = (lane.update(batches, rates(1), 0).scalars[-1, 0] for lane in (clipped, free))
    norms = torch.stack([group.flat.gradient.norm() for group in free.groups.values()])
    torch.testing.assert_close(expected, norms.norm())
    assert expected > 0.05
    assert found == pytest.approx(float(expected), rel=1e-2)  # critics moved alike: Adam forgets scale


def test_no_stage_moves_the_parameters_of_another() -> None:
    lane = make_lane("sac")
    batch, stages = make_batches(lane.objective.spec, 1), lane.objective.stages
    tensors = lane.objective.on_device(batch, lane.device).one(0)
    lane._loss_and_gradient(stages[1], tensors, None)  # the actor's, through the critics
    assert float(lane.groups["online"].flat.gradient.norm()) > 0.0
    assert float(lane.groups["critics"].flat.gradient.norm()) == 0.0
    assert float(lane.groups["temperature"].flat.gradient.norm()) == 0.0


def test_a_loss_that_is_not_finite_is_named() -> None:
    lane = make_lane("sac")
    batches = make_batches(lane.objective.spec, 2)
    batches.reward[1, 0] = np.nan
    with pytest.raises(NonFiniteError, match="reward"):
        lane.update(batches, rates(2), 0)
    with torch.no_grad():
        lane.modules["online"].head.bias[0] = np.inf
    with pytest.raises(NonFiniteError, match=r"parameter head\.bias"):
        lane.update(make_batches(lane.objective.spec, 1), rates(1), 0)


def test_adam_counts_the_steps_of_each_stage() -> None:
    objective = SACObjective(make_spec(policy_delay=2, beta1=0.5, beta2=0.75))
    factors = adam_factors(objective, np.array([1.0, 1.0]), first_update=2)
    lengths = [[1.0 / (1.0 - 0.5**count) for count in counts] for counts in ((3, 1, 1), (4, 2, 2))]
    np.testing.assert_allclose(factors[:, :, 0], lengths, rtol=1e-6)


@pytest.mark.skipif(compiling.compiler_problem() != "", reason=f"compiled lane: {compiling.compiler_problem()}")
@pytest.mark.parametrize(
    "variant", ["delayed", *(pytest.param(name, marks=pytest.mark.slow) for name in ("sac", "td3"))]
)
def test_the_compiled_lane_makes_the_updates_of_the_eager_one(variant: str) -> None:
    eager, lane = make_lane(variant), make_lane(variant, CompiledLane)
    for call in range(2):
        assert_same_updates(lane, eager, make_batches(eager.objective.spec, 5, seed=call), 5 * call)
    assert_same_state(lane, eager)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_measures_what_it_names_and_can_go_on_from_its_state(variant: str) -> None:
    lane, other = make_lane(variant), make_lane(variant)
    spec = lane.objective.spec
    lane.update(make_batches(spec, 3), rates(3), 0)
    other.load_state(lane.state())
    later = make_batches(spec, 3, seed=1)
    found, expected = other.update(later, rates(3), 3), lane.update(later, rates(3), 3)
    assert len(found.scalars) == len(lane.objective.measures)
    assert torch.equal(found.scalars, expected.scalars)
    for name, vector in lane.state().items():
        np.testing.assert_array_equal(other.state()[name], vector, err_msg=name)
    (outputs,) = lane.infer(later.obs[0])
    assert outputs.shape == (8, 4 if spec.stochastic else 2)
