"""What a finding promises."""

import pytest

from hotloop.doctor.finding import expected_gain


def test_without_relief_it_is_amdahls_law():
    assert expected_gain(0.5, 5.0, relief=0.0) == pytest.approx(1 / (0.5 + 0.1))
    assert expected_gain(0.75, relief=0.0) == pytest.approx(4.0)


def test_the_rest_is_relieved_by_as_much_as_goes():
    assert expected_gain(0.5, relief=0.5) == pytest.approx(1.25 / 0.5)  # a half goes: the rest is 1.25 times faster
    assert expected_gain(0.5, 2.0, relief=0.4) == pytest.approx(1 / (0.5 / 1.1 + 0.25))  # a quarter goes


def test_nothing_gone_is_nothing_gained():
    assert expected_gain(0.6, 1.0) == 1.0
    assert expected_gain(0.0) == 1.0
