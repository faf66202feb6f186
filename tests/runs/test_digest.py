"""Equal digests mean equal states, and only then."""

import hashlib

import numpy as np
import pytest

from hotloop.runs.digest import digest


def test_the_digest_is_the_hash_of_lengths_and_contents_written_out():
    state = {"learner": {"w": np.array([1, 2], dtype=np.uint8), "lr": 0.5}}
    pieces = [b'{"learner":{"lr":0.5}}', b'["learner/w","uint8",[2]]', b"\x01\x02"]
    spelled = b"".join(len(piece).to_bytes(8, "little") + piece for piece in pieces)
    assert digest(state) == hashlib.sha256(spelled).hexdigest()


def test_the_order_of_keys_does_not_matter():
    w, b = np.arange(3), np.arange(2.0)
    one = {"learner": {"w": w, "b": b, "lr": 0.1}, "envs": {"n": {"x": 1, "y": 2}}}
    two = {"envs": {"n": {"y": 2, "x": 1}}, "learner": {"lr": 0.1, "b": b, "w": w}}
    assert digest(one) == digest(two)


def test_memory_layout_and_byte_order_do_not_matter():
    array = np.arange(12, dtype=np.int32).reshape(3, 4)
    padded = np.zeros((6, 8), dtype=np.int32)
    padded[::2, ::2] = array
    forms = [array, np.asfortranarray(array), padded[::2, ::2], array.astype(">i4"), array[::-1][::-1]]
    assert len({digest({"a": {"x": form}}) for form in forms}) == 1


def test_digesting_leaves_the_state_as_it_was():
    array = np.arange(3)
    state = {"a": {"x": array, "y": 1}}
    digest(state)
    assert state["a"]["x"] is array
    assert state == {"a": {"x": array, "y": 1}}


BASE = {"a": {"x": np.array([1.0, 2.0], dtype=np.float32), "y": 1, "z": {"list": [1, 2]}}}


@pytest.mark.parametrize(
    "changed",
    [
        {"a": {**BASE["a"], "x": np.array([1.0, np.nextafter(np.float32(2), np.float32(3))], dtype=np.float32)}},
        {"a": {**BASE["a"], "x": np.array([1.0, 2.0], dtype=np.float64)}},
        {"a": {**BASE["a"], "x": np.array([[1.0, 2.0]], dtype=np.float32)}},
        {"a": {**BASE["a"], "x": BASE["a"]["x"].view(np.int32)}},
        {"a": {**BASE["a"], "x": [1.0, 2.0]}},
        {"a": {**BASE["a"], "y": 1.0}},
        {"a": {**BASE["a"], "y": True}},
        {"a": {**BASE["a"], "y": "1"}},
        {"a": {**BASE["a"], "z": {"list": [2, 1]}}},
        {"a": {**BASE["a"], "w": None}},
        {"b": BASE["a"]},
        {**BASE, "b": {}},
    ],
)
def test_any_change_changes_the_digest(changed):
    assert digest(changed) != digest(BASE)


def test_the_sign_of_zero_and_the_last_digit_of_a_float_count():
    values = [0.0, -0.0, 0.1, 0.1 + 2**-56, float("nan"), float("inf"), None]
    assert len({digest({"a": {"x": value}}) for value in values}) == len(values)


def test_bytes_do_not_slide_from_one_array_into_the_next():
    one = {"a": {"x": np.uint8([1, 2]), "y": np.uint8([3])}}
    two = {"a": {"x": np.uint8([1]), "y": np.uint8([2, 3])}}
    assert digest(one) != digest(two)
