"""The loss of every variant by hand numbers; weighting and reduction in one place."""

import pytest
import torch
from torch import tensor
from torch.testing import assert_close

from hotloop.lanes.objective import Network
from hotloop.lanes.q_objective import QObjective, QSpec, TransitionBatch, take_atoms


def spec(**changes) -> QSpec:
    values = {
        "loss": "huber",
        "double": False,
        "atoms": 1,
        "v_min": 0.0,
        "v_max": 2.0,
        "noisy": False,
        "max_grad_norm": 0.0,
        "accumulate": 1,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "target_tau": 1.0,
        "target_every": 1,
    }
    return QSpec(**(values | changes))


def table(values: list) -> object:
    """A network whose answer to observation i is row i of a table."""
    numbers = tensor(values)
    return lambda obs: numbers[obs]


ONLINE = table([[1.0, 2.0], [0.0, 3.0], [9.0, 0.0], [0.0, 9.0]])
TARGET = table([[0.0, 0.0], [0.0, 0.0], [1.0, 5.0], [3.0, 4.0]])


def outcome(spec, online, target, batch):
    return QObjective(spec).loss({"online": Network(online, {}), "target": Network(target, {})}, batch)


def rows(weight=(1.0, 1.0), mask=None) -> TransitionBatch:
    return TransitionBatch(
        obs=tensor([0, 1]),
        action=tensor([1, 0]),
        reward=tensor([1.0, 1.0]),
        discount=tensor([0.9, 0.5]),
        next_obs=tensor([2, 3]),
        weight=tensor(weight),
        next_action_mask=mask,
    )


def test_plain_dqn_by_hand():
    found = outcome(spec(), ONLINE, TARGET, rows())
    assert_close(found.row_error, tensor([3.5, 3.0]))  # |1 + 0.9*5 - 2| and |1 + 0.5*4 - 0|
    assert_close(found.loss, tensor(2.75))  # (3.0 + 2.5) / 2
    assert_close(found.measures[1], tensor(1.0))  # (2 + 0) / 2


def test_double_dqn_by_hand():
    found = outcome(spec(double=True), ONLINE, TARGET, rows())
    assert_close(found.row_error, tensor([0.1, 3.0]))  # online prefers action 0 in the first row: |1 + 0.9*1 - 2|


def test_squared_loss_by_hand():
    assert_close(outcome(spec(loss="mse"), ONLINE, TARGET, rows()).loss, tensor((3.5**2 + 3.0**2) / 2))


def test_weights_scale_the_loss_and_not_the_error():
    found = outcome(spec(), ONLINE, TARGET, rows(weight=(0.5, 0.0)))
    assert_close(found.loss, tensor(0.75))  # 0.5 * 3.0 / 2
    assert_close(found.row_error, tensor([3.5, 3.0]))


@pytest.mark.parametrize("double", [False, True])
def test_forbidden_next_actions_are_not_chosen(double):
    mask = tensor([[True, False], [True, False]])
    found = outcome(spec(double=double), ONLINE, TARGET, rows(mask=mask))
    assert_close(found.row_error, tensor([0.1, 2.5]))  # |1 + 0.9*1 - 2| and |1 + 0.5*3|


EVEN, HIGH, LOW = [0.0, 0.0, 0.0], [-99.0, -99.0, 0.0], [0.0, -99.0, -99.0]


def test_c51_by_hand():
    """Support 0 1 2. The best next action is surely worth 2, so r + 0.5 * 2 = 1.5 is half at 1 and half at 2."""
    online, target = table([[EVEN, LOW]]), table([[LOW, HIGH]])
    one = TransitionBatch(tensor([0]), tensor([0]), tensor([0.5]), tensor([0.5]), tensor([0]), tensor([1.0]), None)
    found = outcome(spec(atoms=3), online, target, one)
    assert_close(found.loss, torch.log(tensor(3.0)))  # cross-entropy with three even atoms
    assert_close(found.row_error, torch.log(tensor([3.0])))
    assert_close(found.measures[1], tensor(1.0))


def test_double_c51_takes_the_distribution_of_the_action_the_online_network_prefers():
    online = table([[[0.0, 0.0, 1.0], LOW]])
    target = table([[LOW, HIGH]])
    one = TransitionBatch(tensor([0]), tensor([0]), tensor([0.0]), tensor([1.0]), tensor([0]), tensor([1.0]), None)
    found = outcome(spec(atoms=3, double=True), online, target, one)
    log_p = tensor([0.0, 0.0, 1.0]).log_softmax(-1)
    assert_close(found.loss, -log_p[0])  # all mass stays at 0


def test_c51_honours_masks_and_weights():
    online, target = table([[EVEN, LOW]]), table([[LOW, HIGH]])
    one = TransitionBatch(
        tensor([0]), tensor([0]), tensor([0.0]), tensor([1.0]), tensor([0]), tensor([0.25]), tensor([[True, False]])
    )
    found = outcome(spec(atoms=3), online, target, one)
    assert_close(found.loss, 0.25 * torch.log(tensor(3.0)))


def test_take_atoms_picks_one_action_per_row():
    logits = torch.arange(12.0).view(2, 2, 3)
    assert take_atoms(logits, tensor([1, 0])).tolist() == [[3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]


def test_no_gradient_flows_through_the_target():
    online, target = torch.nn.Linear(2, 3), torch.nn.Linear(2, 3)
    one = TransitionBatch(
        torch.ones(4, 2), torch.zeros(4, dtype=torch.int64), *torch.ones(2, 4), torch.ones(4, 2), torch.ones(4), None
    )
    found = outcome(spec(double=True), online, target, one)
    found.loss.backward()
    assert target.weight.grad is None
    assert online.weight.grad[1:].abs().sum() == 0  # only the action taken learns
    assert not found.row_error.requires_grad
    assert not found.measures[1].requires_grad
