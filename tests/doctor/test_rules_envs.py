"""Rules about envs and acting, on traces made by hand."""

from __future__ import annotations

import pytest

from hotloop.doctor.finding import expected_gain
from hotloop.doctor.trace import Counts, Trace
from tests.doctor.rule_traces import call, found, judge, line, made, stack

VECTOR = Counts(env_steps=8000, env_calls=1000, updates=100)


def flood_fill(takes: int) -> Trace:
    """Of ten seconds, eight in the env, six of them on the lines of `flood_fill`."""
    return made(
        {"env": 8.0},
        calls=[call("deque.popleft", 31, "env", takes, largest=12), call("list.pop", 12, "env", 90)],
        lines=[
            line(31, 2.0, "env", "x, y = queue.popleft()", "Snake.flood_fill", "python-loop-body"),
            line(33, 4.0, "env", "if cell not in visited:", "Snake.flood_fill", "python-loop-body"),
            line(12, 2.0, "env", "snake.pop()", "Snake.step"),
        ],
    )


def test_a_search_is_charged_with_its_function_and_named_at_its_queue() -> None:
    finding = found("ENV001", flood_fill(4800))
    assert finding.where == "train.py:31"
    assert finding.share == pytest.approx(0.6)
    assert finding.evidence.startswith("48 items are taken from a queue (deque.popleft) per env step")
    assert finding.expected_gain == pytest.approx(expected_gain(0.6, 50))


def test_a_queue_read_once_per_env_step_is_no_search() -> None:
    assert judge("ENV001", flood_fill(100)) is None


def test_enumerated_paths_are_charged_with_their_line() -> None:
    paths = [line(20, 5.0, "env", "paths = list(nx.all_simple_paths(g, a, b))")]
    trace = made({"env": 6.0}, calls=[call("networkx.all_simple_paths", 20, "env", 300)], lines=paths)
    finding = found("ENV002", trace)
    assert finding.where == "train.py:20"
    assert "`networkx.all_simple_paths` is called 3 times per call of `step` and takes 50 %" in finding.evidence
    assert finding.expected_gain == pytest.approx(expected_gain(0.5, 50))
    assert judge("ENV002", made({"env": 6.0}, lines=paths)) is None


def test_a_function_that_calls_itself_hundreds_of_times_enumerates() -> None:
    stacks = [stack(4.0, "env", "step (train.py:5)", "paths (train.py:9)", "paths (train.py:9)")]
    lines = [line(9, 4.0, "env", "found += paths(node)", "paths")]
    often = made({"env": 5.0}, calls=[call("recursive:paths", 9, "env", 50_000)], lines=lines, stacks=stacks)
    assert "`paths` calls itself 500 times per call of `step` and takes 40 %" in found("ENV002", often).evidence
    seldom = made({"env": 5.0}, calls=[call("recursive:paths", 9, "env", 300)], lines=lines, stacks=stacks)
    assert judge("ENV002", seldom) is None


def test_graph_look_ups_in_the_env_are_counted() -> None:
    calls = [call("networkx.Graph.neighbors", 7, "env", 1200)]
    trace = made({"env": 5.0}, calls=calls, lines=[line(7, 3.0, "env", "for n in graph.neighbors(node):")])
    finding = found("ENV003", trace)
    assert "12 calls of a graph library per call of `step`" in finding.evidence
    assert finding.expected_gain == pytest.approx(expected_gain(0.3, 10))
    once = [call("networkx.Graph.neighbors", 7, "start-up", 1200)]
    assert judge("ENV003", made({"env": 5.0}, calls=once, lines=list(trace.lines))) is None


def test_sorting_is_a_finding_only_where_the_result_is_cut() -> None:
    calls = [call("builtins.sorted", 7, "env", 200)]
    cut = made({"env": 5.0}, calls=calls, lines=[line(7, 4.0, "env", "left = sorted(nodes, key=x_of)[:k]")])
    finding = found("ENV004", cut)
    assert "`sorted` is called 2 times per call of `step` or update for its first few: 40 %" in finding.evidence
    assert finding.expected_gain == pytest.approx(expected_gain(0.4, 8))
    whole = made({"env": 5.0}, calls=calls, lines=[line(7, 4.0, "env", "order = sorted(nodes, key=x_of)")])
    assert judge("ENV004", whole) is None


def test_envs_stepped_one_by_one_are_found_by_the_functions_that_run_for_each() -> None:
    calls = [call("user:Game.move", 40, "env", 300), call("user:Game.look", 60, "env", 300)]
    trace = made({"env": 5.0}, calls=calls, counts=VECTOR, machine={"cores": 1})  # with two, these are worth workers
    finding = found("ENV005", trace)
    assert "8 envs are stepped per call, with 6 calls of your own functions for each: 5,000 micro" in finding.evidence
    assert finding.expected_gain == pytest.approx(expected_gain(0.5, 4))  # half the envs; 5,000 / 60 is more
    assert judge("ENV005", made({"env": 5.0}, counts=VECTOR)) is None  # a batched env runs nothing for each
    assert judge("ENV005", made({"env": 5.0}, calls=calls)) is None  # one env


def test_a_search_in_the_env_is_not_counted_twice() -> None:
    fill = flood_fill(4800)
    trace = made(
        {"env": 8.0}, calls=[*fill.calls, call("user:Game.move", 40, "env", 300)], lines=list(fill.lines), counts=VECTOR
    )
    assert found("ENV001", trace).share == pytest.approx(0.6)
    assert found("ENV005", trace).share == pytest.approx(0.2)


def test_time_in_wrappers_is_what_is_sampled_outside_the_innermost_step() -> None:
    outer = ["main (train.py:90)", "A.step (train.py:10)", "B.step (train.py:20)", "C.step (train.py:30)"]
    stacks = [stack(3.0, "env", *outer), stack(2.0, "env", *outer, "Env.step (train.py:40)")]
    calls = [call(f"user:{name}.step", row, "env", 100) for row, name in ((10, "A"), (20, "B"), (30, "C"), (40, "Env"))]
    finding = found("ENV006", made({"env": 5.0}, calls=calls, stacks=stacks))
    assert "`step` runs through 3 wrappers around the env; 30 % of the loop" in finding.evidence
    assert finding.expected_gain == pytest.approx(expected_gain(0.3, 4))
    assert judge("ENV006", made({"env": 5.0}, calls=calls[2:], stacks=stacks)) is None  # one wrapper


def test_rendering_is_found_outside_evaluation_only() -> None:
    lines = [line(8, 4.0, "other", "frame = env.render()")]
    finding = found("ENV007", made(calls=[call("gymnasium.Wrapper.render", 8, "other", 100)], lines=lines))
    assert finding.expected_gain == pytest.approx(expected_gain(0.4, 1000))
    assert finding.before == "frame = env.render()"
    watched = made(calls=[call("gymnasium.Wrapper.render", 8, "evaluate", 100)], lines=lines)
    assert judge("ENV007", watched) is None


def test_acting_with_gradients_is_found_unless_they_are_needed() -> None:
    counts = {"env_steps": 1000, "env_calls": 1000, "updates": 100, "backwards": 100, "act_forwards": 900}
    costly = Counts(**counts, act_forwards_with_grad=900, update_forwards=200)
    finding = found("ACT001", made({"act": 5.0}, counts=costly))
    assert "900 of 900 forwards that chose actions recorded gradients; acting takes 50 %" in finding.evidence
    assert finding.expected_gain == pytest.approx(expected_gain(0.5, 1.25))
    reinforce = Counts(**counts, act_forwards_with_grad=900, update_forwards=0)
    assert judge("ACT001", made({"act": 5.0}, counts=reinforce)) is None
    healthy = Counts(**counts, act_forwards_with_grad=0, update_forwards=200)
    assert judge("ACT001", made({"act": 5.0}, counts=healthy)) is None


def test_a_forward_that_learning_needs_is_not_where_gradients_are_switched_off() -> None:
    """Line 26 is the network's own; line 40 asks it for an action. Where a library asks, there is no line to edit."""
    costly = Counts(env_steps=1000, env_calls=1000, updates=100, backwards=100, update_forwards=100, act_forwards=1000,
                    act_forwards_with_grad=1000)  # fmt: skip
    forward = [line(26, 3.0, "act", "q = self.head(x)"), line(26, 1.0, "update", "q = self.head(x)")]
    asked = line(40, 1.0, "act", "action = net(obs).argmax()")
    phases = {"act": 5.0, "update": 2.0}
    assert found("ACT001", made(phases, counts=costly, lines=[*forward, asked])).where == "train.py:40"
    inside = (line(700, 4.0, "act", "q = self.policy(obs)"),)
    assert judge("ACT001", made(phases, counts=costly, lines=forward, beneath=inside)) is None


def test_one_forward_per_env_is_found_in_vector_and_single_envs() -> None:
    vector = Counts(env_steps=8000, env_calls=1000, act_forwards=8000, updates=10)
    finding = found("ACT002", made({"act": 6.0}, counts=vector))
    assert "8 forwards choose the actions of 8 envs, one after another; acting takes 60 %" in finding.evidence
    assert finding.expected_gain == pytest.approx(expected_gain(0.6, (0.9 * 8)))
    singles = Counts(env_steps=8000, env_calls=8000, envs=8, act_forwards=8000, updates=10)
    assert found("ACT002", made({"act": 6.0}, counts=singles)).expected_gain == pytest.approx(finding.expected_gain)
    batched = Counts(env_steps=8000, env_calls=1000, act_forwards=1000, updates=10)
    assert judge("ACT002", made({"act": 6.0}, counts=batched)) is None
    train_and_test = Counts(env_steps=8000, env_calls=8000, envs=2, act_forwards=8000, updates=10)
    assert judge("ACT002", made({"act": 6.0}, counts=train_and_test)) is None
