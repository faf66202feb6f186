"""Changes tried on a program whose every deed has a known cost: the clock is ours, so that the ratios are exact."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from hotloop.doctor.experiments import judge_trials
from hotloop.doctor.recorder.gradients import Forwards, Fused, NoGradients
from hotloop.doctor.recorder.passes import Pass
from hotloop.doctor.recorder.places import SourcePlaces
from hotloop.doctor.recorder.storing import Storing
from hotloop.doctor.recorder.switches import Callers, Evaluation, Logging, Rendering, SwitchedClasses
from hotloop.doctor.recorder.trial import Control, Switch, Trial
from hotloop.doctor.recorder.updates import FewerUpdates, OnePerEnvCall, Updates
from hotloop.doctor.trace import Experiment, Untried


class Stop(BaseException):
    pass


def stop() -> None:
    raise Stop


@dataclass
class Bench:
    """The hooks, the switches and a clock that moves only where the program says so."""

    now: float = 0.0
    made: list[str] = field(default_factory=list)
    """What the program really did, in order."""

    more: list[Pass] = field(default_factory=list)

    def __post_init__(self) -> None:
        places = SourcePlaces(__file__)
        self.log, self.render, self.store, self.evaluation = Logging(), Rendering(), Storing(), Evaluation(places)
        self.classes = SwitchedClasses((), self.log, self.render, self.store)
        self.updates = Updates(places, self.store, self.evaluation)

    def spend(self, milliseconds: float, deed: str = "") -> None:
        self.now += milliseconds / 1_000
        self.made.append(deed)

    def run(
        self, switches: list[Switch], program: Callable[[], None], seconds: float = 40.0, learns: bool = True
    ) -> Any:
        trial = Trial(
            switches,
            [self.classes, self.updates, Callers(self.evaluation), *self.more],
            lead=5.0,
            seconds=seconds,
            learns=learns,
            at_limit=stop,
            clock=lambda: self.now,
            processor=lambda: self.now / 2,
        )
        self.updates._arrive(self.torch())
        for made in (self.env_class, self.replay_class):
            self.classes.look(made)
        with pytest.raises(Stop):
            program()
        trial.finish()
        return {one.name: one for one in judge_trials([tried.as_data() for tried in trial.tried])}

    def torch(self) -> Any:
        """As much of it as the hooks ask for."""
        bench = self

        class Optimizer:
            def __init__(self) -> None:
                self.state, self.param_groups = {1: 1}, [{"fused": None, "params": []}]

        class Adam(Optimizer):
            def step(self) -> None:
                bench.spend(1.0, "step")

        class Tensor:
            def backward(self) -> None:
                bench.spend(1.0, "backward")

        self.adam, self.tensor = Adam, Tensor
        optim = SimpleNamespace(Optimizer=Optimizer)
        return SimpleNamespace(optim=optim, Tensor=Tensor, autograd=SimpleNamespace(backward=lambda: None))

    @property
    def env_class(self) -> type:
        bench = self

        class Env:
            def reset(self) -> float:
                return 0.0

            def step(self, action: int) -> tuple[float, float, bool, bool, dict[str, Any]]:
                self.render()
                bench.spend(1.0, "env")
                return 0.0, 1.0, False, False, {}

            def render(self) -> None:
                bench.spend(0.5, "render")

        self._env_class = getattr(self, "_env_class", Env)
        return self._env_class

    @property
    def replay_class(self) -> type:
        bench = self

        class Replay:
            def __init__(self) -> None:
                self.rows: deque[Any] = deque(maxlen=1_000)

            def __len__(self) -> int:
                return len(self.rows)

            def add(self, obs: float, action: int) -> None:
                bench.spend(0.25, "store")
                self.rows.append((obs, action))

            def sample(self) -> Any:
                return list(self.rows)[-4:]

        self._replay_class = getattr(self, "_replay_class", Replay)
        return self._replay_class


class Learner:
    def __init__(self, bench: Bench) -> None:
        self.bench, self.optimiser, self.loss = bench, bench.adam(), bench.tensor()

    def update(self) -> float:
        self.bench.spend(1.0, "forward")
        self.loss.backward()
        self.optimiser.step()
        return 0.5


@pytest.fixture(autouse=True)
def _unhooked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks on what all tests share are taken off."""
    monkeypatch.setattr(Learner, "update", Learner.update)
    monkeypatch.setitem(globals(), "evaluate", evaluate)


def learning_program(bench: Bench, per_call: int = 1) -> None:
    """1.5 ms for the env, 3 ms for each update."""
    env, learner = bench.env_class(), Learner(bench)
    while True:
        env.step(0)
        for _ in range(per_call):
            assert learner.update() == 0.5


def test_updates_that_are_a_function_are_left_out_whole() -> None:
    bench = Bench()
    switches = [Control(), *(FewerUpdates(bench.updates, every) for every in (0, 4, 16)), OnePerEnvCall(bench.updates)]
    found = bench.run(switches, lambda: learning_program(bench))
    ratios = {name: round(one.ratio, 4) for name, one in found.items() if isinstance(one, Experiment)}
    assert ratios == {
        "control": 1.0,
        "no optimizer steps": 3.0,  # 4.5 ms become 1.5
        "every 4th update": 2.0,  # 1.5 + 3 / 4 = 2.25
        "every 16th update": round(4.5 / (1.5 + 3 / 16), 4),
    }
    assert "`Learner.update`" in found["no optimizer steps"].what
    assert found["every 4th update"].processor == pytest.approx((2.0, 2.0, 2.0))
    assert isinstance(found["one update per env call"], Untried)
    assert "1 updates per env call" in found["one update per env call"].reason


def test_the_updates_that_are_made_are_every_fourth() -> None:
    bench = Bench()
    bench.run([FewerUpdates(bench.updates, 4)], lambda: learning_program(bench), seconds=2.0)
    between: list[int] = []
    for deed in bench.made:
        if deed == "env":
            between.append(0)
        elif deed == "step" and between:
            between[-1] += 1
    text = "".join(map(str, between))
    assert "1000100010001000" in text
    assert set(text) == {"0", "1"}


def test_one_update_per_env_call_where_there_are_more() -> None:
    bench = Bench()
    found = bench.run([OnePerEnvCall(bench.updates)], lambda: learning_program(bench, per_call=4))
    assert found["one update per env call"].ratio == pytest.approx(13.5 / 4.5)


def inline_program(bench: Bench) -> None:
    """The update stands in the loop: 1.5 ms for the env, 1 each for forward, backward and step."""
    env, optimiser, loss = bench.env_class(), bench.adam(), bench.tensor()
    while True:
        env.step(0)
        bench.spend(1.0, "forward")
        loss.backward()
        optimiser.step()


def test_an_update_within_the_loop_loses_backward_and_step() -> None:
    bench = Bench()
    found = bench.run([FewerUpdates(bench.updates, every) for every in (0, 4)], lambda: inline_program(bench))
    assert found["no optimizer steps"].ratio == pytest.approx(4.5 / 2.5)
    assert found["every 4th update"].ratio == pytest.approx(4.5 / 3.0)
    assert "losses are made all the same" in found["no optimizer steps"].what


def reporting_program(bench: Bench, every: int = 1) -> None:
    """Prints for 1.5 ms at every so many env calls, and renders for 0.5."""
    env, report = bench.env_class(), bench.log.quiet(lambda text: bench.spend(1.5, "print"))
    number = 0
    while True:
        env.step(0)
        number += 1
        if number % every == 0:
            report("a line")


def test_printing_and_rendering_are_left_out() -> None:
    bench = Bench()
    found = bench.run([bench.log, bench.render], lambda: reporting_program(bench), learns=False)
    assert found["logging and printing off"].ratio == pytest.approx(3.0 / 1.5)
    assert found["rendering off"].ratio == pytest.approx(3.0 / 2.5)
    assert bench.made.count("print") < bench.made.count("env")
    assert bench.made.count("render") < bench.made.count("env")


def test_what_is_not_done_does_not_apply_and_says_why() -> None:
    bench = Bench()
    switches = [bench.log, bench.store, Fused(bench.updates), bench.evaluation, FewerUpdates(bench.updates, 4)]
    found = bench.run([*switches, Control()], lambda: quiet_program(bench), learns=False, seconds=4.0)
    reasons = {name: one.reason for name, one in found.items() if isinstance(one, Untried)}
    assert "nothing was printed" in reasons["logging and printing off"]
    assert "no replay was recognized" in reasons["rows stored in one call"]
    assert "no optimizer" in reasons["fused optimizer"]
    assert "no evaluation was seen" in reasons["evaluation off"]
    assert "no optimizer step" in reasons["every 4th update"]
    assert found["control"].ratio == 1.0


def quiet_program(bench: Bench) -> None:
    env = bench.env_class()
    while True:
        env.step(0)


def evaluate(bench: Bench, env: Any) -> float:
    for _ in range(10):
        env.step(1)
    return 10.0


def evaluating_program(bench: Bench) -> None:
    """Every tenth update an evaluation of ten env steps, which are none of the training's."""
    env, test_env, learner = bench.env_class(), bench.env_class(), Learner(bench)
    number = 0
    while True:
        env.step(0)
        learner.update()
        number += 1
        if number % 10 == 0:
            assert evaluate(bench, test_env) == 10.0


def test_evaluation_is_found_by_its_name_and_its_env_steps_are_not_counted() -> None:
    bench = Bench()
    found = bench.run([bench.evaluation], lambda: evaluating_program(bench))
    one = found["evaluation off"]
    assert one.ratio == pytest.approx(6.0 / 4.5, rel=0.02)  # 4.5 ms a step, and 15 for every ten: one or two a stretch
    assert "`evaluate` (test_trial.py:" in one.what


def storing_program(bench: Bench) -> None:
    env, replay = bench.env_class(), bench.replay_class()
    number = 0
    while True:
        env.step(0)
        for place in range(4):
            replay.add(float(number), place)
        number += 1
        assert replay.sample()[-4:] == [(float(number - 1), place) for place in range(4)]
        assert len(replay) == min(1_000, 4 * number)


def test_rows_are_appended_together_and_none_is_missing() -> None:
    bench = Bench()
    found = bench.run([bench.store], lambda: storing_program(bench), learns=False)
    assert found["rows stored in one call"].ratio == pytest.approx(2.5 / 1.5)
    assert "4 rows" in found["rows stored in one call"].what


def test_a_program_whose_turns_are_too_long_is_not_judged_by_a_few() -> None:
    bench = Bench()
    found = bench.run([Control()], lambda: learning_program(bench, per_call=500), seconds=6.0)
    assert isinstance(found["control"], Untried)
    assert found["control"].reason.startswith("not tried")


def test_fused_is_switched_on_and_off() -> None:
    group: dict[str, Any] = {"fused": None, "foreach": None, "params": []}
    optimiser = type("Adam", (SimpleNamespace,), {})(state={1: 1}, param_groups=[group])
    switch = Fused(SimpleNamespace(optimisers=[optimiser]))
    trial: Any = SimpleNamespace(updates=3)
    assert switch.reason(trial) == ""
    switch.on()
    assert group == {"fused": True, "foreach": False, "params": []}
    switch.off()
    assert group == {"fused": None, "foreach": None, "params": []}
    group["fused"] = True
    assert switch.reason(trial) == "the optimizer is fused already"


def acting_program(bench: Bench, network: Any, seen: dict[str, list[bool]], keeps_graph: bool) -> None:
    """Acts with gradients; learns from a forward of its own, or from what acting has left."""
    env, optimiser, obs = bench.env_class(), bench.adam(), torch.ones(1, 2)
    while True:
        q = network(obs)
        seen["acting"].append(q.requires_grad)
        env.step(int(q.argmax()))
        loss = q.sum() if keeps_graph else network(obs).sum()
        seen["learning"].append(loss.requires_grad)
        loss.backward()
        optimiser.step()


@pytest.mark.parametrize("keeps_graph", [False, True])
def test_acting_records_no_gradients_where_no_update_uses_them(
    keeps_graph: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.nn.Module, "__call__", torch.nn.Module.__call__)
    switch, seen = NoGradients(), {"acting": [], "learning": []}
    forwards = Forwards(switch)
    bench = Bench(more=[forwards])
    forwards._arrive(torch)
    network = torch.nn.Linear(2, 2)
    found = bench.run([switch], lambda: acting_program(bench, network, seen, keeps_graph), seconds=3.0)
    assert all(seen["learning"])
    assert set(seen["acting"]) == ({True} if keeps_graph else {True, False})
    if keeps_graph:
        assert "the update uses the gradients" in found["no_grad while acting"].reason
    else:
        assert found["no_grad while acting"].ratio == 1.0  # our clock charges forwards with nothing
