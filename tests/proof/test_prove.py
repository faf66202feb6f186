"""`hotloop.prove` goes by what it is given: functions, networks, envs or programs, by object, name or path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from torch import nn

import hotloop
from hotloop.core.errors import ArgumentError
from hotloop.proof.prove import _kind_of_both

PROGRAM = """
class Env:
    def reset(self, seed=None, options=None):
        return 0.0, {}

    def step(self, action):
        return 1.0, 1.0, False, False, {}


env = Env()
env.reset()
for _ in range(20):
    env.step(0)
"""


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        return self.layer(x)


def double(x: Any) -> Any:
    return 2 * x


def make_env() -> Any:
    return gymnasium.make("CartPole-v1")


def make_many(num_envs: int) -> Any:
    return gymnasium.make_vec("CartPole-v1", num_envs)


@pytest.mark.parametrize(
    ("plain", "fast", "inputs", "kind"),
    [
        (double, double, (np.ones(3),), "function"),
        (double, lambda x: x + x, [np.ones(3)], "function"),
        (np.sum, np.add.reduce, np.ones(3), "function"),
        (lambda: 3, lambda: 3, (), "function"),
        (Net, Net, None, "network"),
        (Net(), Net, (4, 3), "network"),
        (lambda: nn.Linear(2, 1), Net, None, "network"),
        (lambda: nn.Linear(2, 1), lambda: nn.Linear(2, 1), (4, 2), "network"),
        ("CartPole-v1", "cartpole", None, "env"),
        ("CartPole-v1", make_env, None, "env"),
        (make_env, make_many, None, "env"),
        ("old.py", Path("new.py"), None, "program"),
    ],
)
def test_what_is_given_decides(plain: Any, fast: Any, inputs: Any, kind: str) -> None:
    assert _kind_of_both(plain, fast, inputs) == kind


def test_a_name_in_a_file_is_what_it_names(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from torch import nn\nclass Env:\n    def reset(self): ...\n    def step(self, action): ...\n"
        "class Net(nn.Linear):\n    def __init__(self):\n        super().__init__(2, 1)\nnothing = 3\n"
    )
    env, net, nothing, missing = (f"{tmp_path}/mine.py:{name}" for name in ("Env", "Net", "nothing", "missing"))
    assert _kind_of_both(env, env, None) == "env"
    assert _kind_of_both(net, missing, None) == "network"
    with pytest.raises(ArgumentError, match="`against` is an env, and what is held against it a network"):
        hotloop.prove(net, against=env)
    with pytest.raises(ArgumentError, match="has no class or function"):
        hotloop.prove(missing, against=net)
    with pytest.raises(ArgumentError, match="neither"):
        hotloop.prove(nothing, against=nothing)


def test_each_kind_is_proved_through_the_one_door(tmp_path: Path) -> None:
    for name in ("old.py", "new.py"):
        (tmp_path / name).write_text(PROGRAM)
    programs = hotloop.prove(tmp_path / "new.py", against=str(tmp_path / "old.py"), rounds=0)
    networks = hotloop.prove(Net, against=Net, inputs=(4, 3), seconds=0)
    envs = hotloop.prove(make_env, against="CartPole-v1", env_steps=40, num_envs=2, seconds=0)
    functions = hotloop.prove(double, against=double, inputs=(np.ones(3),), seconds=0)
    found = [programs, networks, envs, functions]
    assert [proof.subject for proof in found] == ["programs", "modules", "envs", "functions"]
    assert [proof.verdict for proof in found] == ["identical"] * 4
    assert [Path(name).name for name in (programs.plain, programs.fast)] == ["old.py", "new.py"]


def test_an_option_of_another_kind_is_refused() -> None:
    with pytest.raises(ArgumentError, match="no argument `num_envs` for a network"):
        hotloop.prove(Net, against=Net, num_envs=3)
    with pytest.raises(ArgumentError, match="no argument `arguments` for an env"):
        hotloop.prove("cartpole", against="cartpole", arguments="--seed 1")
    with pytest.raises(ArgumentError, match="2 fast versions"):
        hotloop.prove(double, double, against=double)  # type: ignore[call-overload]
