"""What errors are measured by: marks such as -1e9 hide nothing, and sums in another order are still the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import hotloop
from hotloop.doctor.recorder.fingerprints import fingerprint
from hotloop.proof.difference import Tolerance, first_difference
from hotloop.proof.env_play import EnvEvents, scales_of
from hotloop.proof.env_players import Event
from hotloop.proof.equivalence import relative_error
from hotloop.proof.function_pairs import Pair, check_pair
from hotloop.proof.module_pairs import prove_modules
from hotloop.proof.programs import Fingerprint
from hotloop.proof.scales import are_marks

MARKS = [
    -1e8,
    -1e9,
    -1e10,
    float(np.finfo(np.float32).min),
    -np.inf,
    -65504.0,
    -9_999_999.0,
    -(2.0**31),
    -123_456_789.0,
]
SHAPES = [(6,), (1, 6), (16, 6), (16, 3), (4, 8, 5)]
EPS = float(np.finfo(np.float32).eps)


def differ(plain: Any, fast: Any) -> bool:
    return first_difference("v", plain, fast, Tolerance(1e-6)) is not None


def masked(shape: tuple[int, ...], dtype: Any, mark: float, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Logits, and which of them are legal: at least one is, and one is not."""
    generator = np.random.default_rng(seed)
    logits = generator.normal(size=shape).astype(dtype)
    legal = generator.random(shape) >= share
    legal.reshape(-1)[:2] = True, False
    logits[~legal] = mark
    return logits, legal


@given(
    st.sampled_from(SHAPES),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from(MARKS),
    st.sampled_from([0.1, 0.5, 0.9]),
    st.integers(0, 99),
)
def test_legal_logits_are_told_apart_whatever_marks_the_others(
    shape: tuple[int, ...], dtype: Any, mark: float, share: float, seed: int
) -> None:
    plain, legal = masked(shape, dtype, mark, share, seed)
    assert not differ(plain, np.where(legal, plain * dtype(1 + 2e-7), plain))
    assert differ(plain, np.where(legal, plain + dtype(0.5), plain))
    assert differ(plain, np.where(legal, -plain, plain))
    one = plain.copy()
    one.reshape(-1)[0] += 0.5
    assert differ(plain, one)
    assert differ(plain, np.where(legal, plain, dtype(-3e7)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e3, 1e5, 1e7, 1e9])
def test_a_column_of_large_numbers_hides_no_other(dtype: Any, size: float) -> None:
    generator = np.random.default_rng(0)
    plain = generator.normal(size=(64, 5)).astype(dtype)
    plain[:, 2] *= size
    for change in (lambda x: x + 0.5, lambda x: -x):
        fast = plain.copy()
        fast[:, 0] = change(fast[:, 0])
        assert differ(plain, fast)


@given(st.sampled_from([np.float32, np.float64]), st.sampled_from([1e-6, 1.0, 1e6]), st.integers(0, 99))
def test_gradients_summed_in_another_order_are_the_same(dtype: Any, size: float, seed: int) -> None:
    """Rows of sizes from 1e-6 to 1e3; a column whose sum cancels to zero."""
    generator = np.random.default_rng(seed)
    inputs = (generator.normal(size=(500, 16)) * 10.0 ** generator.integers(-6, 4, size=16)).astype(dtype)
    errors = (generator.normal(size=(500, 8)) * size).astype(dtype)
    errors[:, 3] -= errors[:, 3].mean()
    order = generator.permutation(500)
    assert not differ(inputs.T @ errors, inputs[order].T @ errors[order])
    assert not differ(errors.sum(axis=0), errors[order].sum(axis=0))
    ones = np.tile(np.array([1, 2, 3, 4], dtype), (500, 1))
    assert not differ(ones.T @ errors, ones[order].T @ errors[order])


def test_what_is_large_by_itself_is_no_mark() -> None:
    for values in ([1e8, 1e8, 1e8], [1e5, 2e5, 3e4], [1e-9, 3.0, 1e3], [0.0, 0.0, 1.0], [12345.0, 0.5]):
        assert not are_marks(np.array(values), EPS).any(), values
    assert are_marks(np.array([0.5, -1e9, np.nan, np.inf]), EPS).tolist() == [False, True, True, True]


def masks(move: float, sign: float = 1.0) -> Any:
    return lambda logits, legal: torch.where(legal, sign * logits + move, torch.tensor(-1e9))


def test_functions_with_masked_answers_are_told_apart() -> None:
    logits, legal = (
        torch.randn(8, 5, generator=torch.Generator().manual_seed(0)),
        torch.arange(40).reshape(8, 5) % 3 > 0,
    )
    for fast in (masks(0.5), masks(0.0, -1.0)):
        found = check_pair(Pair(masks(0.0), fast, (logits, legal))).difference
        assert found is not None
        assert found.what == "result"
    proof = check_pair(Pair(masks(0.0), lambda x, legal: masks(0.0)(x * 3 / 3, legal), (logits, legal)))
    assert proof.verdict in ("identical", "to rounding")
    with pytest.raises(AssertionError, match="is not the same"):
        hotloop.assert_same(masks(0.0), masks(0.5), (logits, legal))


class Masked(nn.Module):
    """A policy whose last action is never legal, with its mask as a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 3)
        self.register_buffer("mask", torch.tensor([0.0, 0.0, -1e9]))

    def forward(self, obs: Any) -> Any:
        return self.logits(obs) + self.mask

    def logits(self, obs: Any) -> Any:
        return self.head(obs)


class Moved(Masked):
    def logits(self, obs: Any) -> Any:
        return super().logits(obs) + 0.5


class Negated(Masked):
    def logits(self, obs: Any) -> Any:
        return -super().logits(obs)


class Slower(Masked):
    """Right answers; a gradient of half the size."""

    def logits(self, obs: Any) -> Any:
        found = super().logits(obs)
        return (0.5 * found + 0.5 * found.detach()) if torch.is_grad_enabled() else found


@pytest.mark.parametrize("wrong", [Moved, Negated, Slower])
def test_networks_with_masked_answers_are_told_apart(wrong: Any) -> None:
    assert prove_modules(Masked, Masked, seconds=0).verdict == "identical"
    assert prove_modules(Masked, wrong, seconds=0).verdict == "different"


def test_a_number_that_is_a_mark_at_times_is_measured_by_the_other_times() -> None:
    lane = EnvEvents(
        [Event("step", {"observation": np.array([1.0, -1e9 if step % 2 else 0.5])}) for step in range(10)], []
    )
    assert scales_of([lane])["observation"] == pytest.approx([1.0, 0.5])


def test_a_mark_has_no_share_in_the_norm_of_a_fingerprint_or_of_a_case() -> None:
    plain = np.array([0.3, -0.7, -1e9, np.inf])
    wrong, rounded = plain + [0.5, 0, 0, 0], plain * (1 + 1e-9)
    of = [Fingerprint.read(fingerprint(one, near=True)) for one in (plain, wrong, rounded)]
    assert of[0].error(of[1]) > 0.3
    assert of[0].error(of[2]) < 1e-8
    assert of[0].error(Fingerprint.read(fingerprint(plain * [1, 1, 10, 1], near=True))) > 1e-3
    assert relative_error(wrong[:3], plain[:3]) > 0.3
    assert relative_error(rounded[:3], plain[:3]) < 1e-8
