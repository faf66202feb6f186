"""Two networks: parameters mapped, forward, gradients and optimizer steps in both modes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hotloop.core.errors import ArgumentError
from hotloop.proof.module_inputs import inputs_for, parse_shape
from hotloop.proof.module_pairs import prove_modules
from hotloop.proof.verdict import Proof


def prove(plain: Any, fast: Any, inputs: Any = None, **more: Any) -> Proof:
    return prove_modules(plain, fast, inputs, seconds=0, **more)


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.drop, self.last = (
            nn.Linear(4, 8),
            nn.BatchNorm1d(8),
            nn.Dropout(0.3),
            nn.Linear(8, 2),
        )

    def forward(self, x: Any) -> Any:
        return self.last(self.drop(torch.relu(self.norm(self.first(x)))))


class Stacked(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2))


def test_equal_networks_by_name_and_by_order_and_timed() -> None:
    proof = prove_modules(Plain, Plain, seconds=0.01)
    assert proof.equal
    assert proof.cost is not None
    assert proof.evidence["mapped"] == "by name"
    proof = prove(Plain, Stacked)
    assert proof.equal
    assert proof.evidence["mapped"] == "by order and shape"
    assert proof.evidence["optimizer steps"] == 10


def changed(**members: Any) -> type[nn.Module]:
    return type("Changed", (Plain,), members)


MUTANTS: list[tuple[Any, str, str]] = [
    (lambda self, x: self.last(self.drop(torch.relu(self.first(x)))), "result", "eval mode"),
    (lambda self, x: self.last(self.drop(nn.functional.leaky_relu(self.norm(self.first(x))))), "result", "eval mode"),
    (lambda self, x: self.last(torch.relu(self.norm(self.first(x)))), "result", "train mode"),
    (lambda self, x: Plain.forward(self, x).double(), "result", "eval mode"),
    (lambda self, x: Plain.forward(self, x)[:, None], "result", "eval mode"),
    (
        lambda self, x: self.last(self.drop(torch.relu(self.norm(self.first(x)).detach()))),
        "gradient of first.weight",
        "step 1",
    ),
    (lambda self, x: Plain.forward(self, x.detach()), "gradient of inputs[0]", "step 1"),
    (
        lambda self, x: Plain.forward(self, x) + 0.1 * (self.last.bias - self.last.bias.detach()),
        "gradient of last.bias",
        "step 1",
    ),
]


@pytest.mark.parametrize(("forward", "what", "when"), MUTANTS, ids=[str(number) for number in range(len(MUTANTS))])
def test_what_differs_is_named_with_mode_and_step(forward: Any, what: str, when: str) -> None:
    found = prove(Plain, changed(forward=forward)).difference
    assert found is not None
    assert found.what == what
    assert when in found.when


def test_buffers_are_compared_after_training() -> None:
    class Slow(Plain):
        def __init__(self) -> None:
            super().__init__()
            self.norm.momentum = 0.2

    found = prove(Plain, Slow).difference
    assert found is not None
    assert found.what in ("x afterwards", "norm.running_mean")
    assert "train mode" in found.when


def test_dropout_in_another_order_is_noted() -> None:
    class Other(Plain):
        def forward(self, x: Any) -> Any:
            torch.rand(1)
            return super().forward(x)

    other = prove(Plain, Other)
    assert other.equal
    assert "dropout draws in another order" in other.notes[0]


def test_a_function_maps_parameters_and_their_gradients() -> None:
    class Joined(nn.Module):
        """Weight and bias as one."""

        def __init__(self) -> None:
            super().__init__()
            self.whole = nn.Parameter(torch.zeros(2, 4))

        def forward(self, x: Any) -> Any:
            return x @ self.whole[:, :3].T + self.whole[:, 3]

    def joined(state: dict[str, Any]) -> dict[str, Any]:
        return {"whole": torch.cat([state["weight"], state["bias"][:, None]], dim=1)}

    plain = nn.Linear(3, 2)
    proof = prove(plain, Joined, (8, 3), mapping=joined)
    assert proof.equal
    assert proof.evidence["mapped"] == "by a function"
    with pytest.raises(ArgumentError, match=r"plain has `weight` \[2, 3\] where fast has `whole` \[2, 4\]"):
        prove(plain, Joined, (8, 3))
    with pytest.raises(ArgumentError, match="do not fit"):
        prove(plain, Joined, (8, 3), mapping=dict)


def test_a_rewrite_by_einsum_and_one_by_convolution_are_the_same() -> None:
    class ByEinsum(nn.Linear):
        def forward(self, x: Any) -> Any:
            return torch.einsum("bi,oi->bo", x, self.weight) + self.bias

    assert prove(lambda: nn.Linear(64, 32), lambda: ByEinsum(64, 32)).equal
    assert prove(lambda: nn.Conv2d(3, 4, 3), lambda: nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)).equal


def test_inputs_are_read_from_the_first_layer_or_given() -> None:
    assert inputs_for(nn.Sequential(nn.Flatten(), nn.Linear(6, 2)), None)[0].shape == (32, 6)
    assert inputs_for(nn.Conv2d(3, 4, 5), None)[0].shape == (32, 3, 20, 20)
    (tokens,) = inputs_for(nn.Embedding(5, 2), None)
    assert tokens.dtype == torch.int64
    assert int(tokens.max()) < 5
    assert parse_shape("32,7:int64") == ((32, 7), "int64")
    assert [one.shape for one in inputs_for(nn.Bilinear(2, 3, 1), ["5,2", "5,3"])] == [(5, 2), (5, 3)]
    for text in ("a", "0,4", "3:text"):
        with pytest.raises(ArgumentError, match="is no"):
            parse_shape(text)
    with pytest.raises(ArgumentError, match="does not take"):
        inputs_for(nn.Linear(4, 2), (3, 5))
    with pytest.raises(ArgumentError, match="no Linear"):
        inputs_for(nn.ReLU(), None)


def test_files_and_mistakes(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "from torch import nn\nNet = lambda: nn.Linear(2, 1)\nwrong = lambda: 3\nbad = lambda: 1 / 0\n"
    )
    assert prove(f"{tmp_path}/net.py:Net", f"{tmp_path}/net.py:Net").equal
    for name, said in (("wrong", "made a int"), ("bad", "could not be made"), ("none", "has no class or function")):
        with pytest.raises(ArgumentError, match=said):
            prove(f"{tmp_path}/net.py:Net", f"{tmp_path}/net.py:{name}")
    with pytest.raises(ArgumentError, match="there is no"):
        prove("nowhere.py:Net", "nowhere.py:Net")
