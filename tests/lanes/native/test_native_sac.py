"""The native lane of SAC, TD3 and DDPG against the eager one: the same parameters, moments, targets and measures."""

from __future__ import annotations

import copy
import sys

import numpy as np
import pytest
import torch

from hotloop.core.errors import NonFiniteError
from hotloop.core.types import Array
from hotloop.lanes.choice import LaneJob, choose_lane
from hotloop.lanes.eager import EagerLane
from hotloop.lanes.native import sac_plan_kernels as plan
from hotloop.lanes.native.sac_lane import NativeSACLane
from hotloop.lanes.sac_objective import SACBatch, SACObjective
from hotloop.presets.sac_network_settings import SACLayout
from tests.lanes import sac_pairs
from tests.lanes.sac_pairs import (
    ACTIONS,
    FEATURES,
    HIDDEN,
    LR,
    ROWS,
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


def layout_of(objective: SACObjective, activation: str = "relu", hidden: tuple[int, ...] = HIDDEN) -> SACLayout:
    spec = objective.spec
    return SACLayout(FEATURES, hidden, activation, ACTIONS, spec.critics, spec.stochastic)


def native(
    objective: SACObjective, activation: str = "relu", hidden: tuple[int, ...] = HIDDEN, rows: int = ROWS
) -> NativeSACLane:
    network = make_network(objective.spec, activation, hidden)
    return NativeSACLane(objective, network, layout_of(objective, activation, hidden), rows)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_makes_the_updates_of_the_eager_lane(variant: str) -> None:
    objective = objective_of(variant)
    lane, eager = native(objective), EagerLane(objective, make_network(objective.spec))
    for call in range(8):
        assert_same_updates(lane, eager, make_batches(objective.spec, K, seed=call), call * K)
    assert set(lane.state()) == set(eager.state()) - {"generator"}
    assert_same_state(lane, eager)


@pytest.mark.parametrize("activation", ["tanh", "selu", "leaky_relu"])
@pytest.mark.parametrize("variant", ["sac", "td3"])
def test_every_activation(variant: str, activation: str) -> None:
    objective = objective_of(variant)
    lane, eager = native(objective, activation), EagerLane(objective, make_network(objective.spec, activation))
    for call in range(4):
        assert_same_updates(lane, eager, make_batches(objective.spec, K, seed=call), call * K)
    assert_same_state(lane, eager)


@pytest.mark.parametrize(
    ("hidden", "rows"),
    [((64, 64), 64), ((40,), 13), ((), 8), ((20, 30, 50), 100), ((70, 9), 33), ((9, 70), 1), ((3, 130), 260)],
)
@pytest.mark.parametrize("variant", ["delayed", "td3"])
def test_every_size(variant: str, hidden: tuple[int, ...], rows: int) -> None:
    """Narrow and wide layers, with and without what is left over of vectors and tiles."""
    objective = objective_of(variant)
    network = make_network(objective.spec, hidden=hidden)
    lane, eager = native(objective, hidden=hidden, rows=rows), EagerLane(objective, network)
    for call in range(3):
        assert_same_updates(lane, eager, make_batches(objective.spec, K, seed=call, rows=rows), call * K)
    assert_same_state(lane, eager)


def test_observations_wider_than_a_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sac_pairs, sys.modules[__name__]):
        monkeypatch.setattr(module, "FEATURES", 37)
    for variant in ("sac", "td3"):
        objective = objective_of(variant)
        lane, eager = native(objective), EagerLane(objective, make_network(objective.spec))
        for call in range(3):
            assert_same_updates(lane, eager, make_batches(objective.spec, K, seed=call), call * K)
        assert_same_state(lane, eager)


@pytest.mark.parametrize("variant", ["sac", "td3"])
def test_two_hundred_updates_of_a_plain_program(variant: str) -> None:
    objective = objective_of(variant)
    lane = native(objective)
    assert_plain_updates(lane, plain_agent(lane.network, objective.spec, LR), calls=25, k=8, tolerance=1e-3)


def test_several_updates_at_once_are_several_calls() -> None:
    objective = objective_of("delayed")
    one, other = native(objective), native(objective)
    batches = make_batches(objective.spec, K)
    together = one.update(batches, rates(), 0)
    for j in range(K):
        single = SACBatch._make(None if field is None else field[j : j + 1] for field in batches)
        alone = other.update(single, rates(1), j)
        np.testing.assert_array_equal(alone.scalars[:, 0], together.scalars[:, j])
    for name, vector in one.state().items():
        np.testing.assert_array_equal(vector, other.state()[name], err_msg=name)


def test_another_batch_size_in_between_changes_nothing() -> None:
    objective = objective_of("sac")
    one, other = native(objective), native(objective, rows=3)
    for rows in (8, 3, 17, 8):
        batches = make_batches(objective.spec, 2, seed=rows, rows=rows)
        found, expected = one.update(batches, rates(2), 4), other.update(batches, rates(2), 4)
        np.testing.assert_array_equal(found.scalars, expected.scalars)


def test_a_lane_goes_on_from_the_state_of_another() -> None:
    for variant in ("sac", "td3"):
        objective = objective_of(variant)
        lane, other = native(objective), native(objective)
        eager = EagerLane(objective, make_network(objective.spec))
        lane.update(make_batches(objective.spec, 3), rates(3), 0)
        other.load_state(lane.state())
        eager.load_state(eager.state() | lane.state())
        later = make_batches(objective.spec, 3, seed=1)
        assert_same_updates(other, eager, later, 3)
        lane.update(later, rates(3), 3)
        for name, vector in lane.state().items():
            np.testing.assert_array_equal(other.state()[name], vector, err_msg=name)


def test_parameters_are_the_memory_of_the_module() -> None:
    objective = objective_of("sac")
    lane = native(objective)
    lane.update(make_batches(objective.spec, K), rates(), 0)
    module = torch.cat([value.detach().reshape(-1) for value in lane.network.parameters()]).numpy()
    np.testing.assert_array_equal(lane.parameters(), module)
    lane.load_parameters(np.zeros_like(module))
    assert all(float(value.detach().abs().max()) == 0.0 for value in lane.network.parameters())


@pytest.mark.parametrize("rows", [1, 2, 8, 40])
def test_acting_says_what_the_actor_says(rows: int) -> None:
    objective = objective_of("sac")
    lane = native(objective)
    obs = np.random.default_rng(rows).normal(size=(rows, FEATURES)).astype(np.float32)
    (outputs,) = lane.infer(obs)
    expected = lane.network(torch.from_numpy(obs)).detach().numpy()
    np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(lane.infer(obs[:1])[0], outputs[:1])  # one row is computed like many


def test_the_target_moves_when_it_is_told_to() -> None:
    objective = SACObjective(make_spec(target_every=0))
    lane = native(objective)
    before = lane.state()["critics_target"]
    lane.update(make_batches(objective.spec, K), rates(), 0)
    np.testing.assert_array_equal(lane.state()["critics_target"], before)
    lane.move_target(0.25)
    expected = before + 0.25 * (lane.state()["critics"] - before)
    np.testing.assert_allclose(lane.state()["critics_target"], expected, rtol=1e-5, atol=1e-7)
    lane.move_target(1.0)
    np.testing.assert_array_equal(lane.state()["critics_target"], lane.state()["critics"])


@pytest.mark.parametrize("field", ["obs", "action", "reward", "next_obs", "weight", "next_noise", "noise"])
def test_a_nan_stops_before_the_step_that_it_would_spoil(field: str) -> None:
    objective = objective_of("sac")
    lane, other = native(objective), native(objective)
    batches = make_batches(objective.spec, 3)
    other.update(SACBatch._make(None if part is None else part[:1] for part in batches), rates(1), 0)
    spoilt = copy.deepcopy(batches)
    getattr(spoilt, field)[1, 0] = np.nan
    with pytest.raises(NonFiniteError, match=f"update 2 .* {field}"):
        lane.update(spoilt, rates(3), 0)
    state, before = lane.state(), other.state()
    for name, vector in state.items():
        assert np.isfinite(vector).all(), name
        if field != "noise" or name in ("online", "mean", "temperature", "critics_target"):
            np.testing.assert_array_equal(vector, before[name], err_msg=name)  # of noise, only the actor hears


def test_a_batch_that_does_not_fit_is_refused() -> None:
    objective = objective_of("sac")
    lane, batches = native(objective), make_batches(objective.spec, 2)
    with pytest.raises(ValueError, match="does not fit"):
        lane.update(batches._replace(noise=None), rates(2), 0)
    with pytest.raises(ValueError, match="does not fit"):
        lane.update(batches._replace(obs=batches.obs[:, :, :-1].copy()), rates(2), 0)
    with pytest.raises(ValueError, match="does not fit"):
        lane.update(batches, rates(3), 0)
    with pytest.raises(ValueError, match="do not fit"):
        lane.infer(np.zeros((2, FEATURES + 1), np.float32))


def test_equally_low_critics_share_the_gradient() -> None:
    """Twins with the same weights: each has half, so the actor moves as under one critic."""
    twins, one = SACObjective(make_spec()), SACObjective(make_spec(critics=1))
    lane, eager = native(twins), EagerLane(twins, make_network(twins.spec))
    single = native(one)
    for each in (lane, eager):
        state = each.state()
        for name in ("critics", "critics_target"):
            state[name] = _same_twice(single.state()[name], HIDDEN)
        state["online"] = single.state()["online"]
        each.load_state(state)
    batches = make_batches(twins.spec, 1)
    assert_same_updates(lane, eager, batches, 0)
    single.update(batches, rates(1), 0)
    np.testing.assert_allclose(lane.state()["online"], single.state()["online"], rtol=1e-5, atol=1e-7)


def _same_twice(vector: Array, hidden: tuple[int, ...]) -> Array:
    """The flat parameters of one critic as those of two."""
    widths, parts, start = (FEATURES + ACTIONS, *hidden, 1), [], 0
    for before, after in zip(widths, widths[1:], strict=False):
        for size in (before * after, after):
            parts += [vector[start : start + size]] * 2
            start += size
    return np.concatenate(parts)


def test_no_memory_is_taken_by_an_update_but_its_answers() -> None:
    objective = objective_of("sac")
    lane, batches = native(objective), make_batches(objective.spec, K)
    lane.update(batches, rates(), 0)
    before = [part.ctypes.data for part in lane._updater.plan(ROWS)]
    for call in range(1, 4):
        lane.update(batches, rates(), call * K)
    assert [part.ctypes.data for part in lane._updater.plan(ROWS)] == before
    assert lane.groups.all.size % plan.VECTORS == 0


def test_auto_chooses_the_native_lane_on_a_cpu() -> None:
    objective = objective_of("sac")
    job = LaneJob(objective=objective, layout=layout_of(objective), batch_size=8, device="cpu", precision="float32")
    assert choose_lane("auto", job).name == "native"
    images = LaneJob(objective=objective, layout=None, batch_size=8, device="cpu", precision="float32")
    assert choose_lane("auto", images).name == "eager"
