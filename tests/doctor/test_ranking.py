"""Which finding comes first, what all of them gain, and which dear lines none of them explains."""

from __future__ import annotations

from typing import Any

import pytest

from hotloop.doctor.finding import RULES, Finding, ranked, together
from hotloop.doctor.hottest import hottest_functions, hottest_lines, unexplained, whose_lines
from hotloop.doctor.port import port_command
from hotloop.doctor.rules import load_rules
from hotloop.doctor.trace import Counts, LineCost, Setup, StackCost, Subject, Trace
from hotloop.doctor.views.summary import verdict
from tests.doctor.sample_trace import make_trace

load_rules()


def finding(rule: str, gain: float, **more: Any) -> Finding:
    return Finding(rule=rule, share=0.5, evidence="", expected_gain=gain, **more)


def order(*found: Finding) -> list[str]:
    return [one.rule for one in ranked(found)]


def test_a_port_stands_below_what_is_mended_in_place_for_half_of_its_gain() -> None:
    port = finding("UPDATE006", 4.0, port=True)  # saves 75 %: half is 37.5 %, a gain of 1.6
    assert order(port, finding("STORE002", 1.61)) == ["STORE002", "UPDATE006"]
    assert order(port, finding("STORE002", 1.59)) == ["UPDATE006", "STORE002"]
    assert order(finding("A", 1.2), finding("B", 3.0), finding("C", 2.0)) == ["B", "C", "A"]


def test_a_port_comes_last_where_a_library_runs_the_loop() -> None:
    port, in_place = finding("UPDATE006", 4.0, port=True), finding("UPDATE007", 1.15)
    assert [one.rule for one in ranked([port, in_place])] == ["UPDATE006", "UPDATE007"]
    assert [one.rule for one in ranked([port, in_place], in_library=True)] == ["UPDATE007", "UPDATE006"]


def test_all_findings_that_keep_the_computation_multiply() -> None:
    found = [finding("ENV001", 2.0), finding("STORE002", 1.5), finding("UPDATE005", 9.0, kind="changes learning")]
    assert together(found, ten_seconds()) == 3.0
    assert together([], ten_seconds()) == 1.0


def test_a_port_takes_the_place_of_what_it_replaces() -> None:
    """The native update makes the fused optimizer needless; the env is another matter."""
    found = [finding("UPDATE006", 3.0, port=True), finding("UPDATE007", 1.3), finding("ENV001", 2.0)]
    assert together(found, ten_seconds()) == 6.0
    assert together([finding("UPDATE006", 1.2, port=True), finding("UPDATE007", 1.3)], ten_seconds()) == 1.3


def line(where: str, function: str, phase: str, seconds: float, part: str = "") -> LineCost:
    return LineCost(where=where, function=function, source=f"at {where}", phase=phase, seconds=seconds, part=part)


def ten_seconds(*lines: LineCost, **more: Any) -> Trace:
    return Trace(
        subject=Subject(kind="script", name="a.py"),
        machine={},
        seconds=10.0,
        phases={"env": 6.0, "update": 4.0},
        lines=lines,
        **more,
    )


LINES = (
    line("a.py:5", "step", "env", 2.0),
    line("a.py:6", "reward", "env", 1.0),
    line("a.py:7", "reward", "env", 1.0),
    line("a.py:20", "learn", "update", 3.0, "backward"),
    line("a.py:20", "learn", "update", 0.5, "rest"),
    line("a.py:9", "main", "env", 1.0),
)


def test_the_hottest_lines_and_functions_have_their_share_of_the_loop() -> None:
    trace = ten_seconds(*LINES)
    assert [(one.where, one.share) for one in hottest_lines(trace)][:2] == [("a.py:20", 0.35), ("a.py:5", 0.2)]
    shares = {one.function: one.share for one in hottest_functions(trace)}
    assert shares == {"learn": 0.35, "step": 0.2, "reward": 0.2, "main": 0.1}


def test_what_no_rule_explains_is_told_with_its_share_and_no_promise() -> None:
    """A dear line, a function whose lines are dear together; not the network's backward, nor what a finding names."""
    trace = ten_seconds(*LINES)
    assert [(one.where, one.function, one.source) for one in unexplained(trace, [])] == [
        ("a.py:5", "step", "at a.py:5"),
        ("a.py:6", "reward", ""),
    ]
    assert [one.function for one in unexplained(trace, [finding("ENV001", 2.0, where="a.py:7")])] == ["step"]


def test_a_comprehension_belongs_to_its_function_and_a_forward_to_the_network() -> None:
    receiving = line("a.py:30", "Workers.step.<locals>.<listcomp>", "wait", 4.0)
    sending, layers = line("a.py:29", "Workers.step", "env", 3.0), line("a.py:11", "Net.forward", "act", 2.0)
    trace = ten_seconds(receiving, sending, layers)
    assert unexplained(trace, [finding("MACHINE003", 2.0, where="a.py:30")]) == []
    assert next((one.function, one.share) for one in hottest_functions(trace)) == ("Workers.step", 0.7)


def test_beneath_a_call_of_a_library_its_own_lines_are_shown() -> None:
    beneath = (line("stable_baselines3/sac/sac.py:210", "SAC.train", "update", 3.0),)
    trace = ten_seconds(line("a.py:5", "<module>", "update", 9.0), beneath=beneath)
    assert [one.where for one in hottest_lines(trace)] == ["stable_baselines3/sac/sac.py:210"]


def test_an_env_that_a_library_steps_stands_beside_the_librarys_lines() -> None:
    beneath = (line("stable_baselines3/sac/sac.py:210", "SAC.train", "update", 3.0),)
    learn, step = line("a.py:50", "<module>", "update", 6.0), line("a.py:5", "Maze.step", "env", 4.0)
    trace = ten_seconds(learn, step, beneath=beneath)
    assert [one.where for one in hottest_lines(trace)] == ["a.py:5", "stable_baselines3/sac/sac.py:210"]
    assert [one.where for one in unexplained(trace, [finding("UPDATE018", 2.0, where="a.py:49")])] == ["a.py:5"]
    assert whose_lines(trace) == "of stable_baselines3, beneath your line, and of your code"


@pytest.mark.parametrize(
    ("env_steps", "updates", "optimiser", "words"),
    [
        (199, 0, "", "199 env steps, where 200 are needed"),
        (500, 49, "Adam", "500 env steps and 49 updates"),
        (500, 0, "Adam", "500 env steps and 0 updates"),
    ],
)
def test_too_little_is_no_all_clear(env_steps: int, updates: int, optimiser: str, words: str) -> None:
    counts = Counts(env_steps=env_steps, env_calls=env_steps, updates=updates, optimiser=optimiser)
    told = verdict(make_trace(counts=counts), [])
    assert "Too little was seen" in told
    assert words in told
    assert "nothing was found" not in told


@pytest.mark.parametrize("counts", [Counts(env_steps=200), Counts(env_steps=200, updates=50, optimiser="Adam")])
def test_enough_is_an_all_clear(counts: Counts) -> None:
    assert "nothing was found" in verdict(make_trace(counts=counts), [])


SETUP = Setup(env_id="CartPole-v1", layers=(4, 64, 64, 2), num_actions=2, lr=5e-4, gamma=0.98, target_every=500)


def test_the_same_training_is_a_command_with_the_sizes_that_were_recorded() -> None:
    counts = Counts(env_steps=8_000, env_calls=1_000, updates=2_000, backwards=2_000, optimisers=1, batch_size=32)
    assert port_command(make_trace(counts=counts, setup=SETUP)) == (
        "hotloop train dqn --env.id CartPole-v1 --env.num-envs 8 --network.hidden 64 64 --updates-per-env-step 1/4 "
        "--batch-size 32 --target.every 500 --optimizer.learning-rate 0.0005 --gamma 0.98"
    )


def test_of_a_body_without_its_head_all_layers_are_hidden() -> None:
    counts = Counts(env_steps=8_000, env_calls=8_000, updates=1_280, optimisers=1)
    setup = Setup(env_id="CartPole-v1", layers=(4, 64, 64), num_actions=2, algorithm="PPO")
    assert port_command(make_trace(counts=counts, setup=setup)) == (
        "hotloop train ppo --env.id CartPole-v1 --network.hidden 64 64"
    )


def test_no_command_where_it_would_be_another_training() -> None:
    counts = Counts(env_steps=1_000, env_calls=1_000, updates=1_000, backwards=3_000, optimisers=3)
    assert port_command(make_trace(counts=counts, setup=SETUP)) == ""  # several losses per update: no DQN
    assert port_command(make_trace(setup=Setup(layers=(4, 64, 2), num_actions=2))) == ""  # whose env?


def test_evaluation_that_comes_late_counts_for_what_it_takes_of_all() -> None:
    """10 s of loop without it, then 10 s of which it took 8: 40 %."""
    late = (
        StackCost(phase="other", frames=("main (a.py:9)", "evaluate (a.py:30)", "Env.step (b.py:3)"), seconds=8.0),
        StackCost(phase="other", frames=("main (a.py:9)", "train (a.py:20)"), seconds=2.0),
    )
    counts = Counts(env_steps=1_000, env_calls=1_000, late_seconds=10.0)
    found = RULES["LOG003"].find(ten_seconds(*LINES, late=late, counts=counts))
    assert found is not None
    assert found.share == 0.4
    assert RULES["LOG003"].find(ten_seconds(*LINES, counts=counts)) is None
