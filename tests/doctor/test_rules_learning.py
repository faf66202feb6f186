"""Rules about replay, the network and its updates, on traces made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.doctor.finding import CHANGES_LEARNING, TO_ROUNDING, expected_gain, findings
from hotloop.doctor.trace import Counts, Setup, Trace
from tests.doctor.rule_traces import COUNTED, call, found, judge, line, made, stack

VECTOR = Counts(env_steps=8000, env_calls=1000, updates=100)


def test_host_reads_while_storing_are_found() -> None:
    calls = [call("Tensor.item", 21, "store-and-sample", 300), call("Tensor.cpu", 20, "store-and-sample", 200)]
    lines = [line(20, 3.0, "store-and-sample", "states[i].cpu().numpy(),"), line(21, 1.0, "store-and-sample")]
    finding = found("STORE001", made({"store-and-sample": 5.0}, calls=calls, lines=lines, counts=VECTOR))
    assert finding.where == "train.py:20"
    assert finding.lines == ("train.py:21",)
    assert (
        finding.evidence
        == "5 host reads (cpu, item) per env step while storing, 40 per call of `step`: 40 % of the loop."
    )
    assert finding.expected_gain == pytest.approx(expected_gain(0.4, 40))
    acting = [call("Tensor.item", 21, "act", 300), call("Tensor.cpu", 20, "update", 200)]
    assert judge("STORE001", made({"store-and-sample": 5.0}, calls=acting, lines=lines, counts=VECTOR)) is None


def batches(draws: int) -> Trace:
    calls = [
        call("random.Random.sample", 30, "store-and-sample", draws, largest=10_000),
        call("torch.tensor", 31, "store-and-sample", 2 * draws),
    ]
    lines = [
        line(30, 1.0, "store-and-sample", "rows = zip(*random.sample(self.rows, n))", "Buffer.sample"),
        line(31, 2.0, "store-and-sample", "torch.tensor(np.array(states)),", "Buffer.sample"),
    ]
    return made({"store-and-sample": 3.0, "update": 4.0}, calls=calls, lines=lines)


def test_batches_of_python_rows_are_found_by_draw_and_rebuilding() -> None:
    finding = found("STORE002", batches(10))
    assert "(random.Random.sample, of 10,000) and makes arrays or tensors of them (2 or more): 30 %" in finding.evidence
    assert finding.where == "train.py:30"
    assert finding.expected_gain == pytest.approx(expected_gain(0.3, 15, relief=0.0)), "30 ms, at most so many times"
    rows = Counts(env_steps=1000, env_calls=1000, updates=10_000, batch_size=64)
    shorter = found("STORE002", replace(batches(10), counts=rows)).expected_gain
    assert shorter == pytest.approx(expected_gain(0.3, 300 / (15 + 0.6 * 64), relief=0.0)), "300 microseconds"
    assert judge("STORE002", batches(3)) is None  # three draws in ten updates are not its batches


def advantages(largest: int) -> Trace:
    """A second of 1,000 rows: a thousand microseconds each."""
    lines = [
        line(50, 0.2, "other", "for t in reversed(range(n)):", "gae", "for-loop"),
        line(51, 0.7, "other", "gae = delta + decay * gae", "gae", "python-loop-body"),
        line(52, 0.1, "other", "advantages.insert(0, gae)", "gae", "python-loop-body", "insert-front"),
        line(60, 5.0, "other", "fit(advantages)", "main", "python-loop-body"),
    ]
    return made({"env": 2.0}, calls=[call("list.insert", 52, "other", 100, largest)], lines=lines)


def test_insertion_at_the_front_is_charged_with_its_loop() -> None:
    finding = found("STORE003", advantages(128))
    assert finding.where == "train.py:52"
    assert finding.share == pytest.approx(0.1)
    assert "of up to 128; the lines around it take 10 % of the loop, 1,000 micro" in finding.evidence
    assert finding.expected_gain == pytest.approx(expected_gain(0.1, 50))
    assert judge("STORE003", advantages(20)) is None  # a body of a snake


def test_popping_the_front_is_found_on_long_lists_only() -> None:
    lines = [line(9, 4.0, "store-and-sample", "memory.pop(0)", "push", "pop-front")]
    finding = found("STORE004", made(calls=[call("list.pop", 9, "store-and-sample", 100, 50_000)], lines=lines))
    assert "`pop(0)` runs 1 times per env step on a list of up to 50,000: 40 %" in finding.evidence
    assert finding.expected_gain == pytest.approx(expected_gain(0.4, 50))
    assert judge("STORE004", made(calls=[call("list.pop", 9, "store-and-sample", 100, 40)], lines=lines)) is None
    back = [line(9, 4.0, "store-and-sample", "memory.pop()", "push")]
    assert judge("STORE004", made(calls=[call("list.pop", 9, "other", 100, 50_000)], lines=back)) is None


def test_deep_copies_are_found_where_they_repeat() -> None:
    lines = [line(9, 3.0, "env", "state = copy.deepcopy(self.state)")]
    finding = found("STORE005", made({"env": 4.0}, calls=[call("copy.deepcopy", 9, "env", 100)], lines=lines))
    assert finding.expected_gain == pytest.approx(expected_gain(0.3, 15))
    assert judge("STORE005", made({"env": 4.0}, calls=[call("copy.deepcopy", 9, "env", 1)], lines=lines)) is None


NAMED = line(14, 3.0, "update", 'total += a[n] * self.weights[f"{n}_to_{m}"]', "Net.forward", "string-key", "f-string")
GRAPH_CALLS = [call("networkx.DiGraph.predecessors", 13, "update", 6000)]
FORWARD = stack(4.0, "update", "learn (train.py:70)", "Net.forward (train.py:14)")


def topology(tensors: int, **parts: float) -> Trace:
    counts = Counts(env_steps=1000, env_calls=1000, updates=100, parameter_tensors=tensors, parameters=tensors)
    return made(
        {"update": 8.0}, calls=GRAPH_CALLS, lines=[NAMED], stacks=[FORWARD], counts=counts,
        update_parts={"forward": 4.0, "backward": 2.0, "optimiser": 1.5, "rest": 0.5},
    )  # fmt: skip


def test_a_graph_walked_by_name_is_charged_with_forward_backward_and_optimiser() -> None:
    finding = found("UPDATE001", topology(300))
    assert finding.where == "train.py:14"
    assert finding.share == pytest.approx(0.75)
    assert "50 graph look-ups per forward" in finding.evidence  # 6,000 over 20 + 100 forwards
    assert "300 parameter tensors; forward, backward and optimizer take 75 %" in finding.evidence
    assert finding.expected_gain == pytest.approx(expected_gain(0.75, 30))
    assert judge("UPDATE001", topology(6)) is None


def test_few_parameters_looked_up_by_name_are_a_smaller_finding() -> None:
    finding = found("UPDATE002", topology(6))
    assert finding.where == "train.py:14"
    assert finding.expected_gain == pytest.approx(expected_gain(0.4, 1.3))
    assert judge("UPDATE002", topology(300)) is None
    assert judge("UPDATE002", made({"update": 8.0}, lines=[line(14, 3.0, "update", "x * self.scales[i]")])) is None


def test_one_forward_per_row_is_found_by_their_number_and_size() -> None:
    parts = {"forward": 4.0, "backward": 3.0}
    rows = Counts(env_steps=1000, env_calls=1000, updates=100, update_forwards=6400, batch_size=1)
    finding = found("UPDATE003", made({"update": 8.0}, counts=rows, update_parts={**parts, "optimiser": 1.0}))
    assert "64 forwards of 1 row per update; with their losses and backward they take 70 %" in finding.evidence
    assert finding.expected_gain == pytest.approx(expected_gain(0.7, 16))
    batch = Counts(env_steps=1000, env_calls=1000, updates=100, update_forwards=200, batch_size=32)
    assert judge("UPDATE003", made({"update": 8.0}, counts=batch, update_parts=parts)) is None


def test_a_target_that_records_gradients_is_counted() -> None:
    costly = Counts(env_steps=1000, env_calls=1000, updates=100, unneeded_grad_forwards=100)
    finding = found("UPDATE004", made({"update": 8.0}, counts=costly, update_parts={"optimiser": 2.0}))
    assert finding.share == pytest.approx(0.6)
    assert finding.expected_gain == pytest.approx(expected_gain(0.6, 1.35))
    assert judge("UPDATE004", made({"update": 8.0})) is None


PLAIN = Setup(layers=(4, 64, 64, 2), num_actions=2, network_kinds=("Linear", "ReLU"))


def dqn(updates: int, rows: int = 32, **others: int) -> Counts:
    return Counts(
        env_steps=1000, env_calls=1000, updates=updates, backwards=updates, update_forwards=2 * updates,
        batch_size=rows, parameter_tensors=6, parameters=4610, optimiser="Adam", **others,
    )  # fmt: skip


def test_too_many_updates_are_told_by_rows_learned_per_env_step() -> None:
    finding = found("UPDATE005", made({"update": 8.0}, counts=dqn(2000)))
    assert finding.kind == CHANGES_LEARNING
    assert finding.evidence == "2 updates of 32 rows per call of `step` (2 per env step) take 80 % of the loop."
    assert finding.expected_gain == pytest.approx(expected_gain(0.8, 4))
    assert judge("UPDATE005", made({"update": 8.0}, counts=dqn(1000))) is None  # one after each step: as usual
    assert judge("UPDATE005", made({"update": 8.0}, counts=dqn(2000, rows=4))) is None
    assert judge("UPDATE005", made({"update": 3.0}, counts=dqn(2000))) is None


def test_an_update_that_is_all_calls_is_told_by_its_arithmetic() -> None:
    """2 s for 250 updates: 8,000 microseconds for 8 x 32 x 4,610 operations, 9 microseconds of work."""
    finding = found(
        "UPDATE006", made({"update": 2.0}, counts=dqn(250), setup=PLAIN, update_parts={"forward": 0.5, "backward": 1.5})
    )
    assert (
        "An update of 4,610 parameters on 32 rows takes 8,000 microseconds, its arithmetic about 9.1"
        in finding.evidence
    )
    assert finding.kind == TO_ROUNDING
    assert finding.expected_gain == pytest.approx(expected_gain(0.2, 30))
    native = made(
        {"update": 0.0075}, counts=dqn(250), setup=PLAIN, update_parts={"forward": 0.0075}
    )  # 30 microseconds each
    assert judge("UPDATE006", native) is None


def test_a_policy_that_learns_from_rollouts_hands_over_acting_and_storing_too() -> None:
    """10 s: updates 4, of which 3 are forward and backward and 0.5 optimizer, the rest too small to doubt; acting 4."""
    counts = Counts(
        **{**vars(dqn(1_000)), "env_steps": 4_000, "env_calls": 4_000, "updates": 1_000, "update_bursts": 10}
    )
    parts = {"forward": 1.0, "backward": 2.0, "optimiser": 0.5, "rest": 0.5}
    trace = made({"update": 4.0, "act": 4.0}, counts=counts, setup=PLAIN, update_parts=parts)
    assert trace.learns_from_rollouts
    finding = found("UPDATE006", trace)
    assert finding.share == pytest.approx(0.8)
    assert "acts and keeps the rollout too: 80 %" in finding.evidence
    assert finding.expected_gain > found("UPDATE006", replace(trace, phases={**trace.phases, "act": 0.0})).expected_gain


def test_what_keeps_all_updates_is_valued_on_all_of_them_and_comes_first() -> None:
    trace = made({"update": 8.0}, counts=dqn(2000), setup=PLAIN, update_parts={"forward": 4.0, "backward": 4.0})
    assert found("UPDATE006", trace).share == pytest.approx(0.8)
    assert [one.rule for one in findings(trace)] == ["UPDATE006", "UPDATE005"]


def test_others_on_the_machine_do_not_make_an_update_slow() -> None:
    """Eight busy programs on two cores: of 8,000 microseconds 2,000 were this one's."""
    busy = {"cores": 2, "load_average": [8.0, 8.0, 8.0]}
    trace = made({"update": 2.0}, counts=dqn(250), update_parts={"backward": 2.0}, machine=busy, setup=PLAIN)
    words = "on 32 rows takes 8,000 microseconds (about 2,000 without the wait for a busy core), its arithmetic"
    assert words in found("UPDATE006", trace).evidence  # 8,000 stands in the table too


@pytest.mark.parametrize(("name", "finds"), [("Adam", True), ("Adam fused", False), ("RMSprop", False)])
def test_an_optimiser_that_could_be_fused_is_named(name: str, finds: bool) -> None:
    counts = Counts(env_steps=1000, env_calls=1000, updates=100, parameter_tensors=6, optimiser=name)
    trace = made({"update": 6.0}, counts=counts, update_parts={"optimiser": 3.0})
    assert (judge("UPDATE007", trace) is not None) == finds
    if finds:
        assert found("UPDATE007", trace).expected_gain == pytest.approx(expected_gain(0.3, 2.5, relief=0.0))
        assert found("UPDATE007", replace(trace, update_parts={"optimiser": 0.9})).expected_gain > 1.05
        assert judge("UPDATE007", replace(trace, update_parts={"optimiser": 0.6})) is None


def test_hundreds_of_tiny_parameters_are_found() -> None:
    parts = {"optimiser": 3.0}
    tiny = Counts(env_steps=1000, env_calls=1000, updates=100, parameter_tensors=300, parameters=300)
    finding = found("UPDATE008", made({"update": 6.0}, counts=tiny, update_parts=parts))
    assert "300 parameters lie in 300 tensors; what goes through them takes 60 %" in finding.evidence
    assert finding.expected_gain == pytest.approx(expected_gain(0.6, 10))
    assert found("UPDATE008", topology(300)).share == pytest.approx(0.15)
    large = Counts(env_steps=1000, env_calls=1000, updates=100, parameter_tensors=300, parameters=3_000_000)
    assert judge("UPDATE008", made({"update": 6.0}, counts=large, update_parts=parts)) is None


def test_float64_is_weighed_by_the_arithmetic_of_an_update() -> None:
    """100 updates of 60,000 microseconds, 4 x 12,000 of them arithmetic: 80 %, of which half is saved."""
    big = {"env_steps": 1000, "env_calls": 1000, "updates": 100, "batch_size": 1000, "parameters": 195_000}
    finding = found("UPDATE009", made({"update": 6.0}, counts=Counts(**big, double_parameters=195_000)))
    assert finding.kind == CHANGES_LEARNING
    assert finding.expected_gain == pytest.approx(expected_gain(0.6, 1 / 0.6))
    assert judge("UPDATE009", made({"update": 6.0}, counts=Counts(**big))) is None


def test_host_reads_in_the_update_are_found_above_a_few() -> None:
    lines = [line(80, 3.0, "update", "priorities[i] = error[i].item()")]
    finding = found("SYNC001", made({"update": 6.0}, calls=[call("Tensor.item", 80, "update", 640)], lines=lines))
    assert "64 host reads per update take 30 %" in finding.evidence
    assert finding.expected_gain == pytest.approx(expected_gain(0.3, 20))
    assert judge("SYNC001", made({"update": 6.0}, calls=[call("Tensor.item", 80, "update", 10)], lines=lines)) is None


def test_small_tensors_are_found_outside_the_update() -> None:
    lines = [line(80, 4.0, "store-and-sample", "reward = torch.tensor(reward)")]
    calls = [call("torch.tensor", 80, "store-and-sample", 500)]
    finding = found("SYNC002", made({"store-and-sample": 5.0}, calls=calls, lines=lines))
    assert "5 tensors are made per env step (most often with `torch.tensor`): 40 %" in finding.evidence
    assert finding.expected_gain == pytest.approx(expected_gain(0.4, 4))
    assert judge("SYNC002", made(calls=[call("torch.tensor", 80, "act", 100)], lines=lines)) is None
    acting = replace(line(90, 3.0, "act", "q = net(torch.from_numpy(obs))"), part="forward")
    calls.append(call("torch.from_numpy", 90, "act", 100))  # the tensor costs little there, the network the rest
    finding = found("SYNC002", made({"store-and-sample": 5.0}, calls=calls, lines=[*lines, acting]))
    assert "5 tensors are made per env step (most often with `torch.tensor`): 40 %" in finding.evidence
    assert COUNTED.env_steps == 100
