"""The recorder's parts by themselves, with injected clocks."""

import sys
from statistics import median
from types import SimpleNamespace

import numpy as np
import pytest

from hotloop.core.errors import SettingsError
from hotloop.doctor.recorder import words
from hotloop.doctor.recorder.attribution import Attribution
from hotloop.doctor.recorder.costs import lines_beneath
from hotloop.doctor.recorder.hooks import ClassHooks, timed
from hotloop.doctor.recorder.lines import Syntax
from hotloop.doctor.recorder.order import Order
from hotloop.doctor.recorder.passes import Faults
from hotloop.doctor.recorder.places import LIBRARY, USER, SourcePlaces
from hotloop.doctor.recorder.recording import own_cost
from hotloop.doctor.recorder.results import EnvCalls, looks_like_a_step, read_step
from hotloop.doctor.recorder.sampling import StackSampler
from hotloop.doctor.recorder.sources import Made, owner_made
from hotloop.doctor.recorder.timeline import MOST, Timeline
from hotloop.doctor.recorder.toggling import NOTHING_TO_COMPARE, Toggler, before_and_after, ratios, whole
from hotloop.doctor.recorder.torch_hooks import timed_step
from hotloop.doctor.recorder.watch import LimitReached, Watch
from hotloop.doctor.recorder.words import Seen
from hotloop.doctor.script import ScriptPlan
from hotloop.doctor.script.result import one_experiment


class Clock:
    """Time that passes only when told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def spend(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.mark.parametrize(
    ("result", "steps", "episodes"),
    [
        (("obs", 1.0, True, False, {}), 1, 1),
        (("obs", 1, False, {}), 1, 0),
        (("obs", 0.5, True), 1, 1),
        ((1.0, True, 17), 1, 1),
        ((np.zeros(3), np.ones(3), np.array([True, False, True]), [{}] * 3), 3, 2),
        ((np.zeros(2), np.ones(2), np.array([True, False]), np.array([False, True]), {}), 2, 2),
        (({"a": 0}, {"a": 1.0}, {"a": True}, {"a": False}, {}), 1, 1),
        (SimpleNamespace(reward=np.ones(4), done=np.array([False, True, False, False])), 4, 1),
    ],
)
def test_a_steps_answer_says_how_many_env_steps_and_episodes(result, steps, episodes):
    assert looks_like_a_step(result)
    assert read_step(result) == (steps, episodes)
    counted, env = EnvCalls(Faults()), object()
    for calls in range(1, 4):  # the first by the reader, those that follow by what was learned of the env
        counted.count_call(env, result)
        assert (counted.env_steps, counted.episodes) == (calls * steps, calls * episodes)


def test_an_env_that_returns_something_else_than_before_is_read_anew():
    counted, env = EnvCalls(Faults()), object()
    flags, none = np.array([True, False]), np.array([False, False])
    counted.count_call(env, (np.zeros(2), np.ones(2), flags, none, {}))
    counted.count_call(env, (np.zeros(2), np.ones(2), none, flags, {}))
    counted.count_call(env, (np.zeros(1), 1.0, np.bool_(True), False, {}))
    counted.count_call(env, (np.zeros(3), np.ones(3), np.array([1.0, 0.0, 1.0]), np.zeros(3), {}))
    assert (counted.env_steps, counted.episodes, counted.at_once) == (8, 5, 3)


def test_the_envs_of_training_are_those_that_are_called_most():
    counted, training, evaluation = EnvCalls(Faults()), object(), object()
    for env, rows, calls in ((training, 4, 10), (evaluation, 100, 12), (training, 4, 10)):
        for _ in range(calls):
            counted.count_call(env, (np.zeros(rows), np.ones(rows), np.zeros(rows, bool), np.zeros(rows, bool), {}))
    assert counted.most_stepped() == (20, 80)
    assert (counted.env_calls, counted.env_steps, counted.env_switches) == (32, 1280, 3)


def test_hooks_that_are_sent_to_another_process_do_nothing_there():
    made, args, state = Watch(1e9, None).__reduce__()
    elsewhere = made(*args)
    vars(elsewhere).update(state)
    assert timed_step(elsewhere, lambda optimiser: optimiser)("its own") == "its own"


def test_a_step_by_name_and_by_place_reaches_the_env_alike():
    class Env:
        def step(self, action):
            return action, 1.0, False, False, {}

        def reset(self):
            return 0

    watch = Watch(1e9, None)
    hooks = ClassHooks()
    hooks.watch = watch
    Env.step = hooks.env_step(Env.step, sure=True)
    env = Env()
    assert [env.step(3)[0], env.step(action=4)[0], Env.step(env, 5)[0]] == [3, 4, 5]
    assert (watch.env_calls, watch.env_steps) == (3, 3)
    with pytest.raises(TypeError):
        env.step()


@pytest.mark.parametrize("result", [None, 3.0, "moved", (1,), ("a", "b", "c"), {"reward": 1}])
def test_other_answers_are_not_taken_for_a_step(result):
    assert not looks_like_a_step(result)


def test_nested_hooks_charge_their_time_once(clock):
    watch = Watch(100.0, None, clock)

    def inner():
        clock.spend(2)

    inner = timed(watch, inner, words.LOG)

    def outer():
        clock.spend(1)
        inner()

    outer = timed(watch, outer, words.STORE)
    watch.begin(0.0)
    watch.busy = False
    outer()
    inner()
    watch.finish()
    assert watch.attribution.phases == {"store-and-sample": 3, "log": 2, "other": 0}


def test_what_a_hook_adds_is_the_recordings_own():
    """Gaps of 3 s and events of 2 s, of which our hook is 1 s and half a second."""
    seen = Attribution(0.0, own=(1.0, 0.5))
    seen.events([Seen(words.ENV, 3.0 + 5 * turn, 5.0 + 5 * turn) for turn in range(4)])
    assert seen.phases == {"other": 4 * 2.0, "env": 4 * 1.5}
    assert seen.recording == 4 * 1.5
    outside, inside = own_cost()
    assert 0 < inside < 1e-3
    assert 0 < outside < 1e-3


def test_the_deadline_is_known_before_the_loop_has_begun(clock):
    """The guard, a thread, looks at both: with the other order it once ended a script at its first env step."""
    seen = []

    class Noting(Watch):
        def __setattr__(self, name, value):
            object.__setattr__(self, name, value)
            if name == "begun" and value:
                seen.append(self.deadline)

    clock.spend(7)
    Noting(5.0, None, clock).begin(9.0)
    assert seen == [14.0]


def test_slices_are_made_longer_until_they_take_their_time():
    timeline = Timeline(0.0, shortest=5.0)
    for step in range(1, 100):  # a second each
        if step >= timeline.next_at and not timeline.lengthen(float(step)):
            timeline.look(float(step), step, 0, 0, {"env": float(step)})
    assert [part.env_steps for part in timeline.slices] == [8] * 12


def test_the_watch_ends_the_loop_at_its_bound(clock):
    hooks = ClassHooks()
    watch = Watch(5.0, None, clock, passes=[hooks])

    class Env:
        def reset(self): ...

        def step(self, action):
            clock.spend(2)
            return 0, 1.0, False, False, {}

    hooks.look(Env)
    clock.spend(7)
    env = Env()
    env.step(0)
    env.step(0)
    with pytest.raises(LimitReached):
        env.step(0)
    watch.finish()
    assert (watch.began, watch.ended, watch.env_steps) == (7, 13, 3)
    assert watch.attribution.phases["env"] == 6
    env.step(0)
    assert watch.env_steps == 3


def test_an_env_in_a_wrapper_is_stepped_once_and_an_error_in_it_is_timed(clock):
    hooks = ClassHooks()
    watch = Watch(100.0, None, clock, passes=[hooks])

    class Env:
        def reset(self): ...

        def step(self, action):
            clock.spend(1)
            if action == 9:
                raise RuntimeError
            return 0, 1.0, True, {}

    class Wrapper(Env):
        def step(self, action):
            clock.spend(3)
            return super().step(action)

    hooks.look(Env)
    hooks.look(Wrapper)
    env = Wrapper()
    for action in (0, 1):
        env.step(action)
    with pytest.raises(RuntimeError):
        env.step(9)
    assert (watch.env_calls, watch.episodes, len(watch.envs)) == (2, 2, 1)
    assert watch.attribution.phases["env"] == 1 + 4 + 4  # the very first call shows who is outermost


def test_a_hooked_class_given_back_is_its_old_self():
    class Env:
        def reset(self): ...

        def step(self, action): ...

    before = Env.step
    hooks = ClassHooks()
    Watch(1.0, None, passes=[hooks])
    hooks.look(Env)
    assert Env.step is not before
    hooks.restore(Env)
    assert Env.step is before


@pytest.mark.parametrize(("package", "updates"), [("sbx", 2), ("stable_baselines3", 0)])
def test_an_algorithm_that_learns_by_jax_makes_updates_by_its_train(monkeypatch, package, updates):
    """Stable-Baselines3's own are seen by what PyTorch does."""
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace())

    class SAC:
        def train(self, gradient_steps):
            return gradient_steps

    SAC.__module__ = f"{package}.sac.sac"
    made = Made(SourcePlaces("train.py"))
    watch = Watch(100.0, None, passes=[made])
    watch.begin(0.0)
    made.time_learning(SAC)
    made.time_learning(SAC)  # a second model
    for _ in range(2):
        watch.leave(words.ENV, watch.enter())
        assert SAC().train(8) == 8
    watch.finish()
    assert watch.totals()["updates"] == updates


def test_looks_are_charged_to_the_phase_in_which_they_were_taken(clock):
    sampler = StackSampler(SourcePlaces("train.py"), 0.004, clock)
    watch = Watch(100.0, None, clock, passes=[sampler])
    watch.begin(0.0)
    for now, end, kind in ((3.0, 4.0, words.ENV), (5.0, 6.0, words.LOG)):
        clock.now = now
        sampler.look(None)
        clock.now = end
        watch.leave(kind, end - 2.0)
    watch.finish()
    assert {phase: seconds for (phase, _, _), seconds in sampler.charged.items()} == {"env": 3.0, "log": 2.0}


def code(file, name):
    names = {}
    exec(compile(f"def {name}():\n    pass\n", file, "exec"), names)
    return names[name].__code__, 0


@pytest.mark.parametrize("between", [[], [code("/lib/site-packages/zoo/run.py", "run")]])
def test_beneath_a_library_that_only_calls_another_the_others_lines_are_told(between):
    """Innermost first. The zoo runs nothing itself; an env of the user's own is not beneath."""
    main = code("/here/train.py", "main")
    learn, train = (
        code("/lib/site-packages/agents/loop.py", "learn"),
        code("/lib/site-packages/agents/loop.py", "train"),
    )
    stacks = {"update": [train, learn], "act": [learn], "store": [learn], "env": [code("/here/maze.py", "step"), learn]}
    charged = {(phase, "", (*stack, *between, main)): 1.0 for phase, stack in stacks.items()}
    kinds = SimpleNamespace(
        whose=lambda code: USER if code.co_filename.startswith("/here/") else LIBRARY,
        name=lambda file: file.rpartition("site-packages/")[2],
        where=lambda file, line: f"{file.rpartition('site-packages/')[2]}:{line}",
    )
    seen = [(row["where"], row["function"], row["phase"]) for row in lines_beneath(charged, kinds)]
    assert {name for _, name, _ in seen} == {"learn", "train"}
    assert {phase for _, _, phase in seen} == {"update", "act", "store"}


def test_a_timeline_joins_neighbours_when_it_is_full():
    timeline = Timeline(10.0)
    for step in range(1, 2 * MOST + 1):
        if step >= timeline.next_at:
            timeline.look(10.0 + step, step, 0, step, {"env": 0.25 * step})
    assert len(timeline.slices) < MOST
    assert {part.env_steps for part in timeline.slices} == {timeline.every}
    assert timeline.slices[1].start_seconds == timeline.slices[0].seconds == timeline.every
    assert timeline.slices[1].phases == {"env": pytest.approx(0.25 * timeline.every)}


def test_ratios_compare_a_change_with_both_its_neighbours():
    costs = [(-1, 9.0), (-1, 4.0), (0, 2.0), (-1, 6.0), (1, 10.0), (-1, 6.0)]
    assert ratios(costs, 0) == [2.5]  # (4 + 6) / 2 / 2
    assert ratios(costs, 1) == [0.6]


def test_a_change_that_lasts_is_compared_with_what_was_before_it():
    costs = [(-1, 9.0), (-1, 4.0), (-1, 6.0), (0, 8.0), (0, 2.0), (0, 4.0), (0, 3.0)]
    assert before_and_after(costs, 0) == [3.0, 1.0]  # 6 over 2, 4 over 4; the first of each side is left out


def test_a_gain_on_half_of_the_loop_is_less_on_the_whole():
    assert whole(2.0, 1.0) == 2.0
    assert whole(2.0, 0.5) == pytest.approx(4 / 3)


def test_too_few_pairs_make_no_experiment():
    change = ("threads=1", "one thread", "to rounding")
    assert one_experiment(*change, [2.0] * 4) is None
    made = one_experiment(*change, [2.0, 2.1, 1.9, 2.0, 2.2])
    assert (made.ratio, made.low, made.high) == (2.0, 1.9, 2.2)


def test_thread_counts_take_turns_where_learning_has_just_been_done(clock, monkeypatch):
    threads = [2]
    torch = SimpleNamespace(
        get_num_threads=lambda: threads[-1], set_num_threads=threads.append, set_flush_denormal=lambda flag: None
    )
    monkeypatch.setitem(__import__("sys").modules, "torch", torch)
    monkeypatch.setattr("hotloop.doctor.recorder.toggling.usable_cores", lambda: 2)
    toggler = Toggler(Order(script="s", kind="threads", seconds=8.0, result="r"))
    watch = Watch(1e9, None, clock, passes=[toggler])
    watch.begin(0.0)
    for _ in range(40):
        watch.env_steps += 10
        watch.attribution.bursts += 1
        clock.spend(0.2 if threads[-1] == 2 else 0.1)
        toggler.on_env(clock())
    (made,) = toggler.experiments()
    assert made["name"] == "threads=1"
    assert median(made["pairs"]) == pytest.approx(2.0)
    assert threads.count(1) >= 8


@pytest.mark.parametrize(("slow", "gain"), [(1.0, 1.0), (2.0, 1 / (0.8 + 0.2 / 2))])
def test_flushing_is_judged_by_the_processor_time_of_learning(clock, monkeypatch, slow, gain):
    """It has no turns: in the first half, with nothing flushed yet, another program takes half of the core, and the
    program draws figures. A fifth of the computing is learning, `slow` times what it is when flushed."""
    spent, flushed = {"all": 0.0, "optimiser": 0.0}, [False]
    torch = SimpleNamespace(
        get_num_threads=lambda: 1, set_num_threads=lambda count: None, set_flush_denormal=flushed.append
    )
    monkeypatch.setitem(__import__("sys").modules, "torch", torch)
    monkeypatch.setattr("hotloop.doctor.recorder.toggling.usable_cores", lambda: 1)
    monkeypatch.setattr("hotloop.doctor.recorder.toggling.time.process_time", lambda: spent["all"])
    toggler = Toggler(Order(script="s", kind="threads", seconds=8.0, result="r", flush_denormals=True))
    watch = Watch(1e9, None, clock, passes=[toggler], at_limit=lambda: None)
    watch.begin(0.0)
    watch.attribution.processor = lambda: spent
    for _ in range(60):
        watch.env_steps += 10
        watch.attribution.bursts += 1
        watch.attribution.counts["optimiser_steps"] += 10
        spent["optimiser"] += 0.03 / slow if flushed[-1] else 0.03
        spent["all"] += 0.10 if flushed[-1] else 0.15
        clock.spend(0.15 if flushed[-1] else 0.3)
        toggler.on_env(clock())
    (made,) = toggler.experiments()
    assert flushed[-1]
    assert len(made["pairs"]) >= 5
    assert made["pairs"] == pytest.approx([gain] * len(made["pairs"]))


def test_one_thread_on_one_core_leaves_nothing_to_compare_and_ends_the_run(clock, monkeypatch):
    """Its empty list of changes once re-armed the deadline at every call: the run never ended."""
    torch = SimpleNamespace(
        get_num_threads=lambda: 1, set_num_threads=lambda count: None, set_flush_denormal=lambda flag: None
    )
    monkeypatch.setitem(__import__("sys").modules, "torch", torch)
    monkeypatch.setattr("hotloop.doctor.recorder.toggling.usable_cores", lambda: 1)
    toggler, hooks = Toggler(Order(script="s", kind="threads", seconds=8.0, result="r", learns=False)), ClassHooks()
    Watch(1e9, None, clock, passes=[hooks, toggler])

    class Env:
        def reset(self): ...

        def step(self, action):
            clock.spend(1)
            return 0, 1.0, False, {}

    hooks.look(Env)
    with pytest.raises(LimitReached):
        Env().step(0)
    trace = {"notes": []}
    toggler.add_to(trace)
    assert trace == {"notes": [NOTHING_TO_COMPARE], "experiments": []}


def features(source):
    return {line: set(Syntax(source).features(line)) for line in range(1, source.count("\n") + 2)}


def test_syntax_shows_what_a_line_does():
    source = (
        "def f(self, x):\n"
        "    for a in x:\n"
        "        y = d[f'{a}_{x}'] + d['w' + str(a)]\n"
        "        rows.insert(0, y.item())\n"
        "        rows.pop(0)\n"
        "    while [b for b in x]:\n"
        "        return f(x)\n"
        "d[1], d['plain']\n"
        "rows.insert(1, 0)\n"
    )
    found = features(source)
    assert found[2] == {"for-loop"}
    assert found[3] == {"f-string", "string-key", "python-loop-body"}
    assert found[4] == {"insert-front", "item", "python-loop-body"}
    assert found[5] == {"pop-front", "python-loop-body"}
    assert found[6] == {"while-loop", "comprehension"}
    assert found[7] == {"python-loop-body", "function-recursive"}
    assert found[8] == found[9] == set()


def test_a_statement_over_several_lines_shows_on_each_and_a_broken_file_on_none():
    assert features("x = (\n    f'{1}'\n)\n")[3] == {"f-string"}
    assert Syntax("def (").features(1) == ()


def test_places_are_named_without_the_machines_paths(tmp_path):
    script = tmp_path / "train.py"
    (tmp_path / "agents").mkdir()
    mine = tmp_path / "agents" / "dqn.py"
    mine.write_text("")
    places = SourcePlaces(str(script))
    assert places.kind(str(mine)) == USER
    assert places.where(str(mine), 3) == "agents/dqn.py:3"
    assert places.kind(np.__file__) == LIBRARY
    assert places.name(np.__file__) == "numpy/__init__.py"
    assert places.kind(pytest.__file__.replace("site-packages", "dist-packages")) == LIBRARY
    assert places.kind("<string>") == LIBRARY
    import json.decoder

    assert places.kind(json.decoder.__file__) == LIBRARY
    assert places.name(json.decoder.__file__) == "json/decoder.py"


@pytest.mark.parametrize(
    "bad", [{"seconds": 0}, {"env_steps": 0}, {"counting_env_steps": 0}, {"interval": 1.0}, {"patience": -1}]
)
def test_a_plan_that_cannot_be_is_refused(bad):
    with pytest.raises(SettingsError):
        ScriptPlan(**bad)


def test_what_a_library_makes_when_it_begins_to_learn_is_set_where_its_object_was_made(tmp_path):
    """`agent.fit(...)` makes the optimizer; the setting belongs to `agent = Config(`, over several lines or not."""
    script = tmp_path / "train.py"
    script.write_text(
        "agent = None\nagent = Config(\n    lr=1e-3,\n).create()\nagent.fit(env)\nmade = agent.fit(env)\nlib.fit(env)\n"
    )
    assert [owner_made(str(script), line) for line in (5, 6, 7, 99)] == [2, 0, 0, 0]
    assert owner_made(str(tmp_path / "none.py"), 5) == 0
