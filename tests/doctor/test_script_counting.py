"""What counts as a forward, an update and the steady state: exact clocks and a PyTorch of ten lines."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hotloop.doctor.recorder import words as a
from hotloop.doctor.recorder.attribution import MOST_BEHIND, Attribution
from hotloop.doctor.recorder.costs import split_recording, split_waiting
from hotloop.doctor.recorder.lines import Syntax
from hotloop.doctor.recorder.places import OURS, SourcePlaces
from hotloop.doctor.recorder.sampling import StackSampler
from hotloop.doctor.recorder.torch_hooks import TorchHooks
from hotloop.doctor.recorder.watch import Watch
from hotloop.doctor.recorder.words import Seen

CRITIC, ACTOR, TEMPERATURE = 1, 2, 3


def learned(*optimisers: int | None) -> dict[str, int]:
    """A backward and a step of each in turn; None is an env call."""
    seen, now = Attribution(0.0), 0
    for one in optimisers:
        kinds = [(a.ENV, None)] if one is None else [(a.BACKWARD, None), (a.OPTIMISER, (0, False, one))]
        for kind, detail in kinds:
            seen.events([Seen(kind, now, now + 1, forward=detail)])
            now += 1
    return seen.counts


def test_the_optimisers_of_one_round_make_one_update() -> None:
    """SAC: critic, actor and temperature after each env step."""
    counts = learned(None, CRITIC, ACTOR, TEMPERATURE, None, CRITIC, ACTOR, TEMPERATURE)
    assert (counts["updates"], counts["optimiser_steps"], counts["optimisers"], counts["backwards"]) == (2, 6, 3, 6)


def test_several_rounds_between_two_env_calls_are_several_updates() -> None:
    assert learned(None, CRITIC, ACTOR, CRITIC, ACTOR, CRITIC, ACTOR)["updates"] == 3


def test_an_actor_that_learns_every_second_time_adds_no_update() -> None:
    """TD3: four steps of the critic, two of the actor."""
    assert learned(CRITIC, CRITIC, ACTOR, CRITIC, CRITIC, ACTOR)["updates"] == 4


def test_an_actor_that_makes_up_for_what_it_missed_adds_no_update() -> None:
    """CleanRL's SAC: a step of the critic after each env step; after every second two of actor and temperature."""
    turns = 10 * [None, CRITIC, None, CRITIC, ACTOR, TEMPERATURE, ACTOR, TEMPERATURE]
    assert learned(*turns)["updates"] == 20 + 1


def test_networks_that_learn_by_turns_all_count() -> None:
    """Forty steps each; the first comes back and has a few to catch up."""
    turns = [step for one in (CRITIC, ACTOR, CRITIC) for step in 40 * [None, one]]
    assert learned(*turns)["updates"] == 40 + 40 + (40 - MOST_BEHIND)


def test_an_env_call_ends_a_round() -> None:
    assert learned(None, CRITIC, None, ACTOR)["updates"] == 2


def test_gradients_that_accumulate_are_one_update() -> None:
    seen = Attribution(0.0)
    for now, kind in enumerate((a.ENV, a.BACKWARD, a.BACKWARD, a.BACKWARD, a.BACKWARD, a.OPTIMISER)):
        seen.events([Seen(kind, now, now + 1, forward=(0, False, CRITIC) if kind == a.OPTIMISER else None)])
    assert (seen.counts["backwards"], seen.counts["updates"]) == (4, 1)


class Tensor:
    """Only what is looked at: a shape, and whether it holds floats."""

    def __init__(self, *shape: int, floating: bool = True) -> None:
        self.shape, self.floating = shape, floating

    def dim(self) -> int:
        return len(self.shape)

    def size(self, axis: int) -> int:
        return self.shape[axis]

    def is_floating_point(self) -> bool:
        return self.floating


@pytest.fixture
def torch() -> Any:
    class Module:
        parts: tuple[Any, ...] = ()
        own: tuple[Any, ...] = ()

        def __call__(self, *args: Any) -> Any:
            return self.forward(*args)  # type: ignore[attr-defined]

        def parameters(self) -> Any:
            yield from self.own
            for part in self.parts:
                yield from part.parameters()

    return SimpleNamespace(nn=SimpleNamespace(Module=Module), Tensor=Tensor, is_grad_enabled=lambda: True)


def program(torch: Any) -> SimpleNamespace:
    """A linear layer, a network of two, a loss; their class is hooked."""

    class Linear(torch.nn.Module):  # type: ignore[misc, name-defined]
        own = ("weight",)

        def forward(self, x: Tensor) -> Tensor:
            return x

    class Network(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.parts = (Linear(), Linear())

        def forward(self, x: Tensor) -> Tensor:
            for part in self.parts:
                x = part(x)
            return x

    class Loss(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, *tensors: Tensor) -> Tensor:
            return tensors[0]

    hooks = TorchHooks()
    clock = iter(range(10_000))
    watch = Watch(1e9, None, lambda: float(next(clock)), passes=[hooks])
    hooks._hook_forward(torch)
    watch.begin(0.0)
    watch.busy = False
    return SimpleNamespace(network=Network, loss=Loss, linear=Linear, watch=watch, hooks=hooks)


def update(watch: Watch) -> dict[str, int]:
    watch.leave(a.BACKWARD, watch.enter())
    watch.leave(a.OPTIMISER, watch.enter(), (0, False, CRITIC))
    return watch.attribution.counts


def test_a_loss_on_vectors_is_no_forward_of_one_row(torch: Any) -> None:
    """`nn.MSELoss()(q, y)` with `q` and `y` of [64]: the batch has 64 rows."""
    made = program(torch)
    made.loss()(made.network()(Tensor(64, 4)), Tensor(64))
    made.loss()(Tensor(64), Tensor(64))
    counts = update(made.watch)
    assert (counts["update_forwards"], counts["batch_size"]) == (1, 64)


@pytest.mark.parametrize("call", [lambda network, x: network(x), lambda network, x: network.forward(x)])
def test_a_network_makes_one_forward_however_it_is_called(torch: Any, call: Any) -> None:
    made = program(torch)
    network, target = made.network(), made.network()
    for _ in range(3):
        for one in (network, target):
            call(one, Tensor(32, 4))
        counts = update(made.watch)
    assert (counts["update_forwards"], counts["batch_size"]) == (6, 32)


def test_rows_are_those_of_the_batch(torch: Any) -> None:
    made = program(torch)
    for tensor, rows in ((Tensor(7, 4), 7), (Tensor(4), 1), (Tensor(9, floating=False), 9), ({"a": Tensor(5, 2)}, 5)):
        made.linear()(tensor)
        assert update(made.watch)["batch_size"] == rows


class Rows:
    """A container of rows, as Tianshou's: it has a shape and asks its parts for whatever else."""

    shape = (64,)

    def __getattr__(self, name: str) -> Any:
        return getattr({}, name)


class Uneven(Rows):
    """With a number among its parts, as Tianshou's when it learns."""

    shape = ()

    def __len__(self) -> int:
        return 32


def test_rows_of_a_container_and_of_an_array_are_read(torch: Any) -> None:
    made = program(torch)
    for given, rows in ((Rows(), 64), (Uneven(), 32), (np.zeros(()), 1), (np.zeros(4), 1), (np.zeros(9, int), 9)):
        made.linear()(given)
        assert update(made.watch)["batch_size"] == rows
    assert made.watch.faults.noted == []


def test_processor_time_goes_to_the_phases_of_the_wall_clock() -> None:
    """An env step of 10 s of which the thread ran 2; a gap of 4 of which it ran 3."""
    seen = Attribution(0.0)
    seen.events([Seen(a.ENV, 0, 10, lost=(0.0, 8.0))])
    seen.events([Seen(a.FORWARD, 14, 15, forward=(1, False, 7), lost=(1.0, 0.0))])
    seen.events([Seen(a.ENV, 16, 17, lost=(0.5, 0.0))])
    assert seen.phases == {"other": 0, "env": 11, "store-and-sample": 4, "act": 2}
    assert seen.processor() == {"other": 0.0, "env": 3.0, "store-and-sample": 3.0, "act": 1.5}


def test_processor_time_goes_to_the_parts_of_the_update_too() -> None:
    """A backward of 5 s that was kept waiting for 3, between two gaps of 1 s."""
    seen = Attribution(0.0)
    seen.events([Seen(a.FORWARD, 1, 2, forward=(32, True, 7)), Seen(a.BACKWARD, 3, 8, lost=(0.0, 3.0))])
    assert seen.parts == {"forward": 1, "rest": 1, "backward": 5}
    assert seen.processor() == {"store-and-sample": 1, "update": 4, "forward": 1, "rest": 1, "backward": 2}


class Clocks:
    def __init__(self) -> None:
        self.wall = self.processor = 0.0

    def pass_by(self, wall: float, processor: float) -> None:
        self.wall += wall
        self.processor += processor


def test_the_watch_takes_both_clocks_at_every_long_event() -> None:
    clocks = Clocks()
    watch = Watch(1e9, None, lambda: clocks.wall, processor=lambda: clocks.processor)
    watch.begin(0.0)
    for _ in range(2):
        start = watch.enter()
        clocks.pass_by(10.0, 1.0)
        watch.leave_env(start, None, (0, 1.0, False, False, {}))
        clocks.pass_by(5.0, 4.0)
    watch.finish()
    assert watch.attribution.phases == {"other": 10.0, "env": 20.0}
    assert watch.attribution.processor() == {"other": 8.0, "env": 2.0}


def turns(watch: Watch, clocks: Clocks, count: int, seconds: float) -> None:
    """Env step, update; each takes `seconds`."""
    for _ in range(count):
        start = watch.enter()
        clocks.pass_by(seconds, seconds)
        watch.leave_env(start, None, (0, 1.0, False, False, {}))
        for kind in (a.BACKWARD, a.OPTIMISER):
            start = watch.enter()
            clocks.pass_by(seconds / 2, seconds / 2)
            watch.leave(kind, start, (0, False, CRITIC))


def test_what_comes_before_the_first_updates_is_left_out_where_enough_follows() -> None:
    clocks = Clocks()
    watch = Watch(1e9, None, lambda: clocks.wall, steady=(5, 0))
    watch.begin(0.0)
    turns(watch, clocks, 5, 100.0)  # the slow beginning
    turns(watch, clocks, 301, 1.0)
    watch.finish()
    told = watch.told()
    assert told.totals["skipped_env_steps"] == 6  # the mark is set by the env call after the fifth update
    assert (told.totals["env_steps"], told.totals["updates"]) == (300, 301)
    assert told.phases["env"] == 300.0
    assert sum(part.env_steps for part in told.slices) == 300
    assert sum(part.env_steps for part in told.before) == 6
    assert told.began + sum(told.phases.values()) == clocks.wall


def test_a_short_program_is_told_whole() -> None:
    clocks = Clocks()
    watch = Watch(1e9, None, lambda: clocks.wall, steady=(5, 0))
    watch.begin(0.0)
    turns(watch, clocks, 100, 1.0)
    watch.finish()
    told = watch.told()
    assert (told.totals["env_steps"], told.began) == (100, 0.0)
    assert "skipped_env_steps" not in told.totals
    assert sum(part.env_steps for part in told.slices) == 100
    starts = [part.start_seconds for part in told.slices]
    assert starts == sorted(starts)


def test_the_window_begins_with_the_steady_state() -> None:
    clocks, ended = Clocks(), []
    limits = {"steady": (5, 0), "window": 50.0, "at_limit": lambda: ended.append(clocks.wall)}
    watch = Watch(80.0, None, lambda: clocks.wall, **limits)
    watch.begin(0.0)
    assert watch.deadline == 50.0  # where no update comes
    turns(watch, clocks, 5, 2.0)  # 20 s
    turns(watch, clocks, 40, 1.0)
    assert ended[0] == 21.0 + 50.0
    late = Watch(80.0, None, lambda: clocks.wall, **limits)
    late.begin(clocks.wall)
    turns(late, clocks, 5, 4.0)  # 40 s
    turns(late, clocks, 1, 1.0)
    assert late.deadline - late.began == 80.0  # all in all


def test_after_the_window_hooks_do_nothing_until_the_guard_ends_it() -> None:
    clocks, ended = Clocks(), []
    sampler = StackSampler(SourcePlaces("train.py"), 0.01, lambda: clocks.wall)
    watch = Watch(
        10.0, None, lambda: clocks.wall, passes=[sampler], late=60.0, at_limit=lambda: ended.append(clocks.wall)
    )
    watch.begin(0.0)
    turns(watch, clocks, 5, 1.0)
    start = watch.enter()
    clocks.pass_by(1.0, 1.0)
    watch.leave_env(start, (), (0, 1.0, False, False, {}))  # 11 s
    assert (watch.late_from, watch.busy, watch.deadline, ended) == (11.0, True, 71.0, [])
    sampler._last = clocks.wall  # the look before was at the end of the window
    clocks.pass_by(4.0, 4.0)
    sampler.look(None)
    watch.finish()
    assert sampler.late == {(): 4.0}
    assert watch.ended == 11.0
    assert sum(watch.attribution.phases.values()) == 11.0


def test_after_skips_env_steps_whatever_is_learned() -> None:
    clocks = Clocks()
    watch = Watch(1e9, None, lambda: clocks.wall, steady=(5, 50))
    watch.begin(0.0)
    turns(watch, clocks, 500, 1.0)
    watch.finish()
    assert watch.told().totals["skipped_env_steps"] == 50


def test_waiting_is_a_phase_of_its_own_as_far_as_no_processor_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotloop.doctor.recorder.costs.waits_by_itself", lambda stack: stack == ("sleep",))
    charged: Any = {("env", "", ("sleep",)): 4.0, ("env", "", ("step",)): 6.0, ("update", "rest", ("sleep",)): 2.0}
    phases, parts = {"start-up": 1.0, "env": 10.0, "update": 2.0}, {"rest": 2.0}
    split = split_waiting(charged, phases, {"env": 7.0, "update": 0.0}, parts)
    assert split == {
        ("wait", "", ("sleep",)): 3.0 + 2.0,  # of the 4 s only 3 had no processor
        ("env", "", ("sleep",)): 1.0,
        ("env", "", ("step",)): 6.0,
    }
    assert phases == {"start-up": 1.0, "env": 7.0, "update": 0.0, "wait": 5.0}
    assert parts == {"rest": 0.0}


def test_texts_of_the_recordings_own_frames_are_the_recordings_time() -> None:
    """A text of four frames is made in the forward, one of them ours."""
    making = compile("", "/lib/traceback.py", "exec").replace(co_name="format_stack")
    ours, theirs = compile("ours", OURS + "hooks.py", "exec"), compile("theirs", "train.py", "exec")
    stack = ((making, 0), (theirs, 0), (theirs, 0), (ours, 0), (theirs, 0))
    charged: Any = {("update", "forward", stack): 4.0, ("update", "backward", ((theirs, 0),)): 4.0}
    phases, parts = {"update": 8.0, "recording": 1.0}, {"forward": 4.0, "backward": 4.0}
    processor = {"update": 4.0, "forward": 2.0}
    split = split_recording(charged, phases, processor, parts, SourcePlaces("train.py"))
    assert list(split.values()) == [3.0, 4.0]
    assert (phases, parts) == ({"update": 7.0, "recording": 2.0}, {"forward": 3.0, "backward": 4.0})
    assert processor == {"update": 3.5, "forward": 1.5}


SOURCE = """
for step in range(9):
    act()
    for env in envs:
        env.step()
    rows = [
        one() for one in many
    ]
def learn():
    while True:
        update()
"""


def test_the_loops_around_a_line_are_known() -> None:
    syntax = Syntax(SOURCE)
    assert [syntax.loops(line) for line in (3, 5, 7, 11)] == [(2,), (2, 4), (2, 6), (10,)]


def rollout(watch: Watch, clocks: Clocks, env_steps: int, updates: int, seconds: float = 1.0) -> None:
    """Env steps and then updates, each of which takes `seconds`."""
    for _ in range(env_steps):
        start = watch.enter()
        clocks.pass_by(seconds, seconds)
        watch.leave_env(start, (), (0, 1.0, False, False, {}))
    for _ in range(updates):
        for kind in (a.BACKWARD, a.OPTIMISER):
            start = watch.enter()
            clocks.pass_by(seconds / 2, seconds / 2)
            watch.leave(kind, start, (0, False, CRITIC))


def test_where_an_optimiser_exists_its_first_updates_are_waited_for() -> None:
    clocks = Clocks()
    watch = Watch(80.0, None, lambda: clocks.wall, steady=(5, 0), window=50.0)
    watch.expect_updates()
    watch.begin(0.0)
    assert watch.deadline == 80.0
    later = Watch(80.0, None, lambda: clocks.wall, steady=(5, 0), window=50.0)
    later.begin(0.0)
    assert later.deadline == 50.0
    later.expect_updates()  # one that the program makes only then
    assert later.deadline == 80.0


def test_the_recording_ends_with_a_whole_turn_of_acting_and_learning() -> None:
    clocks, ended = Clocks(), []
    watch = Watch(
        1e3, None, lambda: clocks.wall, steady=(5, 0), window=500.0, at_limit=lambda: ended.append(clocks.wall)
    )
    watch.begin(0.0)
    for _ in range(4):
        rollout(watch, clocks, 100, 100)  # 200 s: the second and third fit into 500, the fourth does not
    assert ended[0] == 601.0  # the first env call after the third turn
    watch.finish()


def test_where_only_one_turn_fits_it_is_told_whole() -> None:
    clocks, ended = Clocks(), []
    watch = Watch(
        300.0, None, lambda: clocks.wall, steady=(5, 0), window=150.0, at_limit=lambda: ended.append(clocks.wall)
    )
    watch.expect_updates()
    watch.begin(0.0)
    rollout(watch, clocks, 100, 100)  # 200 s of the 300
    rollout(watch, clocks, 1, 0)
    assert ended == [201.0]
    watch.finish()
    told = watch.told()
    assert (told.totals["env_steps"], told.totals["updates"], told.began) == (101, 100, 0.0)
    assert told.phases == {"env": 101.0, "start-up": 1.0, "update": 99.0, "other": 0.0, "recording": 0.0}
