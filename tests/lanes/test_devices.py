"""One update of every objective on torch's `meta` device, which has shapes and no numbers: a hidden read of a result,
or a tensor left on the CPU, raises there."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from hotloop.lanes import compiled, eager
from hotloop.lanes.compiled import CompiledLane
from hotloop.lanes.eager import EagerLane
from hotloop.lanes.objective import Objective, flatten_tensors
from hotloop.lanes.policy_objective import Minibatches
from tests.lanes import graph_rollouts, policy_rollouts
from tests.lanes.test_lanes_agree import batches, learner

STEPS = policy_rollouts.STEPS * policy_rollouts.ENVS


def q_case(**tree: Any) -> tuple[Objective, torch.nn.Module, Any, int]:
    machine = learner("eager", **tree)
    return machine.lane.objective, machine.network, batches(0), len(batches(0).reward)


def policy_case(kind: str, **tree: Any) -> tuple[Objective, torch.nn.Module, Any, int]:
    machine = policy_rollouts.make_learner(kind, **tree)
    order = np.arange(STEPS)[None]
    return machine.objective, machine.network, Minibatches(policy_rollouts.make_rollout(machine), order, 0.2), 4


def graph_case(kind: str) -> tuple[Objective, torch.nn.Module, Any, int]:
    machine = graph_rollouts.make_learner(kind)
    machine.network.fused = False  # machine code is for CPUs
    order = np.arange(graph_rollouts.STEPS * graph_rollouts.ENVS)[None]
    return machine.objective, machine.network, Minibatches(graph_rollouts.make_rollout(machine), order, 0.2), 3


CASES = {
    "q": q_case,
    "double, squared": lambda: q_case(double=True, loss="mse"),
    "categorical": lambda: q_case(network={"atoms": 7}),
    "dueling": lambda: q_case(network={"dueling": True}),
    "discrete": lambda: policy_case("discrete"),
    "continuous": lambda: policy_case("numbers"),
    "both": lambda: policy_case("both", normalize_advantage="minibatch"),
    "graphs": lambda: graph_case("numbers"),
    "per node": lambda: graph_case("per node"),
}


@pytest.fixture(autouse=True)
def no_generator_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """`meta` has none, and noise is drawn for noisy networks only."""
    monkeypatch.setattr(eager, "noise_generator", lambda device, seed: torch.Generator())


def check(lane: Any, objective: Objective, data: Any, count: int) -> None:
    stats = lane.update(data, np.full(count, 1e-3), 0)
    vectors = (lane if isinstance(lane, EagerLane) else lane.eager).vectors()
    assert stats.scalars.shape == (len(objective.measures), count)
    assert all(tensor.device.type == "meta" for tensor in [stats.scalars, *vectors.values()])
    one = objective.on_device(data, torch.device("meta")).one(0)
    assert all(tensor.device.type == "meta" for tensor in flatten_tensors(one) if isinstance(tensor, torch.Tensor))


@pytest.mark.parametrize("case", CASES)
def test_an_eager_update_reads_nothing_and_leaves_nothing_on_the_cpu(case: str) -> None:
    objective, network, data, count = CASES[case]()
    check(EagerLane(objective, copy.deepcopy(network), "meta"), objective, data, count)


@pytest.mark.parametrize("case", [case for case in CASES if case not in ("graphs", "per node")])
def test_nor_does_a_traced_one(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the compiled lane hands to the compiler, run as it is."""
    monkeypatch.setattr(compiled, "compile_function", lambda function, example: function)
    objective, network, data, count = CASES[case]()
    check(CompiledLane(objective, copy.deepcopy(network), "meta"), objective, data, count)
