"""Which tensor an update that was not made is told to have failed at, and that nothing moved; whatever the lane."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from hotloop.core.types import Batch
from hotloop.lanes.eager import clip_and_step
from hotloop.lanes.nonfinite import NonFiniteTensorError
from hotloop.lanes.optimizer import AdamStep, FlatAdam
from hotloop.lanes.policy_objective import Minibatches
from tests.lanes import graph_rollouts, policy_rollouts
from tests.lanes.test_lanes_agree import batches, learner

LANES = ["eager", "native"]
ORDER = np.stack([np.arange(policy_rollouts.STEPS * policy_rollouts.ENVS)] * 2)
RATES = np.full(8, 1e-3)


def failure_of(lane: Any, *arguments: Any) -> NonFiniteTensorError:
    """What an update is told to have failed at; nothing of the lane may be different from what the error keeps."""
    with pytest.raises(NonFiniteTensorError) as caught:
        lane.update(*arguments)
    for name, value in lane.state().items():
        np.testing.assert_array_equal(value, caught.value.failed.state[name])
    return caught.value


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("field", ["obs", "reward", "discount", "next_obs", "weight"])
def test_a_spoiled_field_of_a_batch_is_named_and_the_updates_before_it_are_made(lane: str, field: str) -> None:
    one, other, spoiled = learner(lane), learner(lane), batches(0)
    getattr(spoiled, field)[2, 3] = np.nan
    error = failure_of(one.lane, spoiled, RATES[:6], 0)
    assert (error.first, error.failed.update) == (field, 3)
    good = Batch(*(None if (part := getattr(spoiled, name)) is None else part[:2] for name in Batch.__slots__))  # type: ignore[arg-type]
    other.lane.update(good, RATES[:2], 0)
    np.testing.assert_array_equal(one.lane.parameters(), other.lane.parameters())


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize(("scale", "first"), [(1e15, "Q"), (1e8, "loss"), (1e5, "gradient norm")])
def test_numbers_that_overflow_on_the_way_are_named_where_they_do(lane: str, scale: float, first: str) -> None:
    machine = learner(lane, loss="mse", double=False, network={"hidden": [16, 11]})
    state, batch = machine.lane.state(), batches(0)
    state["online"] *= np.float32(scale)  # Q grows with its third power, the loss with its sixth
    machine.lane.load_state(state)
    assert failure_of(machine.lane, batch, RATES[:6], 0).first.startswith(first)


def test_the_noise_of_an_update_is_kept_with_it() -> None:
    machine, batch = learner("eager", network={"noisy": True}), batches(0)
    batch.reward[0, 0] = np.nan
    with pytest.raises(NonFiniteTensorError) as caught:
        machine.update(batch)
    noise = caught.value.failed.batch["noise"]
    assert noise.keys() == {"online", "target"}
    assert all(np.abs(values).sum() > 0 for values in noise["online"].values())


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("kind", policy_rollouts.ACTIONS)
@pytest.mark.parametrize("field", ["reward", "obs", "outputs", "advantage", "returns"])
def test_a_spoiled_field_of_a_rollout_is_named(lane: str, kind: str, field: str) -> None:
    machine = policy_rollouts.make_learner(kind, learner={"lane": lane})
    rollout = policy_rollouts.make_rollout(machine)
    getattr(rollout, field)[3, 2] = np.nan
    if field == "reward":
        rollout.returns[:3, 2] = np.nan  # as it would spread
    error = failure_of(machine.lane, Minibatches(rollout, ORDER, 0.2), RATES, 0)
    assert error.first == field
    assert error.failed.update == (1 if field == "reward" else 2)


@pytest.mark.parametrize("kind", graph_rollouts.ACTIONS)
@pytest.mark.parametrize("field", ["reward", "obs", "advantage", "returns", "mean"])
def test_a_spoiled_field_of_a_rollout_of_graphs_is_named(kind: str, field: str) -> None:
    machine = graph_rollouts.make_learner(kind)
    rollout = graph_rollouts.make_rollout(machine)
    order = np.stack([np.arange(graph_rollouts.STEPS * graph_rollouts.ENVS)] * 2)
    if field == "obs":
        rollout.obs.nodes[0, 0] = np.inf
    elif field == "reward":
        rollout.reward[0, 0, 0] = rollout.returns[0, 0, 0] = np.nan
    else:
        getattr(rollout, field)[..., 0, 0] = np.nan
    error = failure_of(machine.lane, Minibatches(rollout, order, 0.2), RATES, 0)
    assert error.first == ("obs.nodes" if field == "obs" else field)


def test_where_reads_are_not_free_a_step_on_bad_numbers_changes_nothing_and_reads_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = learner("eager").lane.objective.spec

    def refuse(*_: Any) -> Any:
        raise AssertionError("read")

    for good in (True, False):
        adam = FlatAdam(torch.nn.Linear(3, 1, bias=False))
        adam.on_host = False
        vectors = adam.vectors()
        vectors[0].fill_(1.0)
        adam.flat.gradient.copy_(torch.tensor([1.0, 2.0, 3.0 if good else float("nan")]))
        with monkeypatch.context() as patched:
            for name in ("item", "__bool__", "__float__"):
                patched.setattr(torch.Tensor, name, refuse)
            clip_and_step(spec, adam, torch.tensor(1.0), AdamStep(0.1, 1))
        assert bool((vectors[0] != 1.0).all()) is good
        assert bool((vectors[1] != 0.0).all()) is good
        assert all(vector.isfinite().all() for vector in vectors)


def test_a_learning_rate_that_is_no_number_makes_no_step() -> None:
    machine = learner("eager")
    rates = np.full(6, 1e-3)
    rates[1] = np.nan
    assert failure_of(machine.lane, batches(0), rates, 0).first == "learning rate"
