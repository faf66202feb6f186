"""From a policy's outputs to an env's actions: frequencies, masks, bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hotloop.core.errors import EnvError
from hotloop.core.types import BoxActions, DiscreteActions, MultiDiscreteActions
from hotloop.learners.action_map import ActionMap
from hotloop.maths.action_kernels import draw_actions, shuffle
from hotloop.maths.distributions import NO_MASK

NO_STD = np.zeros(0, np.float32)
DRAWS = 20_000


def drawn(actions: ActionMap, outputs: list[float], log_std: list[float] = (), mask=None, seed: int = 3) -> np.ndarray:
    """So many actions [DRAWS, W] from the same outputs."""
    rows = np.tile(np.array(outputs, np.float32), (DRAWS, 1))
    masks = NO_MASK if mask is None else np.tile(np.array(mask, bool), (DRAWS, 1))
    action, counts = np.empty((DRAWS, actions.layout.width), np.float32), np.array(actions.layout.counts, np.int64)
    draw_actions(np.array([seed], np.uint64), rows, np.array(log_std, np.float32), masks, counts, action)
    return action


def within_chance(count: int, share: float) -> bool:
    return abs(count - DRAWS * share) <= 5 * math.sqrt(DRAWS * share * (1 - share)) + 1e-9


def test_choices_come_as_often_as_their_probabilities_say():
    actions = ActionMap(DiscreteActions(3), squashed=False)
    counts = np.bincount(actions.to_env(drawn(actions, [math.log(0.2), math.log(0.5), math.log(0.3)])), minlength=3)
    assert all(within_chance(count, share) for count, share in zip(counts, (0.2, 0.5, 0.3), strict=True))


def test_forbidden_choices_never_come_and_the_others_share():
    actions = ActionMap(DiscreteActions(3), squashed=False)
    chosen = drawn(actions, [math.log(0.2), 50.0, math.log(0.6)], mask=[True, False, True])
    counts = np.bincount(actions.to_env(chosen), minlength=3)
    assert counts[1] == 0
    assert within_chance(counts[0], 0.25)
    best = actions.best(np.array([[0.0, 9.0, 1.0]], np.float32), NO_STD, np.array([[True, False, True]]))
    assert actions.to_env(best).tolist() == [2]


def test_several_choices_are_drawn_each_for_itself():
    actions = ActionMap(MultiDiscreteActions((2, 3)), squashed=False)
    chosen = actions.to_env(drawn(actions, [0.0, math.log(3.0), 0.0, 0.0, -99.0]))
    assert chosen.dtype == np.int64
    assert within_chance(chosen[:, 0].sum(), 0.75)
    assert within_chance((chosen[:, 1] == 1).sum(), 0.5)
    assert (chosen[:, 1] < 2).all()


def test_numbers_have_the_mean_and_deviation_asked_for():
    actions = ActionMap(BoxActions((-np.inf,), (np.inf,), (1,)), squashed=False)
    numbers = drawn(actions, [2.0], [math.log(0.5)])
    assert abs(numbers.mean() - 2.0) < 5 * 0.5 / math.sqrt(DRAWS)
    assert abs(numbers.std() - 0.5) < 0.02
    np.testing.assert_array_equal(actions.to_env(numbers), numbers)  # without bounds: as they are


def test_a_unit_is_half_the_range_and_nothing_leaves_it():
    actions = ActionMap(BoxActions((0.0, -2.0), (10.0, 2.0), (1, 2)), squashed=False)
    env = actions.to_env(np.array([[0.0, 0.0], [1.0, -1.0], [7.0, -7.0]], np.float32))
    assert env.tolist() == [[[5.0, 0.0]], [[10.0, -2.0]], [[10.0, -2.0]]]
    assert env.dtype == np.float32


def test_squashed_numbers_go_through_tanh():
    actions = ActionMap(BoxActions((-2.0,), (2.0,), (1,)), squashed=True)
    assert actions.to_env(np.array([[0.5]], np.float32))[0, 0] == pytest.approx(2 * math.tanh(0.5))


def test_what_has_no_bounds_cannot_be_squashed():
    with pytest.raises(EnvError, match="squashed"):
        ActionMap(BoxActions((-1.0, 0.0), (1.0, np.inf), (2,)), squashed=True)


def test_the_same_state_draws_the_same():
    actions = ActionMap(DiscreteActions(2), squashed=False)
    np.testing.assert_array_equal(drawn(actions, [0.0, 0.0]), drawn(actions, [0.0, 0.0]))
    assert not np.array_equal(drawn(actions, [0.0, 0.0]), drawn(actions, [0.0, 0.0], seed=4))


def test_every_epoch_has_every_row_once_in_an_order_of_its_own():
    order = np.empty((3, 50), np.int64)
    shuffle(np.array([1], np.uint64), order)
    assert all(sorted(epoch) == list(range(50)) for epoch in order.tolist())
    assert len({tuple(epoch) for epoch in order.tolist()}) == 3


def test_all_orders_of_three_come_equally_often():
    order = np.empty((DRAWS, 3), np.int64)
    shuffle(np.array([1], np.uint64), order)
    counts = np.unique(order @ np.array([9, 3, 1]), return_counts=True)[1]
    assert len(counts) == 6
    assert all(within_chance(count, 1 / 6) for count in counts)
