"""An error of ours inside somebody's program: swallowed, noted, and what made it switched off."""

import json

import numpy as np
import torch

from hotloop.doctor.recorder import words
from hotloop.doctor.recorder.hooks import ClassHooks, timed
from hotloop.doctor.recorder.passes import Pass
from hotloop.doctor.recorder.recording import plain
from hotloop.doctor.recorder.watch import Watch
from hotloop.doctor.recorder.workshop import layers_of


class Broken(Pass):
    def __init__(self):
        self.asked = []

    def on_env(self, now):
        self.asked.append("env")
        raise RuntimeError("of ours")

    def add_to(self, trace):
        raise KeyError("nothing")


class Counts(Pass):
    def __init__(self):
        self.calls = 0

    def on_env(self, now):
        self.calls += 1


def stepped(hooks, times):
    class Env:
        def reset(self): ...

        def step(self, action):
            return 0, 1.0, False, {}

    hooks.look(Env)
    env = Env()
    return [env.step(0) for _ in range(times)]


def test_a_pass_that_fails_is_not_asked_again_and_the_others_are():
    hooks, broken, counts = ClassHooks(), Broken(), Counts()
    watch = Watch(100.0, None, passes=[hooks, broken, counts])
    assert stepped(hooks, 3) == [(0, 1.0, False, {})] * 3
    assert (broken.asked, counts.calls, watch.env_steps) == (["env"], 3, 3)
    assert len(watch.faults.noted) == 1
    assert watch.faults.noted[0].startswith("Broken.on_env: RuntimeError: of ours (test_recorder_faults.py:")
    trace = {}
    watch.passes.ask("add_to", trace)
    assert "Broken.add_to: KeyError: 'nothing'" in watch.faults.noted[1]


def test_an_error_in_the_watch_itself_ends_the_recording_and_never_reaches_the_script():
    watch = Watch(100.0, None)
    watch.begin(0.0)
    watch.busy = False

    def fail(*_):
        raise ZeroDivisionError

    watch.attribution.events = fail
    work = timed(watch, lambda: "done", words.LOG)
    assert [work(), work()] == ["done", "done"]
    assert watch.over
    assert "ZeroDivisionError" in watch.faults.noted[0]


def test_a_class_whose_module_is_computed_is_left_alone():
    hooks = ClassHooks()
    watch = Watch(100.0, None, passes=[hooks])

    class Proxy:
        __module__ = property(lambda self: "somewhere")

        def reset(self): ...

        def step(self, action): ...

    step = Proxy.step
    hooks.see(Proxy)
    assert Proxy.step is step
    assert watch.faults.noted == []


class Odd(type):
    """Answers for any name, fails for some, and forbids changes."""

    def __getattr__(cls, name):
        raise LookupError(name)

    def __setattr__(cls, name, value):
        raise TypeError("frozen")

    @property
    def __mro__(cls):
        raise ValueError("no")


def test_a_class_with_an_odd_metaclass_is_hooked_past_it():
    hooks = ClassHooks()
    watch = Watch(100.0, None, passes=[hooks])

    class Env(metaclass=Odd):
        def reset(self): ...

        def step(self, action):
            return 0, 1.0, True, {}

    hooks.see(Env)
    assert Env().step(0) == (0, 1.0, True, {})
    assert (watch.env_steps, watch.episodes, watch.faults.noted) == (1, 1, [])


def test_a_network_sized_by_numpy_is_written_down():
    """`nn.Linear(np.array(shape).prod(), 64)`, as CleanRL writes it, keeps numpy's number as its size."""
    network = torch.nn.Sequential(torch.nn.Linear(np.array((4,)).prod(), 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    assert json.dumps(layers_of(network)) == '{"layers": [4, 8, 2], "activation": "relu"}'


def test_what_json_does_not_know_costs_no_recording():
    odd = {"number": np.int64(7), "share": np.float32(0.5), "array": np.zeros(2), "type": int}
    told = json.loads(json.dumps(odd, default=plain))
    assert told == {"number": 7, "share": 0.5, "array": "[0. 0.]", "type": "<class 'int'>"}
