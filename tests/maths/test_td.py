"""TD targets and row losses: by eye, against plain loops, against torch's own."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import tensor
from torch.nn import functional
from torch.testing import assert_close

from hotloop.maths.td import huber, mask_actions, squared, take, td_target
from tests.oracles import td_oracle


def test_the_target_is_reward_plus_discounted_best_next_value():
    q = tensor([[1.0, 5.0], [3.0, 4.0]])
    y = td_target(tensor([1.0, 2.0]), tensor([0.9, 0.5]), q, q)
    assert_close(y, tensor([5.5, 4.0]))  # 1 + 0.9*5, and 2 + 0.5*4


def test_double_target_takes_the_value_of_the_action_the_online_network_prefers():
    y = td_target(
        reward=tensor([1.0, 1.0]),
        discount=tensor([0.9, 0.0]),  # second row terminated
        q_eval=tensor([[1.0, 5.0], [3.0, 4.0]]),
        q_select=tensor([[9.0, 0.0], [0.0, 9.0]]),
    )
    assert_close(y, tensor([1.9, 1.0]))  # 1 + 0.9*1, and 1 + 0


def test_forbidden_actions_are_never_the_best():
    q = mask_actions(tensor([[1.0, 5.0, 3.0]]), tensor([[True, False, True]]))
    assert q.tolist() == [[1.0, -torch.inf, 3.0]]
    assert q.argmax(-1).item() == 2
    same = tensor([[1.0, 2.0]])
    assert mask_actions(same, None) is same


def test_a_terminal_row_stays_finite_under_a_mask():
    q_eval = tensor([[1.0, 2.0]])
    y = td_target(tensor([3.0]), tensor([0.0]), q_eval, mask_actions(q_eval, tensor([[False, False]])))
    assert y.tolist() == [3.0]


def test_take_picks_one_value_per_row():
    assert take(tensor([[1.0, 2.0], [3.0, 4.0]]), tensor([1, 0])).tolist() == [2.0, 3.0]


def test_row_losses_by_hand():
    error = tensor([0.0, 0.5, 1.0, -1.0, 3.0, -2.0])
    assert_close(huber(error), tensor([0.0, 0.125, 0.5, 0.5, 2.5, 1.5]))
    assert_close(squared(error), tensor([0.0, 0.25, 1.0, 1.0, 9.0, 4.0]))


@given(st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=30))
def test_row_losses_and_their_gradients_equal_torchs(errors):
    for ours, theirs in ((huber, functional.smooth_l1_loss), (squared, functional.mse_loss)):
        a, b = (tensor(errors, requires_grad=True) for _ in range(2))
        ours(a).sum().backward()
        theirs(b, torch.zeros(len(errors)), reduction="sum").backward()
        assert_close(ours(a), theirs(b, torch.zeros(len(errors)), reduction="none"))
        assert_close(a.grad, b.grad)


rows = st.integers(1, 6).flatmap(
    lambda actions: st.lists(
        st.tuples(
            st.floats(-10, 10, width=32),
            st.floats(0, 1, width=32),
            st.lists(st.floats(-50, 50, width=32), min_size=actions, max_size=actions),
            st.lists(st.floats(-50, 50, width=32), min_size=actions, max_size=actions),
            st.lists(st.booleans(), min_size=actions, max_size=actions).filter(any),
        ),
        min_size=1,
        max_size=8,
    )
)


@given(rows)
def test_targets_equal_a_loop_over_plain_numbers(rows):
    reward, discount, q_eval, q_select, allowed = (tensor(column) for column in zip(*rows, strict=True))
    y = td_target(reward, discount, q_eval, mask_actions(q_select, allowed))
    assert y.tolist() == pytest.approx([td_oracle.target(*row) for row in rows], rel=1e-5, abs=1e-5)


@given(st.floats(-5, 5, width=32))
def test_huber_equals_its_definition(error):
    assert huber(tensor(error)).item() == pytest.approx(td_oracle.huber(error), rel=1e-6)
