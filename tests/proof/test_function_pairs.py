"""Two functions: what makes them the same, what tells them apart, and on which smallest input."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import hotloop
from hotloop.core.errors import ArgumentError
from hotloop.proof import speed
from hotloop.proof.case_files import found_in
from hotloop.proof.function_pairs import Pair, check_pair
from hotloop.proof.made_inputs import Arguments, made_from, smallest
from hotloop.proof.verdict import Proof

ROWS = np.random.default_rng(0).normal(size=(6, 2))
OWN = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def _few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "SAMPLE_SECONDS", 1e-4)
    monkeypatch.setattr(speed, "WARM_UP_SECONDS", 1e-3)


def check(plain: Any, fast: Any, inputs: Any, **options: Any) -> Proof:
    return check_pair(Pair(plain, fast, inputs, **options))


def plain_sum(x: Any) -> Any:
    return x.sum(axis=0)


def test_equal_functions_are_compared_on_given_and_made_inputs_and_timed() -> None:
    proof = hotloop.prove(lambda x: np.add.reduce(x), against=plain_sum, inputs=ROWS, seconds=0.01)
    assert proof.equal
    assert proof.evidence == {"given inputs": 1, "inputs made from them": 11, "gradients": 0, "tolerance": 1e-6}
    assert proof.cost is not None
    assert proof.cost.plain_memory is not None
    assert proof.headline().startswith("identical for 1 given input and 11 inputs made from them")
    assert proof.as_data()["verdict"] == "identical"


def test_a_difference_has_no_speed_and_names_the_smallest_input() -> None:
    proof = hotloop.prove(lambda x: x[:4].sum(axis=0), against=plain_sum, inputs=ROWS, seconds=0.01)
    assert not proof.passed
    assert proof.cost is None
    assert proof.difference is not None
    assert proof.difference.what == "result"
    assert "on 5 rows of it" in proof.difference.when  # the fifth row is the first that is left out
    assert proof.difference.reproduction.startswith("float64[5, 2]")


def test_sizes_make_inputs_and_show_growth() -> None:
    proof = hotloop.prove(
        lambda x: np.add.reduce(x), against=plain_sum, inputs=lambda n: np.ones((n, 2)), sizes=(8, 64), seconds=0.01
    )
    assert proof.evidence["given inputs"] == 2
    assert proof.cost is not None
    assert [one.size for one in proof.cost.sizes] == [8, 64]
    growth = proof.cost.growth()
    assert growth is not None
    assert (growth["from"], growth["to"]) == (8, 64)


def test_ties_that_no_given_input_has_are_made() -> None:
    plain = lambda x: int(np.argmax(x))  # noqa: E731
    fast = lambda x: len(x) - 1 - int(np.argmax(x[::-1]))  # noqa: E731
    x = np.array([3.0, 1.0, 2.0])
    assert check(plain, fast, x, made=False).passed
    found = check(plain, fast, x).difference
    assert found is not None
    assert "twice" in found.when


def test_an_input_that_is_changed_is_a_difference_unless_both_change_it_alike() -> None:
    def changes(x: Any) -> Any:
        total = x.sum(axis=0)
        x *= 2
        return total

    found = check(plain_sum, changes, ROWS).difference
    assert found is not None
    assert (found.what, found.kind) == ("x afterwards", "value")
    assert check(changes, changes, ROWS).passed
    assert (np.random.default_rng(0).normal(size=(6, 2)) == ROWS).all()


def test_what_raises_in_both_counts_apart_and_what_raises_in_one_is_a_difference() -> None:
    def first(x: Any) -> Any:
        return x[0] + x[1]

    proof = check(first, lambda x: x[1] + x[0], np.ones(4))
    assert proof.passed
    assert proof.evidence["inputs made from them"] == 9  # not: one row, no rows
    assert "2 further inputs raise in both" in proof.notes[0]
    found = check(first, lambda x: sum(x[:2]), [np.ones(4), np.ones(1)]).difference
    assert found is not None
    assert (found.kind, found.plain[:18], found.fast) == ("raised", "raised IndexError:", "answered")
    with pytest.raises(ArgumentError, match="nothing was compared"):
        check(lambda x: x["a"], lambda x: x["b"], np.ones(4))


def test_an_input_of_ours_on_which_plain_raises_is_a_note_and_no_verdict() -> None:
    plain = lambda x: x.max()  # noqa: E731
    proof = check(plain, lambda x: x.max(initial=-np.inf), np.arange(4.0))
    assert proof.verdict == "identical"
    assert proof.evidence["inputs made from them"] == 10
    assert proof.notes[0].startswith("on the given input with no rows plain raises ValueError: ")
    found = check(lambda x: x.max(initial=-np.inf), plain, np.arange(4.0)).difference
    assert found is not None
    assert (found.kind, found.plain) == ("raised", "answered")


class Foreign:
    """An array of another library's, such as JAX's: equal to another entry by entry, and read by numpy."""

    def __init__(self, numbers: Any) -> None:
        self._kept = np.asarray(numbers)

    dtype = property(lambda self: self._kept.dtype)
    shape = property(lambda self: self._kept.shape)
    ndim = property(lambda self: self._kept.ndim)

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, rows: Any) -> Any:
        return Foreign(self._kept[rows])

    def __eq__(self, other: object) -> Any:
        return Foreign(self._kept == np.asarray(other))

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise ValueError("the truth of an array is ambiguous")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self._kept.astype(dtype or self.dtype)

    def __dlpack__(self, **_: Any) -> Any:
        return self._kept.__dlpack__()


def test_arrays_of_another_library_are_compared_as_arrays() -> None:
    x = Foreign(ROWS)
    proof = check(lambda x: Foreign(np.asarray(x) * 2), lambda x: Foreign(np.asarray(x) + np.asarray(x)), x)
    assert (proof.verdict, proof.notes, proof.evidence["inputs made from them"]) == ("identical", (), 11)
    proof = check(lambda x: Foreign(np.asarray(x) * 0.1 * 3), lambda x: Foreign(np.asarray(x) * (0.1 * 3)), x)
    assert proof.verdict == "to rounding"
    found = check(lambda x: x, lambda x: Foreign(np.asarray(x) + np.eye(len(x), 2)), x).difference
    assert found is not None
    assert (found.what, found.index, found.largest_error) == ("result", (0, 0), pytest.approx(1.0))


def test_arrays_of_jax_are_compared_as_arrays() -> None:
    jnp = pytest.importorskip("jax.numpy")
    x = jnp.arange(12.0).reshape(6, 2)
    assert check(lambda x: {"sum": x.sum(0)}, lambda x: {"sum": jnp.sum(x, 0)}, x).verdict == "identical"
    assert check(lambda x: x.astype(jnp.bfloat16), lambda x: x.astype(jnp.bfloat16), x).verdict == "identical"
    found = check(lambda x: x.sum(0), lambda x: x.sum(0) + 1, x).difference
    assert found is not None
    assert found.what == "result"


def test_gradients_are_compared_of_inputs_and_of_modules() -> None:
    x, w = torch.randn(5, 3), torch.randn(3, 2)
    plain = lambda x, w: torch.relu(x @ w)  # noqa: E731
    assert check(plain, lambda x, w: (x @ w).clamp(min=0), (x, w)).evidence["gradients"] == 12
    cut = lambda x, w: torch.relu(x @ w.detach())  # noqa: E731
    found = check(plain, cut, (x, w)).difference
    assert found is not None
    assert (found.what, found.fast) == ("gradient of w", "none")
    assert check(plain, cut, (x, w), gradients=False).passed
    net = nn.Linear(3, 2)
    scaled = lambda net, x: net(x) + (net.bias - net.bias.detach())  # noqa: E731
    found = check(lambda net, x: net(x), scaled, (net, x)).difference
    assert found is not None
    assert found.what == "gradient of net.bias"
    assert net.weight.grad is None


def test_a_function_that_trains_its_module_is_held_by_what_becomes_of_it() -> None:
    def update(net: Any, x: Any, lr: float = 0.1) -> float:
        net.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        with torch.no_grad():
            for parameter in net.parameters():
                parameter -= lr * parameter.grad
        return loss.item()

    inputs = (nn.Linear(3, 2), torch.randn(5, 3))
    assert check(update, update, inputs).passed
    found = check(update, lambda net, x: update(net, x, 0.11), inputs).difference
    assert found is not None
    assert found.what == "net afterwards.weight"


def test_generators_are_in_one_state_before_every_call() -> None:
    def draws(x: Any) -> Any:
        return x + random.random() + np.random.random() + float(torch.rand(())) + OWN.random()

    before = random.getstate()
    assert check(draws, lambda x: draws(x), ROWS).passed
    assert random.getstate() == before
    proof = check(draws, lambda x: (draws(x), random.random())[0], ROWS)
    assert proof.passed
    assert proof.notes == ("Python's random is left in another state: what is drawn next differs",)


def test_a_cache_that_ignores_its_input_is_found_and_called_a_cache() -> None:
    kept: dict[int, Any] = {}

    def cached(x: Any) -> Any:
        if len(x) not in kept:
            kept[len(x)] = x.sum(axis=0)
        return kept[len(x)]

    found = check(plain_sum, cached, [ROWS, ROWS + 1]).difference
    assert found is not None
    assert found.when.startswith("on the given input number 1")


def test_a_plain_function_that_does_not_repeat_itself_is_named() -> None:
    count = iter(range(1000))
    proof = check(lambda x: x + next(count), lambda x: x, ROWS)
    assert any("plain itself answers differently" in note for note in proof.notes)


def test_assert_same_is_silent_or_says_what_differs() -> None:
    hotloop.assert_same(plain_sum, lambda x: np.add.reduce(x), ROWS)
    with pytest.raises(AssertionError, match=r"`result\[0\]` differs on the given input.*\n?.*smallest input found"):
        hotloop.assert_same(plain_sum, lambda x: x.max(axis=0), ROWS)


def test_named_arguments_and_containers_of_rows_are_taken_together() -> None:
    batch = {"obs": np.arange(8.0).reshape(4, 2), "action": np.array([0, 1, 0, 1]), "gamma": 0.9}
    taken = Arguments.of({"batch": batch, "scale": 2.0}).take([3, 3])
    assert taken.named["batch"]["action"].tolist() == [1, 1]
    assert taken.named["batch"]["gamma"] == 0.9
    layers = (np.ones((4, 2)), np.ones((2, 3)))
    assert Arguments.of((np.ones(4), layers)).take([0]).positional[1] is layers  # no columns of a table


def test_made_inputs_say_what_was_done() -> None:
    made = dict(made_from(Arguments.of(np.array([4.0, 5.0, 6.0]))))
    assert made["its rows in reverse order"].positional[0].tolist() == [6.0, 5.0, 4.0]
    assert made["every row twice"].positional[0].tolist() == [4.0, 4.0, 5.0, 5.0, 6.0, 6.0]
    assert made["no rows"].positional[0].tolist() == []
    assert made["ties: all its numbers equal"].positional[0].tolist() == [4.0, 4.0, 4.0]
    assert not list(made_from(Arguments.of((1.0, "text"))))


def test_the_smallest_input_keeps_what_is_needed() -> None:
    found, rows = smallest(Arguments.of(np.arange(50)), lambda less: {7, 31} <= set(less.positional[0].tolist()))
    assert found.positional[0].tolist() == [7, 31]
    assert rows == 2


def test_mistakes_are_told(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="`inputs` is missing"):
        hotloop.prove(plain_sum, against=plain_sum)
    with pytest.raises(ArgumentError, match="no argument `input` for a function"):
        hotloop.prove(plain_sum, against=plain_sum, inputs=ROWS, input=ROWS)
    with pytest.raises(ArgumentError, match="`against` is missing"):
        hotloop.prove(plain_sum, inputs=ROWS)
    with pytest.raises(ArgumentError, match="no function"):
        check(plain_sum, 3, ROWS)
    with pytest.raises(ArgumentError, match="`inputs` is empty"):
        check(plain_sum, plain_sum, [])
    with pytest.raises(ArgumentError, match="no file"):
        found_in(tmp_path / "nothing.py")
    (tmp_path / "none.py").write_text("x = 1\n")
    with pytest.raises(ArgumentError, match="has no pairs"):
        found_in(tmp_path / "none.py")
    (tmp_path / "broken.py").write_text("import nowhere_to_be_found\n")
    with pytest.raises(ArgumentError, match="cannot be loaded: ModuleNotFoundError"):
        found_in(tmp_path / "broken.py")
