"""From paired stretches to ratios, verdicts in words, and the findings that they confirm: numbers that can be checked
by eye."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from hotloop.core.errors import SettingsError
from hotloop.doctor.experiments import (
    TrialInterval,
    confirmed,
    judge,
    judge_trials,
    measured_by,
    paired_ratio,
    summed_ratio,
)
from hotloop.doctor.finding import CHANGES_LEARNING, IDENTICAL, TO_ROUNDING, Finding
from hotloop.doctor.script.arms import ScriptArm, parse_arm, try_arm
from hotloop.doctor.trace import PROCESSOR, WALL, Experiment, Trace, Untried, read_trace, write_trace
from hotloop.doctor.views import render_screen
from hotloop.doctor.views.page import page
from hotloop.doctor.views.report import report_json
from hotloop.doctor.views.summary import experiment_text, tried_text, untried_text
from tests.doctor.sample_trace import make_trace


def pairs_of(*costs: tuple[float, float], seen: int = 20) -> list[tuple[TrialInterval, TrialInterval]]:
    """Milliseconds per env step as it is and changed, in stretches of 100 and 200 env steps."""
    return [
        (TrialInterval(100, one / 10, one / 20, seen), TrialInterval(200, other / 5, other / 5, seen))
        for one, other in costs
    ]


def test_the_median_of_pairs_is_not_moved_by_one_disturbed_stretch() -> None:
    costs = [(2.0, 1.0), (2.0, 1.0), (2.2, 1.0), (1.8, 1.0), (90.0, 1.0)]
    assert paired_ratio(costs).value == 2.0
    assert paired_ratio(costs).low == 1.8


def test_the_ratio_of_sums_sees_what_comes_in_some_stretches_only() -> None:
    costs = [(1.0, 1.0)] * 9 + [(11.0, 1.0)]
    assert paired_ratio(costs).value == 1.0
    found = summed_ratio(costs)
    assert found.value == 2.0  # 20 over 10
    assert found.low == 1.0  # it may come by chance
    assert found.high > 2.0
    assert summed_ratio(costs) == found  # seeded


def test_stretches_of_other_lengths_are_compared_per_env_step() -> None:
    found = judge("fused optimizer", "what", TO_ROUNDING, pairs_of(*[(3.0, 2.0)] * 6))
    assert isinstance(found, Experiment)
    assert (found.ratio, found.low, found.high) == pytest.approx((1.5, 1.5, 1.5))
    assert found.processor == pytest.approx((0.75, 0.75, 0.75))  # half a core as it is, a whole one changed
    assert found.pairs == 6
    assert measured_by(found, WALL).value == pytest.approx(1.5)
    assert measured_by(found, PROCESSOR).value == pytest.approx(0.75)


def test_too_few_pairs_and_too_rare_events_are_not_judged() -> None:
    few = judge("a", "what", IDENTICAL, pairs_of(*[(3.0, 2.0)] * 4))
    assert isinstance(few, Untried)
    assert few.reason == "not tried for long enough: 4 pairs"
    rare = pairs_of(*[(3.0, 2.0)] * 6, seen=0)
    rare[2] = (rare[2][0]._replace(seen=1), rare[2][1])
    found = judge("evaluation off", "what", IDENTICAL, rare)
    assert isinstance(found, Untried)
    assert "came once in 600 env steps" in found.reason
    untold = judge("a", "what", IDENTICAL, [(TrialInterval(0, 1.0, 1.0, 1), TrialInterval(5, 1.0, 1.0, 1))] * 9)
    assert isinstance(untold, Untried)  # no env step, no cost per env step


def test_what_the_recorder_leaves_is_read() -> None:
    told: dict[str, Any] = {"name": "control", "what": "nothing", "kind": IDENTICAL}
    measured = {**told, "reason": "", "stretches": [[[10, 1.0, 0.5, 20], [10, 0.5, 0.25, 20]]] * 5}
    one, other = judge_trials([measured, {**told, "reason": "nothing was printed", "stretches": []}])
    assert isinstance(one, Experiment)
    assert one.ratio == 2.0
    assert other == Untried(**told, reason="nothing was printed")


FUSED = Experiment(
    name="fused optimizer",
    what="one kernel",
    kind=TO_ROUNDING,
    ratio=1.3,
    low=1.2,
    high=1.4,
    processor=(1.1, 1.05, 1.2),
)
FINDING = Finding(share=0.3, evidence="It takes 30 %.", expected_gain=1.25, rule="UPDATE007", title="Not fused")


def test_an_experiment_names_the_finding_that_it_confirms() -> None:
    trace = make_trace(experiments=(FUSED,))
    assert confirmed(FUSED, [FINDING]) is FINDING
    assert confirmed(replace(FUSED, name="control"), [FINDING]) is None
    threads = replace(FUSED, name="threads=2")
    assert confirmed(threads, [replace(FINDING, rule="MACHINE001")]) is not None
    assert experiment_text(trace, FUSED, [FINDING]) == (
        "one kernel (confirms UPDATE007: predicted 1.25x, measured 1.30x)"
    )
    unsure = replace(FUSED, low=0.9)
    assert "neither confirms nor refutes" in experiment_text(trace, unsure, [FINDING])
    assert "does not confirm" in experiment_text(trace, replace(FUSED, ratio=0.8, low=0.7, high=0.9), [FINDING])
    assert experiment_text(trace, FUSED, []) == "one kernel"
    assert tried_text(trace, FINDING) == "`fused optimizer` 1.30x (1.20 to 1.40), predicted 1.25x"
    busy = replace(trace, clock=PROCESSOR)
    assert "measured 1.10x" in experiment_text(busy, FUSED, [FINDING])


UNTRIED = Untried(name="rendering off", what="what", kind=IDENTICAL, reason="nothing was rendered")


def shown(trace: Trace) -> str:
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(render_screen(trace, [FINDING]))
    return console.export_text()


def test_every_view_shows_what_was_tried_and_what_does_not_apply() -> None:
    trace = make_trace(experiments=(FUSED,), untried=(UNTRIED,))
    text, html, data = shown(trace), page(trace, [FINDING]), report_json(trace, [FINDING])
    for view in (text, html):
        assert "does not apply: nothing was rendered" in view
        assert "confirms UPDATE007" in view
    assert "1.10x" in text
    assert "processor 1.10x" in html
    assert "Measured: " in html
    (one,) = data["experiments"]
    assert (one["confirms"], one["predicted_gain"], one["processor"]) == ("UPDATE007", 1.25, [1.1, 1.05, 1.2])
    assert data["untried"] == [vars(UNTRIED)]
    assert untried_text(replace(UNTRIED, reason="not tried: no time")) == "not tried: no time"


def test_a_report_without_experiments_says_nothing_of_them() -> None:
    assert "experiments" not in shown(make_trace())  # thread counts alone stand in the full report


def test_a_trace_keeps_them(tmp_path: Any) -> None:
    trace = make_trace(experiments=(FUSED,), untried=(UNTRIED,))
    write_trace(trace, tmp_path / "trace.json")
    text = (tmp_path / "trace.json").read_text()
    assert read_trace(text) == trace
    old = {name: value for name, value in json.loads(text).items() if name != "untried"}
    assert read_trace(json.dumps(old)).untried == ()


def test_arms_are_arguments_with_a_name() -> None:
    assert parse_arm("envs=--num-envs 32 --name 'a b'") == ScriptArm("envs", ("--num-envs", "32", "--name", "a b"))
    for wrong in ("--num-envs 32", "envs", "envs=", "envs='"):
        with pytest.raises(SettingsError, match="--arm"):
            parse_arm(wrong)


def test_processes_take_turns_and_neither_side_is_always_first() -> None:
    asked: list[tuple[str, ...]] = []

    def run(more: Any, purpose: str) -> tuple[TrialInterval | None, str]:
        asked.append(tuple(more))
        return TrialInterval(100, 1.0 if more else 2.0, 0.5, 20), ""

    found = try_arm(ScriptArm("envs", ("--num-envs", "32")), run)
    assert [bool(more) for more in asked] == [False, True, True, False, False, True, True, False, False, True]
    assert isinstance(found, Experiment)
    assert (found.ratio, found.kind, found.pairs) == (2.0, CHANGES_LEARNING, 5)


def test_an_arm_that_the_script_does_not_understand_ends_at_once() -> None:
    asked = []

    def run(more: Any, purpose: str) -> tuple[TrialInterval | None, str]:
        asked.append(purpose)
        return (None, "SystemExit: 2") if more else (TrialInterval(100, 1.0, 1.0, 20), "")

    found = try_arm(ScriptArm("envs", ("--no-such",)), run)
    assert isinstance(found, Untried)
    assert found.reason == "the script with it: SystemExit: 2"
    assert len(asked) == 2
