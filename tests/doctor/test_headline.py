"""What the doctor sells as speed: programs written as people write them, and what their report says first."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotloop.core import verdicts
from hotloop.diagnosis.diagnose import Diagnosis, diagnose
from hotloop.doctor.experiments import tried_ratio
from hotloop.doctor.finding import SPEED_TRIED, Finding, Rule, findings, together
from hotloop.doctor.recorder import order
from hotloop.doctor.rules import load_rules
from hotloop.doctor.trace import Counts, Experiment, Setup
from hotloop.doctor.views.against import compare_reports, require_report
from hotloop.doctor.views.report import report_json
from hotloop.doctor.views.summary import verdict
from tests.doctor.rule_traces import call, found, line, made
from tests.doctor.sample_trace import FINDINGS, make_trace

PROGRAMS = Path(__file__).parent / "programs"


def one_of(rule: str, diagnosis: Diagnosis) -> Finding:
    return next(one for one in diagnosis.findings if one.rule == rule)


@pytest.fixture(scope="module")
def snake() -> Diagnosis:
    return diagnose(PROGRAMS / "snake_like.py", seconds=6)  # storing is met by samples on a busy core too


@pytest.fixture(scope="module")
def q_loss() -> Diagnosis:
    return diagnose(PROGRAMS / "q_loss.py", seconds=3)


def learning_share(diagnosis: Diagnosis) -> float:
    return sum(map(diagnosis.trace.part_share, ("forward", "backward", "optimiser")))


def test_fewer_updates_are_not_sold_as_speed(snake: Diagnosis) -> None:
    changing = [one.rule for one in snake.findings if not one.keeps]
    assert changing == ["UPDATE005"]
    assert snake.findings[-1].rule == "UPDATE005", "what keeps the computation comes first"
    keeping = [one for one in snake.findings if one.keeps]
    headline, _, beside = snake.as_json()["verdict"].partition(" Beside it, ")
    assert f"{len(keeping)} findings that keep the computation would make it" in headline
    assert "(predicted, not tried" in headline
    assert "changes learning: ask `hotloop compare`." in beside


def test_what_keeps_all_updates_is_valued_on_all_of_them(snake: Diagnosis, q_loss: Diagnosis) -> None:
    for diagnosis in (snake, q_loss):
        assert one_of("UPDATE006", diagnosis).share >= learning_share(diagnosis)


def test_a_quarter_of_the_updates_is_asked_for_on_the_programs_own_line(snake: Diagnosis) -> None:
    finding = one_of("UPDATE005", snake)
    assert finding.before.strip() == "for _ in range(UPDATES):"
    assert finding.after == "for _ in range(max(1, UPDATES // 4)):"


def test_the_learner_has_the_programs_loss_and_inputs_and_leaves_open_what_was_not_seen(q_loss: Diagnosis) -> None:
    after = one_of("UPDATE006", q_loss).after
    assert 'loss="mse"' in after
    assert "learning_rate=0.00025" in after
    assert "obs [128, 152]" in after
    assert "target_every=..." in after, "by `data.copy_`, which no hook sees"
    assert "network stands for" in after or "# stand for your own: network" in after


@pytest.mark.parametrize(
    ("source", "loss"),
    [
        ("loss = F.mse_loss(a, b)", "mse"),
        ("loss = nn.SmoothL1Loss()(a, b)", "huber"),
        ("loss = F.smooth_l1_loss(a, b, beta=0.5)", ""),
        ("loss = F.smooth_l1_loss(", ""),
        ("loss = F.huber_loss(a, b)", ""),
        ("loss = (weight * F.mse_loss(a, b, reduction='none')).mean()", ""),
        ("loss = criterion(a, b)", ""),
    ],
)
def test_a_loss_is_told_only_where_its_line_says_all_of_it(source: str, loss: str) -> None:
    from hotloop.doctor.rules.updating import loss_of

    assert loss_of(made({"update": 5.0}, lines=[line(3, 1.0, "update", source)])) == loss


DQN = Counts(
    env_steps=1000, env_calls=1000, updates=250, backwards=250, update_forwards=500, batch_size=32, parameter_tensors=6,
    parameters=4610, optimiser="Adam",
)  # fmt: skip
PLAIN = Setup(layers=(4, 64, 2), num_actions=2, network_kinds=("Linear", "ReLU"))


@pytest.mark.parametrize(
    "changed",
    [
        {"network_kinds": ("LayerNorm", "Linear", "ReLU")},
        {"network_kinds": ("Linear", "ReLU", "Tanh")},
        {"network_kinds": ()},
        {"layers": (4, 64, 102)},  # a distribution of 51 values for each action
    ],
)
def test_nothing_is_promised_for_a_network_that_the_native_lane_does_not_read(changed: dict[str, Any]) -> None:
    def judged(setup: Setup) -> Finding | None:
        parts = {"forward": 0.5, "backward": 1.5}
        trace = made({"update": 2.0}, counts=DQN, setup=setup, update_parts=parts)
        return next((one for one in findings(trace, load_rules()) if one.rule == "UPDATE006"), None)

    assert judged(PLAIN) is not None
    assert judged(replace(PLAIN, **changed)) is None


def test_a_policy_that_samples_keeps_its_own_way_to_choose() -> None:
    counts = Counts(env_steps=1000, env_calls=1000, updates=100, act_forwards=1000, act_forwards_with_grad=1000)
    counts = replace(counts, update_forwards=200, backwards=100)
    own = line(7, 5.0, "act", "action = Categorical(logits=policy(obs)).sample()")
    finding = found("ACT001", made({"act": 5.0}, counts=counts, lines=[own]))
    assert "argmax" not in finding.after
    assert finding.after.endswith("with torch.no_grad():\n    action = Categorical(logits=policy(obs)).sample()")
    shared = [own, replace(own, phase="update")]
    assert "# where you choose actions" in found("ACT001", made({"act": 5.0}, counts=counts, lines=shared)).after


def test_shortest_paths_ask_for_the_attribute_rather_than_guess_one() -> None:
    networkx = pytest.importorskip("networkx")
    calls = [call("networkx.all_simple_paths", 5, "env", 100)]
    finding = found("ENV002", made({"env": 8.0}, calls=calls, lines=[line(5, 8.0, "env", "min(paths)")]))
    graph = networkx.Graph()
    graph.add_edge(0, 1, weight=2.0)
    with pytest.raises(KeyError):  # never silently another length
        exec(finding.after, {"graph": graph, "a": 0, "b": 1})
    assert "its length is a sum over edges" in finding.condition


def test_names_that_stand_nowhere_in_the_program_are_called_so() -> None:
    lines = [line(3, 6.0, "update", 'total = weights[f"{n}_to_{node}"]', "forward", "string-key")]
    counts = Counts(env_steps=1000, env_calls=1000, updates=100, parameter_tensors=300, parameters=300)
    after = found("UPDATE001", made({"update": 8.0}, lines=lines, counts=counts)).after
    assert after.startswith("# an example of other code than yours; graph, inputs, outputs, biases, obs stand for")


def test_the_whole_is_never_more_than_leaves_what_no_finding_touches() -> None:
    trace = replace(make_trace(), seconds=40.0, phases={"update": 39.0, "env": 1.0})
    found_here = [
        Finding(rule=f"UPDATE00{n}", share=0.97, evidence="", expected_gain=20.0, kind="identical") for n in (4, 7)
    ]
    assert together(found_here, trace) == pytest.approx(40.0)


def test_a_finding_is_tried_where_an_experiment_made_its_very_change() -> None:
    def experiment(name: str) -> Experiment:
        return Experiment(name=name, what="", kind="to rounding", ratio=1.5, low=1.4, high=1.6)

    def promise(code: str) -> Rule:
        made_up = Finding(share=0.4, evidence="seen.", expected_gain=1.3)
        rule = next(one for one in load_rules() if one.code == code)
        return replace(rule, judge=lambda trace: made_up)

    trace = replace(make_trace(), experiments=(experiment("fused optimizer"), experiment("logging and printing off")))
    fused, printing = (findings(trace, [promise(code)])[0] for code in ("UPDATE007", "LOG001"))
    assert (fused.tried, fused.measured_gain, fused.kind) == (SPEED_TRIED, 1.5, "to rounding")
    assert (printing.tried, printing.measured_gain) == ("not tried", None)  # the remedy prints less, not nothing
    assert tried_ratio(trace, "LOG001") is None
    assert "would make it 1.50x faster (speed tried here)" in verdict(trace, [fused])
    assert "(speed of 1 tried here, the others predicted" in verdict(trace, [fused, printing])


def test_doctor_and_recorder_have_the_words_of_all_verdicts() -> None:
    mine = (verdicts.IDENTICAL, verdicts.TO_ROUNDING, verdicts.CHANGES_LEARNING)  # those of a change that is tried
    assert mine == (order.IDENTICAL, order.TO_ROUNDING, order.CHANGES_LEARNING)
    assert {rule.kind for rule in load_rules()} == {*mine, verdicts.BUT_FOR_DRAWS}
    changing = {rule.code for rule in load_rules() if rule.kind == verdicts.CHANGES_LEARNING}
    assert changing == {"UPDATE005", "UPDATE009"}
    assert not any(rule.condition for rule in load_rules() if rule.code in changing)


def test_a_report_with_the_former_words_is_still_held_against() -> None:
    old = report_json(make_trace(), FINDINGS)
    for one in (*old["findings"], *old["experiments"]):
        one["kind"] = {"changes learning": "changes-learning"}.get(one["kind"], "exact")
        for new in ("condition", "tried", "measured_gain"):
            one.pop(new, None)
    assert compare_reports(require_report(json.dumps(old), "old.json"), make_trace()).rows
