"""Which differences between two recordings are believed."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.core.errors import HotloopError
from hotloop.doctor.trace import Counts
from hotloop.doctor.views import compare_reports, report_json, require_report
from hotloop.doctor.views.against_rows import LOOP, paired_variance, ratio_interval, windowed
from tests.doctor.sample_trace import LINES, make_timeline, make_trace, slowed


def by_name(comparison):
    return {row["what"]: row for row in comparison.rows}


@pytest.fixture
def old():
    return json.loads(json.dumps(report_json(make_trace(), [])))


def test_a_recording_held_against_itself_is_the_same(old):
    comparison = compare_reports(old, make_trace())
    assert {row["verdict"] for row in comparison.rows} == {"same"}
    assert {round(row["ratio"], 6) for row in comparison.rows} == {1.0}
    assert not comparison.exceeds(0.9)


def test_a_slower_phase_is_named_with_its_interval(old):
    rows = by_name(compare_reports(old, slowed(1.6)))
    update = rows["phase update"]
    assert (update["old"], update["new"]) == (pytest.approx(1_000.0), pytest.approx(1_600.0, rel=0.01))
    assert update["ratio"] == pytest.approx(1.6, rel=0.01)
    assert 1.5 < update["low"] < 1.6 < update["high"] < 1.7
    assert update["verdict"] == "slower"
    assert rows["phase env"]["verdict"] == "same"
    assert rows["loop"]["ratio"] == pytest.approx(1.3, rel=0.01)  # 52 s for 40 s
    assert rows["loop"]["verdict"] == "slower"


def test_a_faster_phase_is_told_too(old):
    assert by_name(compare_reports(old, slowed(0.5)))["phase update"]["verdict"] == "faster"


def test_a_difference_within_the_variation_of_the_slices_is_not_believed():
    old = report_json(make_trace(), [])
    row = by_name(compare_reports(old, slowed(1.05, swing=0.5)))["phase update"]
    assert row["ratio"] == pytest.approx(1.05, rel=0.01)
    assert row["low"] < 1 < row["high"]
    assert row["verdict"] == "same"


def test_what_is_allowed_is_a_ratio_of_the_whole_loop(old):
    assert compare_reports(old, slowed(1.6)).exceeds(1.29)  # 52 s for 40 s
    assert not compare_reports(old, slowed(1.6)).exceeds(1.31)
    doubled = compare_reports(old, slowed(2.0, "other"))  # twice as slow, but 1 s of 40 s
    assert by_name(doubled)["phase other"]["verdict"] == "slower"
    assert by_name(doubled)["phase other"]["adds"] == pytest.approx(1 / 40, rel=0.01)
    assert not doubled.exceeds(1.03)


def test_a_line_is_known_by_its_text_when_code_above_it_moves_it(old):
    moved = tuple(replace(line, where=line.where.replace(":101", ":140")) for line in LINES)
    rows = by_name(compare_reports(old, make_trace(lines=moved)))
    assert rows["line train.py:140"]["ratio"] == pytest.approx(1.0)
    assert rows["line train.py:140"]["source"] == "loss.backward()"


def test_a_line_seen_in_few_samples_needs_a_greater_difference(old):
    fine = (*LINES, replace(LINES[0], where="train.py:9", source="x", seconds=0.002))  # one sample is 2 ms
    before = report_json(make_trace(lines=fine), [])
    coarse = report_json(make_trace(stacks=()), [])  # the cheapest line, 1.6 s, is taken for one sample
    slow = slowed(1.3)
    sure = by_name(compare_reports(before, replace(slow, lines=(*slow.lines, fine[-1]))))["line train.py:101"]
    unsure = by_name(compare_reports(coarse, replace(slow, stacks=())))["line train.py:101"]
    assert (sure["verdict"], unsure["verdict"]) == ("slower", "same")
    assert unsure["high"] > sure["high"]


def test_a_phase_that_was_not_there_before_is_slower_without_a_ratio(old):
    evaluating = tuple(
        replace(p, phases=p.phases | {"evaluate": 0.2}, seconds=p.seconds + 0.2) for p in make_timeline()
    )
    trace = make_trace(phases=make_trace().phases | {"evaluate": 8.0}, seconds=52.0, timeline=evaluating)
    row = by_name(compare_reports(old, trace))["phase evaluate"]
    assert (row["old"], row["new"], row["ratio"], row["low"]) == (0.0, pytest.approx(400.0), None, None)
    assert row["verdict"] == "slower"
    back = by_name(compare_reports(report_json(trace, []), make_trace()))["phase evaluate"]
    assert (back["ratio"], back["verdict"]) == (0.0, "faster")


def test_a_longer_recording_is_cut_so_that_its_warm_up_weighs_the_same():
    """The first 10 slices make no updates; the newer recording goes on for twice as long."""
    warm_up = [
        replace(part, phases=part.phases | {"update": 0.0}, seconds=part.seconds / 2) for part in make_timeline()
    ]
    learning = list(make_timeline())
    short, long = warm_up[:10] + learning[10:], warm_up[:10] + learning[10:] + learning
    old = report_json(make_trace(timeline=tuple(short)), [])
    new = make_trace(timeline=tuple(long), counts=replace(make_trace().counts, env_steps=40_000))
    rows = by_name(compare_reports(old, new))
    assert rows["phase update"]["ratio"] == pytest.approx(1.0, rel=1e-3)
    assert rows["loop"]["ratio"] == pytest.approx(1.0, rel=1e-3)


def report_of(env_steps, seconds):
    return {"timeline": {"env_steps": env_steps, "seconds": seconds, "phases": {"env": [one / 2 for one in seconds]}}}


def test_both_recordings_are_cut_into_the_same_windows_by_hand():
    old = report_of([10, 10, 10], [1.0, 2.0, 4.0])
    new = report_of([5, 5, 5, 5], [1.0, 1.0, 3.0, 1.0])
    costs = windowed(old, new, "env_steps")  # 20 env steps in common, which are 2 slices of the old
    assert costs[0][LOOP].tolist() == [1e5, 2e5]  # 1 s over 10, 2 s over 10
    assert costs[1][LOOP].tolist() == [2e5, 4e5]
    assert costs[1]["env"].tolist() == [1e5, 2e5]


def test_a_slower_machine_is_suspected_where_everything_is_slower(old):
    phases = {name: 1.5 * seconds for name, seconds in make_trace().phases.items()}
    slices = [
        replace(part, seconds=1.5 * part.seconds, phases={name: 1.5 * value for name, value in part.phases.items()})
        for part in make_timeline()
    ]
    machine = make_trace().machine | {"load_average": [4.5, 1.0, 1.0]}
    trace = make_trace(phases=phases, seconds=66.0, timeline=tuple(slices), machine=machine)
    assert compare_reports(old, trace).notes == (
        "the load average was 0.5, is 4.5: the machine may have had other work",
        "every phase is slower by a like factor: that looks like the machine rather than the code",
    )


def test_recordings_too_short_for_an_interval_are_not_judged():
    old = report_json(make_trace(timeline=make_timeline()[:2]), [])
    rows = by_name(compare_reports(old, slowed(3.0)))
    assert rows["loop"]["low"] is None
    assert rows["loop"]["verdict"] == "same"


def test_without_env_steps_costs_are_per_update():
    trace = make_trace(counts=Counts(updates=5_000), timeline=[replace(part, env_steps=0) for part in make_timeline()])
    loop = compare_reports(report_json(trace, []), trace).rows[0]
    assert (loop["unit"], loop["old"]) == ("update", pytest.approx(8_000.0))


def test_rows_are_json(old):
    assert (
        json.loads(json.dumps(compare_reports(old, slowed(1.6)).as_json(), allow_nan=False))["rows"][0]["what"]
        == "loop"
    )


def test_what_else_differs_is_said(old):
    other = make_trace(
        machine=make_trace().machine | {"torch": "2.9.0"}, counts=replace(make_trace().counts, env_steps=9)
    )
    assert compare_reports(old, make_trace()).notes == ()
    assert compare_reports(old, other).notes == (
        "torch was 2.8.0+cpu, is 2.9.0",
        "compared over the first 9 env steps; the longer recording has 20,000",
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no JSON"),
        ("[" * 200_000 + "]" * 200_000, "is no JSON"),
        ("[1]", "it has no `schema`"),
        ("{}", "it has no `schema`"),
        ('{"schema": 99}', "has schema 99, expected 1"),
        ('{"schema": 1}', "`phases` is missing"),
    ],
)
def test_a_file_that_is_no_report_is_refused_with_a_hint(text, words):
    with pytest.raises(HotloopError, match="old.json") as raised:
        require_report(text, "old.json")
    assert words in raised.value.message
    assert raised.value.hint


@pytest.mark.parametrize(
    "damage",
    [{"timeline": {}}, {"lines": [1]}, {"phases": {"update": 3}}, {"counts": {"env_steps": "many"}}, {"machine": 3}],
)
def test_a_damaged_report_is_refused(old, damage):
    with pytest.raises(HotloopError):
        compare_reports(old | damage, make_trace())


def test_a_written_report_is_read_back(old):
    assert require_report(json.dumps(old), "old.json") == old


def test_the_variance_of_a_paired_ratio_by_hand():
    # R = 12 / 6 = 2; n - R o is -1, 0, 1: 2 over k (k - 1) = 6, over (R mean o)^2 = 16.
    assert paired_variance(np.array([1.0, 2.0, 3.0]), np.array([1.0, 4.0, 7.0])) == pytest.approx(2 / 6 / 16)
    assert paired_variance(np.array([1.0, 0.0, 3.0]), np.array([2.0, 0.0, 6.0])) == 0.0
    assert paired_variance(np.array([1.0, 2.0]), np.array([1.0, 2.0])) == math.inf


def test_the_interval_of_a_ratio_by_hand():
    low, high = ratio_interval(2.0, 0.01, 10**9)
    assert low == pytest.approx(2 / math.exp(1.96 * 0.1), rel=1e-3)
    assert high == pytest.approx(2 * math.exp(1.96 * 0.1), rel=1e-3)
    assert ratio_interval(2.0, math.inf, 5) is None


@given(st.integers(0, 2**32 - 1), st.floats(0.5, 2.0))
def test_the_interval_holds_the_true_ratio_about_as_often_as_it_says(seed, ratio):
    generator = np.random.default_rng(seed)
    old = generator.lognormal(0.0, 0.2, (200, 24))
    new = ratio * generator.lognormal(0.0, 0.2, (200, 24))
    ends = [ratio_interval(b.sum() / a.sum(), paired_variance(a, b), 24) for a, b in zip(old, new, strict=True)]
    assert np.mean([low <= ratio <= high for low, high in ends]) > 0.88  # 95 % of 200, less 4 deviations
