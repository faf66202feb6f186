"""What differs first between two values, checked by eye."""

from __future__ import annotations

from collections import deque, namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from hotloop.proof.difference import Difference, Tolerance, first_difference
from hotloop.proof.values import copied

NAN, INF = float("nan"), float("inf")
Point = namedtuple("Point", "x y")


@dataclass
class State:
    position: np.ndarray
    steps: int


def test_an_entry_is_named_with_its_index_both_values_and_how_many_differ() -> None:
    plain, fast = np.zeros((2, 3)), np.zeros((2, 3))
    fast[1, 0], fast[1, 2] = 0.25, -4.0
    found = first_difference("result", plain, fast)
    assert found == Difference("result", "value", "0", "0.25", (1, 0), 4.0, 2, 6)
    assert found.sentence() == ("`result[1, 0]` differs: plain 0, fast 0.25; 2 of 6 entries differ, by 4 at most")
    assert found.at("at env step 3").sentence().startswith("`result[1, 0]` differs at env step 3: ")


@pytest.mark.parametrize(
    ("plain", "fast", "kind", "what"),
    [
        (np.zeros(2), np.zeros(2, np.float32), "dtype", "v"),
        (torch.zeros(2), torch.zeros(2, dtype=torch.float64), "dtype", "v"),
        (np.zeros(2), np.zeros((2, 1)), "shape", "v"),
        (np.zeros(2), [0.0, 0.0], "type", "v"),
        (np.zeros(2), torch.zeros(2, dtype=torch.float64), "type", "v"),
        ((1, 2), [1, 2], "type", "v"),
        ((1, 2), (1, 2, 3), "length", "v"),
        ({"a": 1}, {"a": 1, "b": 2}, "keys", "v"),
        ({"a": (1.0, [2, 3])}, {"a": (1.0, [2, 4])}, "value", "v['a'][1][1]"),
        (Point(1, 2), Point(1, 3), "value", "v.y"),
        (deque([np.zeros(2)]), deque([np.ones(2)]), "value", "v[0]"),
        (State(np.zeros(2), 1), State(np.zeros(2), 2), "value", "v.steps"),
        (1, True, "dtype", "v"),
        (1, 1.0, "dtype", "v"),
        (1.0, np.float32(1.0), "dtype", "v"),
        ("a", "b", "value", "v"),
        (None, 0, "type", "v"),
        (np.array([1, 2]), np.array([1, 3]), "value", "v"),
        (np.array([True]), np.array([False]), "value", "v"),
        (np.array([NAN, 1.0]), np.array([1.0, NAN]), "value", "v"),
        (INF, -INF, "value", "v"),
        (INF, 1e300, "value", "v"),
    ],
)
def test_what_differs_is_told_by_kind_and_path(plain: object, fast: object, kind: str, what: str) -> None:
    found = first_difference("v", plain, fast, Tolerance(1e-6))
    assert found is not None
    assert (found.kind, found.what) == (kind, what)
    assert found.sentence()
    assert found.as_data()["what"] == what


@pytest.mark.parametrize(
    "value",
    [
        np.array([NAN, INF, -INF, 0.0]),
        torch.tensor([NAN, 1.0], dtype=torch.bfloat16),
        {"a": [1, (2.0, None)], "b": {"c": "text"}},
        Point(np.zeros(0), torch.zeros(0, 3)),
        np.float64(3.0),
        np.array(["a", "b"]),
        nn.Linear(2, 2),
        np.random.default_rng(0),
        {1, 2},
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_copy_is_the_same_and_shares_nothing(value: object) -> None:
    assert first_difference("v", value, copied(value)) is None


def test_a_number_of_python_and_its_largest_kin_in_numpy_are_the_same() -> None:
    assert first_difference("v", (1.5, 2, True), (np.float64(1.5), np.int64(2), np.bool_(True))) is None


def test_tolerance_is_by_the_size_of_the_entry_or_of_its_array() -> None:
    plain = np.array([1000.0, 1.0, 0.0])  # root mean square 577.4
    tolerance = Tolerance(1e-3)
    assert first_difference("v", plain, plain + np.array([0.9, 0.5, 0.5]), tolerance) is None
    found = first_difference("v", plain, plain + np.array([0.0, 0.0, 0.6]), tolerance)
    assert found is not None
    assert found.index == (2,)
    by_entry = Tolerance(1e-3, scales={"v": np.array([1000.0, 1.0, 1.0])})
    found = first_difference("v", plain, plain + np.array([0.9, 0.0005, 0.01]), by_entry)
    assert found is not None
    assert (found.index, found.differing) == ((2,), 1)


def test_without_tolerance_not_even_rounding_may_differ() -> None:
    one = np.array([0.1 + 0.2])
    assert first_difference("v", one, np.array([0.3])) is not None
    assert first_difference("v", one, np.array([0.3]), Tolerance(1e-9)) is None


def test_a_module_is_its_parameters_gradients_and_buffers() -> None:
    module = nn.BatchNorm1d(2)
    other = copied(module)
    other(torch.randn(4, 2)).sum().backward()
    found = first_difference("net", module, other)
    assert found is not None
    assert found.what == "net.weight.grad"
    other.zero_grad()
    found = first_difference("net", module, other)
    assert found is not None
    assert found.what == "net.running_mean"


def test_what_two_parts_share_their_copies_share() -> None:
    module = nn.Linear(2, 1)
    own, optimizer = copied((module, torch.optim.SGD(module.parameters(), 0.1)))
    assert optimizer.param_groups[0]["params"][0] is own.weight
    assert own.weight is not module.weight
    derived = (module.weight * 2).detach().requires_grad_() * 1.0
    assert copied([derived])[0].is_leaf


def test_an_object_within_itself_is_compared_to_its_end() -> None:
    one: dict[str, object] = {"a": 1}
    one["self"] = one
    other: dict[str, object] = {"a": 1}
    other["self"] = other
    assert first_difference("v", one, other) is None


nested = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=True) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3) | st.tuples(inner)
    ),
    max_leaves=8,
)


@given(nested)
def test_every_value_is_the_same_as_its_copy(value: object) -> None:
    assert first_difference("v", value, copied(value), Tolerance(1e-6)) is None


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=8), st.data())
def test_the_first_entry_that_differs_is_the_one_that_was_changed(values: list[float], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(values) - 1))
    plain = np.array(values)
    fast = plain.copy()
    fast[place] += 1.0
    found = first_difference("v", plain, fast, Tolerance(1e-6))
    assert found is not None
    assert (found.index, found.differing, found.total) == ((place,), 1, len(values))
    assert found.largest_error == pytest.approx(1.0)
