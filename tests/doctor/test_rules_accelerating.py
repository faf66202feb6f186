"""What accelerating a model of Stable-Baselines3's would gain: hand numbers, and programs that were measured."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace as Has
from typing import Any

import pytest

from hotloop.doctor.finding import RULES, Finding, together
from hotloop.doctor.recorder.workshop import is_plain_model
from hotloop.doctor.rules import load_rules
from hotloop.doctor.rules.accelerating import accelerated_microseconds
from hotloop.doctor.trace import Counts, Setup, Trace
from tests.doctor.sample_trace import make_trace

load_rules()
SB3 = Setup(library="stable_baselines3", algorithm="DQN", accelerates=True)


def trace_of(phases: dict[str, float], env_calls: int, updates: int, megaflop: float, **changed: Any) -> Trace:
    """Phases in microseconds per env call; a core that makes 120 GFLOP per second."""
    seconds = {name: 1e-6 * value * env_calls for name, value in phases.items()}
    made: dict[str, Any] = {
        "phases": seconds,
        "seconds": sum(seconds.values()),
        "counts": Counts(env_steps=env_calls, env_calls=env_calls, updates=updates),
        "counted": Counts(update_operations=1e6 * megaflop, matrix_speed=1.2e11),
        "setup": SB3,
        "machine": {},
    }
    return make_trace(**made | changed)


def test_by_hand() -> None:
    """Per env call: half an update of 25 and half of 12 us of products, 6 to act, 5 to store; of 60 us around the env
    35 go; the log stays."""
    phases = {"update": 500.0, "act": 100.0, "store-and-sample": 30.0, "env": 40.0, "other": 20.0, "log": 7.0}
    trace = trace_of(phases, 1_000, 500, 1.44)
    assert accelerated_microseconds(trace) == pytest.approx(0.5 * (25 + 0.5 * 12) + 6 + 5 + (60 - 35) + 7)
    found = RULES["UPDATE018"].find(trace)
    assert found is not None
    assert found.expected_gain == pytest.approx(697 / 58.5)


def test_an_evaluation_asks_the_same_model() -> None:
    """Per env call 951 us of evaluation, of which a third goes; recorded, and 1.9 measured."""
    phases = {"evaluate": 951.0, "update": 174.0, "act": 146.0, "env": 29.0, "store-and-sample": 20.0}
    setup = replace(SB3, algorithm="PPO")
    found = RULES["UPDATE018"].find(trace_of(phases, 1_000, 156, 3.35, setup=setup))
    assert found is not None
    assert found.expected_gain == pytest.approx(1.98, abs=0.03)


MEASURED = {
    "DQN, CartPole": (
        {"update": 134, "act": 25.6, "store-and-sample": 31.8, "env": 25.6, "other": 19.4},
        0.25,
        1.13,
        7.2,
    ),
    "DQN, CartPole, later": (
        {"update": 131, "act": 62.8, "store-and-sample": 32.1, "env": 27.9, "other": 23},
        0.25,
        1.13,
        8.2,
    ),
    "DQN, a grid world": (
        {"update": 139, "act": 63, "store-and-sample": 34.7, "env": 64.5, "other": 25},
        0.25,
        2.39,
        4.0,
    ),
    "PPO, CartPole, 4 envs": ({"update": 588, "act": 164, "store-and-sample": 17, "env": 52}, 0.625, 3.5, 10.6),
    "SAC, Pendulum, 256-256": ({"update": 8295, "act": 171, "store-and-sample": 158, "other": 313}, 1, 614, 3.6),
    "TD3, Pendulum, 400-300": ({"update": 8458, "act": 122, "store-and-sample": 166, "other": 270}, 1, 746, 3.0),
}
"""Recorded phases, updates per env call, operations of an update, and what accelerating gained, interleaved."""


@pytest.mark.parametrize("name", MEASURED)
def test_the_promise_is_near_what_was_measured(name: str) -> None:
    phases, updates, megaflop, gained = MEASURED[name]
    setup = replace(SB3, algorithm=name.partition(",")[0])
    found = RULES["UPDATE018"].find(trace_of(phases, 1_000, round(1_000 * updates), megaflop, setup=setup))
    assert found is not None
    assert gained / 1.5 <= found.expected_gain <= 1.5 * gained
    assert ("half as long in machine code" in found.evidence) == (setup.algorithm in ("SAC", "TD3"))


@pytest.mark.parametrize("setup", [replace(SB3, accelerates=False), Setup()])
def test_other_models_are_left_alone(setup: Setup) -> None:
    assert RULES["UPDATE018"].find(trace_of({"update": 500.0, "env": 10.0}, 1_000, 1_000, 1.0, setup=setup)) is None


def test_what_it_takes_over_is_not_gained_twice() -> None:
    def finding(rule: str, gain: float, **more: bool) -> Finding:
        return Finding(rule=rule, share=0.5, evidence="", expected_gain=gain, **more)

    whole, fused = finding("UPDATE018", 5.0, takes_over=True), finding("UPDATE007", 1.2)
    trace = trace_of({"update": 500.0, "env": 10.0}, 1_000, 1_000, 1.0)
    assert together([whole, fused], trace) == 5.0
    assert together([whole, fused, finding("LOG003", 2.0)], trace) == 10.0


class Model:
    __module__ = "stable_baselines3.dqn.dqn"

    def __init__(self, **changed: Any) -> None:
        self.device, self.use_sde, self.observation_space = "cpu", False, Box()
        self.policy = Policy()
        for name, value in changed.items():
            setattr(self if hasattr(self, name) else self.policy, name, value)


class Policy:
    __module__ = "stable_baselines3.dqn.policies"

    def __init__(self) -> None:
        self.features_extractor_class, self.optimizer_class = Has(__name__="FlattenExtractor"), Has(__name__="Adam")
        self.optimizer_kwargs: dict[str, Any] = {}


class Box:
    pass


class Own(Model):
    __module__ = "__main__"


def test_only_models_are_offered_it_that_it_takes() -> None:
    assert is_plain_model(Model())
    assert not is_plain_model(Own())
    assert not is_plain_model(Own(features_extractor_class=None)), "JAX's have none"
    for changed in (
        {"use_sde": True},
        {"device": "cuda"},
        {"observation_space": {}},
        {"optimizer_class": Has(__name__="RMSprop")},
        {"optimizer_kwargs": {"weight_decay": 0.1}},
        {"features_extractor_class": Has(__name__="NatureCNN")},
    ):
        assert not is_plain_model(Model(**changed)), changed
