from __future__ import annotations

import numpy as np
import pytest
import torch

from hotloop.proof.equivalence import compare, compare_sequences, relative_error


def test_error_is_the_length_of_the_difference_over_the_length_of_the_reference():
    assert relative_error([3.0, 4.0], [3.0, 3.0]) == pytest.approx(1.0 / np.sqrt(18.0))


def test_tensors_and_arrays_are_compared_alike():
    assert relative_error(torch.tensor([1.0, 2.0]), np.array([1.0, 2.0])) == 0.0


def test_nothing_against_nothing_is_equal():
    assert relative_error(np.zeros(3), np.zeros(3)) == 0.0


@pytest.mark.parametrize("wrong", [np.array([1.0]), np.array([np.nan, 1.0]), np.array([np.inf, 1.0])])
def test_other_shapes_and_numbers_that_are_none_are_infinitely_wrong(wrong):
    assert relative_error(wrong, np.ones(2)) == float("inf")


def test_the_worst_of_several_is_named():
    equality = compare([("loss", 1.0, 1.0), ("gradient", 1.1, 1.0)])
    assert equality.where == "gradient"
    assert equality.max_error == pytest.approx(0.1)


def test_a_difference_late_in_a_sequence_is_found():
    equality = compare_sequences(lambda j: {"x": 1.0}, lambda j: {"x": 1.0 if j < 9 else 2.0}, length=10)
    assert equality.where == "x at step 9"
    assert equality.max_error == pytest.approx(0.5 / 9)


def test_a_missing_name_is_no_agreement():
    assert compare_sequences(lambda j: {"x": 1.0}, lambda j: {}, length=2).max_error == float("inf")
