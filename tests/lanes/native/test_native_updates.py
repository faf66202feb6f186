"""The machine-code update beside an ordinary PyTorch program."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from hotloop.lanes.native import plan_kernels as plan
from hotloop.lanes.native.lane import NativeBatch, NativeUpdater
from hotloop.lanes.native.layout import NativeLayout, UpdateConstants
from tests.oracles.torch_dqn_update import QNetwork, TorchDQN

ACTIVATIONS = ("relu", "tanh", "selu", "leaky_relu")
HEADS = {
    "linear": {"dueling": False, "atoms": 1},
    "dueling": {"dueling": True, "atoms": 1},
    "c51": {"dueling": False, "atoms": 11, "v_min": -3.0, "v_max": 2.0},
    "dueling c51": {"dueling": True, "atoms": 7, "v_min": -1.0, "v_max": 1.0},
}


class Pair:
    """The same network, batches and constants, for both programs."""

    def __init__(self, layout: NativeLayout, constants: UpdateConstants, rows: int, seed: int = 0) -> None:
        torch.manual_seed(seed)
        network = QNetwork(
            layout.obs_size, layout.hidden, layout.num_actions, layout.activation, layout.dueling, layout.atoms
        )
        self.layout, self.rows = layout, rows
        self.oracle = TorchDQN(network, constants, layout.v_min, layout.v_max)
        for parameter in self.oracle.target.parameters():
            parameter.data += 0.1 * torch.randn_like(parameter)
        self.parameters, self.target = flat(self.oracle.online), flat(self.oracle.target)
        self.moments = (np.zeros_like(self.parameters), np.zeros_like(self.parameters))
        self.updater = NativeUpdater(layout, constants, rows)
        self.rng = np.random.default_rng(seed)

    def batches(self, k: int, masked: bool) -> NativeBatch:
        shape, actions = (k, self.rows), self.layout.num_actions
        mask = self.rng.random((*shape, actions)) < 0.6 if masked else None
        discount = 0.99 * (self.rng.random(shape) < 0.8)
        return NativeBatch(
            self.normal(*shape, self.layout.obs_size),
            self.rng.integers(0, actions, shape),
            2 * self.normal(*shape),
            discount.astype(np.float32),
            self.normal(*shape, self.layout.obs_size),
            self.rng.random(shape, np.float32) + np.float32(0.2),
            mask,
        )

    def normal(self, *shape: int) -> np.ndarray:
        return self.rng.standard_normal(shape, np.float32)

    def run(self, k: int, masked: bool = False, first_update: int = 0):
        """k updates by both; the native stats and the oracle's, stacked."""
        batches, lr = self.batches(k, masked), np.linspace(1e-3, 2e-3, k)
        made, td_error, stats = self.updater.update(
            self.parameters, self.target, self.moments, batches, lr, first_update
        )
        assert made == k
        rows = [[None if part is None else torch.from_numpy(part[j]) for part in batches] for j in range(k)]
        expected = [self.oracle.update(*rows[j], lr[j]) for j in range(k)]
        stacked = {name: torch.stack([each[name] for each in expected]) for name in expected[0]}
        return (td_error, stats), stacked

    def check(self, native, expected, tolerance: float = 2e-5) -> None:
        td_error, stats = native
        close = {"rtol": tolerance, "atol": tolerance}
        assert_close(torch.from_numpy(td_error), expected["td_error"], **close)
        for row, name in enumerate(("loss", "q_mean", "gradient_norm")):
            assert_close(torch.from_numpy(stats[row]), expected[name], **close)
        assert_close(torch.from_numpy(self.target), torch.from_numpy(flat(self.oracle.target)), **close)
        assert_close(torch.from_numpy(self.parameters), torch.from_numpy(flat(self.oracle.online)), **close)


def flat(network: torch.nn.Module) -> np.ndarray:
    return torch.cat([parameter.detach().reshape(-1) for parameter in network.parameters()]).numpy().copy()


def gradients(network: torch.nn.Module) -> torch.Tensor:
    return torch.cat([parameter.grad.reshape(-1) for parameter in network.parameters()])


def layout(**changes) -> NativeLayout:
    return NativeLayout(**({"obs_size": 5, "hidden": (19, 33), "num_actions": 3} | changes))


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradient_is_that_of_autograd(activation, head):
    pair = Pair(layout(activation=activation, **HEADS[head]), UpdateConstants(max_norm=0.0), rows=21)
    native, expected = pair.run(1)
    assert_close(torch.from_numpy(pair.updater.gradient), gradients(pair.oracle.online), rtol=1e-5, atol=1e-6)
    pair.check(native, expected, tolerance=2e-4)  # a first Adam step is the gradient's sign wherever it is not tiny


@pytest.mark.parametrize("hidden", [(), (1,), (16,), (17, 40), (64, 64), (7, 48, 23)])
@pytest.mark.parametrize("head", HEADS)
def test_gradient_is_that_of_autograd_at_any_depth_and_width(head, hidden):
    for rows, obs_size, num_actions in ((1, 1, 2), (33, 20, 5)):
        sizes = layout(hidden=hidden, obs_size=obs_size, num_actions=num_actions, **HEADS[head])
        pair = Pair(sizes, UpdateConstants(double=True, max_norm=0.0), rows)
        pair.run(1, masked=True)
        assert_close(torch.from_numpy(pair.updater.gradient), gradients(pair.oracle.online), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("huber", [False, True])
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("head", HEADS)
def test_fifty_updates_stay_with_pytorch(head, double, huber, masked):
    constants = UpdateConstants(double=double, huber=huber, max_norm=0.5, target_every=7, tau=0.3, epsilon=1e-4)
    pair = Pair(layout(activation="tanh", **HEADS[head]), constants, rows=8)
    pair.check(*pair.run(25, masked), tolerance=2e-4)
    pair.check(*pair.run(25, masked, first_update=25), tolerance=2e-4)


@pytest.mark.parametrize("hidden", [(), (3,), (20, 16)])
@pytest.mark.parametrize("head", HEADS)
def test_result_does_not_depend_on_what_the_workspace_held(head, hidden):
    sizes = layout(hidden=hidden, activation="selu", **HEADS[head])
    clean, dirty = (Pair(sizes, UpdateConstants(double=True), rows=7) for _ in range(2))
    numbers, _, workspace = dirty.updater._plan
    kept = {place: workspace[place] for place in range(numbers[plan.ZEROS], numbers[plan.INPUT])}  # zeros and ones
    workspace[:] = np.nan
    workspace[list(kept)] = list(kept.values())
    batches = clean.batches(3, masked=True)
    for pair in (clean, dirty):
        pair.updater.update(pair.parameters, pair.target, pair.moments, batches, np.full(3, 0.01), 0)
    np.testing.assert_array_equal(clean.parameters, dirty.parameters)
    assert np.isfinite(clean.parameters).all()


PREPARED = """
import json, numpy as np
from hotloop.lanes.native import unit_kernels
from hotloop.lanes.native.lane import NativeActor, NativeUpdater
from hotloop.lanes.native.layout import Branches, NativeLayout, UpdateConstants

branches = Branches(shapes=((3,), (2, 2)), vector_hidden=(4,), row_width=2, width=3, attention=2)
for changes in ({}, {"dueling": True}, {"atoms": 3, "v_max": 1.0}, {"branches": branches}):
    layout = NativeLayout(obs_size=7, hidden=(4,), num_actions=2, **changes)
    updater, actor = NativeUpdater(layout, UpdateConstants(double=True), 5), NativeActor(layout, 5)
    row = np.ones((1, 5), np.float32)
    vectors, obs = np.ones((4, layout.num_parameters), np.float32), np.ones((1, 5, 7), np.float32)
    batch = (obs, np.zeros((1, 5), np.int64), row, row, obs, row, None)
    made, _, stats = updater.update(vectors[0], vectors[1], (vectors[2], vectors[3]), batch, np.full(1, 0.1), 0)
    actions = [actor.greedy(vectors[0], obs[0, :rows]).tolist() for rows in (1, 5)]
    assert made == 1 and np.isfinite(stats).all() and sum(map(len, actions)) == 6
    print(json.dumps([unit.function.__name__ for unit in unit_kernels._units.values() if unit._code is not None]))
"""


def test_a_network_prepares_what_it_calls_and_nothing_else():
    """In a process of its own, where no other network was before; each has one part more than those before it."""
    done = subprocess.run([sys.executable, "-c", PREPARED], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    plain, dueling, atoms, branches = (set(json.loads(line)) for line in done.stdout.splitlines())
    assert {"forward", "backward", "loss_and_head_gradient"} < plain == dueling
    assert atoms - plain == {"categorical_rows", "expected_values", "softmax"}
    assert branches - atoms == {"forward_branches", "backward_branches"}
