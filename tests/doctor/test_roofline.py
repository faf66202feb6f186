"""Floating-point work that can be counted by hand, and what is said of it."""

from __future__ import annotations

import pytest

from hotloop.doctor.roofline import LinearCalls, Roofline, count_operations, measure_matrix_speed, network_calls


def test_a_layer_forward_is_two_operations_for_each_weight_and_row() -> None:
    assert LinearCalls(3, 5, rows=10, backwards=0).operations == 2 * 10 * 15


def test_backward_costs_twice_forward() -> None:
    assert LinearCalls(3, 5, rows=10, forwards=0).operations == 2 * (2 * 10 * 15)


def test_a_gradient_that_nobody_wants_is_not_counted() -> None:
    through = LinearCalls(3, 5, rows=10, forwards=0, weights_wanted=False)
    assert through.operations == 2 * 10 * 15
    assert LinearCalls(3, 5, rows=10, forwards=0, weights_wanted=False, inputs_wanted=False).operations == 0


def test_a_dqn_update_by_hand() -> None:
    """4-64-64-2 with 32 rows: two forwards, a backward whose first layer wants no gradient of its inputs."""
    first, middle, head = 4 * 64, 64 * 64, 64 * 2
    forward = 2 * 32 * (first + middle + head)
    backward = 2 * 32 * (first + 2 * middle + 2 * head)
    assert count_operations(network_calls((4, 64, 64, 2), 32, forwards=2)) == 2 * forward + backward


def test_a_sac_update_of_the_usual_size_is_half_a_gflop() -> None:
    """Actor twice forward, once back; two critics three times forward (one of them the targets'), once back for
    themselves and once for the action, without weights."""
    actor = network_calls((3, 256, 256, 2), 256, forwards=2)
    critics = 2 * network_calls((4, 256, 256, 1), 256, forwards=3)
    through = [LinearCalls(a, b, 256, forwards=0, weights_wanted=False) for a, b in ((1, 256), (256, 256), (256, 1))]
    assert count_operations([*actor, *critics, *through, *through]) == pytest.approx(0.545e9, rel=0.01)


def test_share_and_floor() -> None:
    found = Roofline(operations=0.5e9, seconds=0.010, speed=100e9)
    assert found.least_seconds == pytest.approx(0.005)
    assert found.share == pytest.approx(0.5)
    assert found.sentence().startswith("this update runs at 50% of your core's matrix speed: 0.5 GFLOP in 10 ms")
    assert found.sentence().endswith("the rest is not arithmetic")
    assert "fewer updates" in Roofline(0.5e9, 0.006, 100e9).sentence()


def test_small_work_is_told_in_smaller_units() -> None:
    assert "8.9 MFLOP in 0.118 ms" in Roofline(8.9e6, 118e-6, 130e9).sentence()


def test_the_speed_of_this_core_is_measured() -> None:
    assert measure_matrix_speed(0.01) > 1e8
