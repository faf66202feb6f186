"""Rules about reports, machine and growth, on traces made by hand; and what holds for all findings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hotloop.doctor.finding import expected_gain, findings
from hotloop.doctor.trace import Counts, Experiment, Mention, Setup, Slice, Trace
from tests.doctor.rule_traces import call, found, grown, judge, line, made, stack


def test_printing_every_env_step_is_found() -> None:
    lines = [line(9, 3.0, "log", 'print(f"step {step}")')]
    finding = found("LOG001", made({"log": 3.0}, calls=[call("builtins.print", 9, "log", 100)], lines=lines))
    assert "1 reports per call of `step` (most often `builtins.print`) take 30 %" in finding.evidence
    assert finding.where == "train.py:9"
    assert finding.expected_gain == pytest.approx(expected_gain(0.3, 50))
    assert judge("LOG001", made({"log": 3.0}, calls=[call("builtins.print", 9, "log", 1)], lines=lines)) is None


def test_a_figure_for_every_episode_is_found_where_the_loop_asks_for_it() -> None:
    """Seldom, but dear: the line to edit is the one in the loop, not those that draw."""
    drawing = ("main (train.py:9)", "plot (train.py:40)", "pause (matplotlib/pyplot.py:760)")
    stacks = [stack(4.0, "log", *drawing), stack(3.0, "env", "main (train.py:7)", "CartPoleEnv.step (cartpole.py:5)")]
    lines = [line(9, 0.0, "other", "plot()", "main"), line(40, 4.0, "log", "plt.pause(0.001)", "plot")]
    loops = {"train.py:9": ("train.py:5",), "train.py:7": ("train.py:5",)}
    trace = made({"log": 4.0, "env": 3.0}, stacks=stacks, lines=lines, loops=loops)
    finding = found("LOG001", trace)
    assert (finding.where, finding.lines) == ("train.py:9", ("train.py:40",))
    assert finding.evidence == "Figures are drawn while the loop runs: 40 % of it is spent in matplotlib."
    assert finding.expected_gain == pytest.approx(expected_gain(0.4, 50))
    rendering = made({"env": 4.0}, stacks=[stack(4.0, "env", *drawing)], lines=lines)
    assert judge("LOG001", rendering) is None  # the env's own frames


def test_saving_every_few_env_steps_is_found() -> None:
    lines = [line(9, 3.0, "checkpoint", "torch.save(state, path)")]
    finding = found("LOG002", made({"checkpoint": 3.0}, calls=[call("torch.save", 9, "checkpoint", 2)], lines=lines))
    assert "`torch.save` runs every 50 env steps and takes 30 %" in finding.evidence
    assert finding.expected_gain == pytest.approx(expected_gain(0.3, 20))
    assert found("LOG002", made(lines=lines)).evidence == "`saving` takes 30 % of the loop."
    assert judge("LOG002", made(lines=[line(9, 3.0, "start-up", "torch.save(state, path)")])) is None


def test_what_a_library_saves_is_found_at_the_line_that_sets_it_up() -> None:
    learn = [line(12, seconds, phase, "model.learn(1000)") for phase, seconds in (("update", 6.0), ("checkpoint", 3.0))]
    trace = made({"update": 6.0, "checkpoint": 3.0}, lines=learn)
    assert found("LOG002", trace).evidence == "`saving` takes 30 % of the loop."
    setup = Setup(library="stable_baselines3", algorithm="TD3", save_freq=50)
    finding = found("LOG002", replace(trace, setup=setup, made={"checkpoint": "train.py:5"}))
    assert (finding.where, "save_freq=1000," in finding.after) == ("train.py:5", True)


def test_much_evaluation_is_found() -> None:
    finding = found("LOG003", made({"evaluate": 5.0}, lines=[line(9, 5.0, "evaluate", "evaluate(agent)")]))
    assert finding.evidence == "Evaluation takes 50 % of the loop (5.0 s)."
    assert finding.where == "train.py:9"
    assert finding.expected_gain == pytest.approx(expected_gain(0.5, 5))
    assert judge("LOG003", made({"evaluate": 0.9})) is None


def test_evaluation_is_known_by_its_name_where_no_phase_tells() -> None:
    frames = ("main (train.py:90)", "Agent.evaluate_policy (train.py:9)", "step (env.py:3)")
    lines = [line(9, 4.0, "act", "obs = env.step(a)", "Agent.evaluate_policy")]
    finding = found("LOG003", made({"env": 5.0}, stacks=[stack(4.0, "env", *frames)], lines=lines))
    assert finding.evidence == "`Agent.evaluate_policy` takes 40 % of the loop (4.0 s)."
    assert finding.where == "train.py:9"
    learning = [stack(4.0, "update", "main (train.py:90)", "Policy.evaluate_actions (train.py:9)")]
    assert judge("LOG003", made({"update": 5.0}, stacks=learning)) is None


@pytest.mark.parametrize(
    ("function", "phases", "evaluates"),
    [
        ("Trainer._collect_test_episodes", {"env": 1.0, "act": 1.0}, True),
        ("EnvironmentEvaluator.__call__", {"env": 1.0, "act": 1.0}, True),
        ("Module.eval", {"act": 2.0}, False),  # switches a network's mode
        ("test_dqn", {"env": 1.0, "update": 1.0}, False),  # the whole training
    ],
)
def test_what_is_named_like_evaluation_must_step_envs_and_not_learn(function, phases, evaluates) -> None:
    stacks = [stack(spent, phase, "main (train.py:90)", f"{function} (a.py:9)") for phase, spent in phases.items()]
    assert (judge("LOG003", made(phases, stacks=stacks)) is not None) is evaluates


def test_evaluation_inside_a_library_is_told_where_it_was_asked_for() -> None:
    frames = ("main (train.py:90)", "Trainer.run (library/trainer.py:7)", "Trainer._test_step (library/trainer.py:9)")
    asked = (Mention(name="evaluation", where="train.py:54"),)
    trace = made({"env": 5.0}, stacks=[stack(4.0, "env", *frames)], lines=[line(90, 9.0, "env")], mentions=asked)
    assert found("LOG003", trace).where == "train.py:54"


def slices(*seconds: float) -> tuple[Slice, ...]:
    return tuple(Slice(start_seconds=0.0, seconds=one, env_steps=100, episodes=1, updates=100) for one in seconds)


def test_a_slow_beginning_spoils_a_rate() -> None:
    timeline = slices(3.0, *[0.7] * 10)
    counts = Counts(env_steps=1100, env_calls=1100, updates=100)
    finding = found("LOG004", made(calls=[call("time.time", 9, "other", 2)], timeline=timeline, counts=counts))
    assert finding.share == pytest.approx(0.23)
    assert "The first 3.0 s (100 env steps) are 4.3 times as slow" in finding.evidence
    assert finding.expected_gain == 1.0
    assert finding.where == "train.py:9"  # where the clock is read
    assert judge("LOG004", made(timeline=timeline, counts=counts)) is None, "no clock is read"
    steady = made(calls=[call("time.time", 9, "other", 2)], timeline=slices(*[1.0] * 10))
    assert judge("LOG004", steady) is None


def threads(ratio: float, low: float) -> Trace:
    tried = Experiment(name="threads-1", what="one thread", kind="to rounding", ratio=ratio, low=low, high=ratio + 0.2)
    return made(experiments=(tried,))


def test_another_thread_count_must_be_faster_for_sure() -> None:
    finding = found("MACHINE001", threads(1.5, 1.3))
    assert finding.evidence.startswith("One thread is 1.50 times as fast (1.30 to 1.70)")
    assert finding.expected_gain == pytest.approx(1.5, rel=0.01)
    assert judge("MACHINE001", threads(1.5, 0.9)) is None
    assert judge("MACHINE001", threads(0.8, 0.7)) is None


def test_denormal_numbers_are_counted_against_the_optimisers_state() -> None:
    counts = Counts(env_steps=1000, env_calls=1000, updates=100, parameters=1000, denormal_values=500)
    finding = found("MACHINE002", made({"update": 6.0}, counts=counts, update_parts={"optimiser": 3.0}))
    assert "500 numbers of the optimizer's state (25 %) are denormal; the optimizer takes 30 %" in finding.evidence
    assert finding.expected_gain == pytest.approx(1 / (0.7 + 0.3 / 1.5))
    tried = Experiment(name="flush denormals", what="flushed", kind="changes learning", ratio=1.4, low=1.2, high=1.6)
    measured = found("MACHINE002", made({"update": 6.0}, counts=counts, experiments=(tried,)))
    assert measured.expected_gain == pytest.approx(1.4, rel=0.01)
    assert judge("MACHINE002", made({"update": 6.0}, counts=counts, machine={"denormals_flushed": True})) is None
    assert judge("MACHINE002", made({"update": 6.0})) is None


def test_a_loop_that_got_cheaper_by_itself_is_not_taken_for_flushed_numbers() -> None:
    """Before and after: episodes had become longer, and figures fewer. The optimizer takes a tenth of the loop."""
    counts = Counts(env_steps=1000, env_calls=1000, updates=100, parameters=1000, denormal_values=150)
    tried = Experiment(name="flush denormals", what="flushed", kind="changes learning", ratio=1.7, low=1.4, high=2.0)
    trace = made({"update": 4.0}, counts=counts, experiments=(tried,), update_parts={"optimiser": 1.0})
    assert judge("MACHINE002", trace) is None
    more = found("MACHINE002", replace(trace, update_parts={"optimiser": 3.5}))
    assert more.expected_gain == pytest.approx(1 / 0.65, rel=0.01)


def waiting(worker_seconds: float, received: float = 5.0, env_steps: int = 24_000, **more: Any) -> Trace:
    """Six of ten seconds in the env, most of them on receiving an answer for every env step."""
    counts = Counts(env_steps=env_steps, env_calls=env_steps, worker_seconds=worker_seconds)
    calls = [call("multiprocessing.Connection.recv", 9, "env", 100)]
    return made({"env": 6.0}, counts=counts, calls=calls, lines=[line(9, received, "env", "pipe.recv()")], **more)


def test_waiting_for_workers_is_found_by_its_share() -> None:
    finding = found("MACHINE003", waiting(1.32))  # 24,000 answers: 0.72 of their 1.32 seconds are messages
    assert finding.where == "train.py:9"
    assert "50 % of its time; for each of 24,000 answers they used 55 microseconds" in finding.evidence
    assert finding.expected_gain == pytest.approx(expected_gain(0.6, 6.0 / 0.6, relief=0.8))
    assert judge("MACHINE003", waiting(5.4)) is None, "195 microseconds of each answer are the env's"
    assert judge("MACHINE003", waiting(5.4, received=1.0)) is None


def test_without_workers_on_a_busy_machine_what_is_left_stands_in_the_queue_by_the_wall_clock() -> None:
    """10 s and 10 more in the queue; of 4 s beside the env 2.7 are left with warm caches, and a sixth of the workers'
    5.4 s are steps. A second of computing takes two."""
    trace = waiting(5.4)
    queued = {"phases": trace.phases | {"queued": 10.0}, "seconds": 22.0, "clock": "processor"}
    crowded = replace(trace, **queued, counts=replace(trace.counts, crowding=2.0))
    finding = found("MACHINE003", crowded)
    stepped = 5.4 / 6  # 37 microseconds an answer, more than the 25 beyond a message of 200
    assert finding.expected_gain == pytest.approx(20 / (2 * (4 / (1 + 0.8 * 0.6) + stepped)), rel=0.01)
    assert finding.evidence.endswith("By the wall clock of this busy machine, where a second of computing takes 2.0.")


def test_what_else_a_librarys_loop_does_is_no_waiting_for_its_workers() -> None:
    counts = Counts(env_steps=24_000, env_calls=3_000, worker_seconds=1.32)
    learn = [line(12, seconds, phase, "model.learn(1000)") for phase, seconds in (("update", 6.0), ("env", 3.0))]
    finding = found("MACHINE003", made({"update": 6.0, "env": 3.0}, counts=counts, lines=learn))
    assert "30 % of its time" in finding.evidence


def test_workers_whose_envs_are_costly_are_no_finding() -> None:
    assert judge("MACHINE003", waiting(11.0)) is None, "two cores computed all the while"
    assert judge("MACHINE003", waiting(0.1, env_steps=100)) is None, "60 ms an answer: the envs sleep"


def test_waiting_inside_a_library_is_found_without_a_call_of_the_users() -> None:
    counts = Counts(env_steps=24_000, env_calls=3000, waiting_seconds=5.0, worker_seconds=3.0)
    lines = [line(20, 6.0, "env", "model.learn(100_000)")]
    assert found("MACHINE003", made({"env": 6.0}, counts=counts, lines=lines)).expected_gain > 1.5
    alone = replace(counts, worker_seconds=0.0)
    assert judge("MACHINE003", made({"env": 6.0}, counts=alone, lines=lines)) is None, "no worker is there"


@pytest.mark.parametrize(("code", "name"), [("MACHINE004", "gc.collect"), ("MACHINE005", "time.sleep")])
def test_collecting_and_sleeping_need_not_be_at_all(code: str, name: str) -> None:
    lines = [line(9, 4.0, "other", f"{name}()")]
    finding = found(code, made(calls=[call(name, 9, "other", 10)], lines=lines))
    assert finding.where == "train.py:9"
    relief = 0.25 if code == "MACHINE004" else 0.0
    assert finding.expected_gain == pytest.approx(expected_gain(0.4, 1000, relief))
    assert judge(code, made(calls=[call(name, 9, "start-up", 10)], lines=[line(9, 4.0, "start-up", name)])) is None


GROWN = [100.0, 100.0, 120.0, 140.0, 160.0, 180.0, 200.0, 220.0, 240.0, 240.0]


def test_growth_names_the_phase_and_the_container() -> None:
    growth = (grown("env step", *GROWN), grown("log", *[cost - 90 for cost in GROWN]), grown("env", *[60.0] * 10))
    trace = made(
        {"log": 5.0, "env": 3.0}, growth=growth, calls=[call("list.append", 44, "log", 100, largest=5000)]
    )  # fmt: skip
    finding = found("GROW001", trace)
    assert "costs 100 microseconds at first and 240 at the end; `log` grew 15 times" in finding.evidence
    assert "list.append works on 5,000 entries there" in finding.evidence
    assert finding.where == "train.py:44"
    assert finding.expected_gain == pytest.approx(
        expected_gain(1 - 90 / 170, relief=0.25), rel=0.01
    )  # the line through all begins at 90


def test_what_had_grown_before_the_recording_began_is_gone_with_the_rest() -> None:
    growth = (grown("env step", *GROWN), grown("log", *[cost - 90 for cost in GROWN]))
    late = Counts(env_steps=1000, env_calls=1000, updates=100, skipped_env_steps=1)
    finding = found("GROW001", made({"log": 5.0, "env": 3.0}, growth=growth, counts=late))
    assert finding.expected_gain == pytest.approx(
        expected_gain(1 - (90 - 17.8) / 170, relief=0.25), rel=0.02
    )  # one step earlier on the same line


def test_longer_episodes_are_no_finding() -> None:
    growth = (grown("env step", *[100.0] * 10), grown("env steps per episode", *GROWN))
    assert judge("GROW001", made({"env": 5.0}, growth=growth)) is None


def test_one_busy_moment_at_the_end_is_no_growth() -> None:
    growth = (grown("env step", *[100.0] * 8, 200.0, 200.0), grown("log", *[10.0] * 8, 110.0, 110.0))
    assert judge("GROW001", made({"log": 5.0}, growth=growth)) is None


def test_learning_that_begins_unseen_is_no_growth() -> None:
    """A JAX loop whose updates begin after a tenth of the run: 26.8 times was once promised for it."""
    costs = (300.0, 9000.0, 9100.0, 9050.0, 9200.0, 9300.0, 9350.0, 9400.0, 9500.0, 9660.0)
    growth = (grown("env step", *costs), grown("other", *costs))
    assert judge("GROW001", made(growth=growth)) is None


def test_a_clean_loop_gets_no_finding() -> None:
    counts = Counts(
        env_steps=64_000, env_calls=1000, envs=1, episodes=500, updates=1000, act_forwards=1000, update_forwards=2000,
        backwards=1000, parameter_tensors=6, parameters=100_000, optimiser="Adam fused", batch_size=256,
    )  # fmt: skip
    calls = [
        call("Tensor.item", 90, "update", 10),
        call("Tensor.numpy", 20, "act", 100),
        call("torch.from_numpy", 19, "act", 100),
    ]
    phases = {"act": 2.0, "env": 3.0, "store-and-sample": 1.0, "update": 3.5, "log": 0.1}
    trace = made(phases, calls=calls, counts=counts, update_parts={"forward": 1.0, "backward": 2.0, "optimiser": 0.5})
    assert findings(trace) == []


def test_an_empty_trace_gets_no_finding() -> None:
    assert findings(made()) == []
    nothing = made(counts=Counts(), counted=Counts())
    assert findings(nothing) == []


def test_findings_are_ranked_by_expected_gain() -> None:
    calls = [call("time.sleep", 9, "other", 100), call("builtins.print", 8, "log", 100)]
    lines = [line(9, 2.0, "other", "time.sleep(1)"), line(8, 4.0, "log", "print(step)")]
    ranked = findings(made({"log": 4.0}, calls=calls, lines=lines))
    assert [one.rule for one in ranked] == ["LOG001", "MACHINE005"]
    assert ranked[0].expected_gain > ranked[1].expected_gain
