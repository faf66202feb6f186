"""The JSON report and the Chrome trace: sums, shares, and nothing JSON does not know."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from hotloop.doctor.trace import Counts, Growth, Slice, Subject
from hotloop.doctor.views import chrome_trace, report_json
from hotloop.doctor.views.report import json_safe
from hotloop.doctor.views.summary import ending, merged, phase_rows, verdict
from hotloop.render.numbers import duration, interval, nice_ticks, number, percent, sparkline, times
from tests.doctor.sample_trace import FINDINGS, make_timeline, make_trace

KEYS = {"schema", "subject", "script_exit", "seconds", "machine", "phases", "update", "counts", "growth", "experiments"}
FINDING = {"rule", "title", "share", "evidence", "where", "remedy", "before", "after", "expected_gain", "kind", "lines"}
FINDING |= {"port", "takes_over", "condition", "tried", "measured_gain"}


@pytest.fixture
def report():
    return report_json(make_trace(), FINDINGS)


def test_the_report_has_the_promised_keys(report):
    assert KEYS | {"findings", "lines", "notes"} <= set(report)
    assert [set(finding) for finding in report["findings"]] == [FINDING] * 3


def test_phases_sum_to_the_seconds_and_the_update_to_its_phase(report):
    assert sum(phase["seconds"] for phase in report["phases"].values()) == pytest.approx(report["seconds"])
    assert sum(part["seconds"] for part in report["update"].values()) == report["phases"]["update"]["seconds"] == 20.0


def test_shares_are_of_the_loop_without_start_up(report):
    assert report["phases"]["update"]["share"] == 0.5  # 20 s of 40 s
    assert report["phases"]["start-up"] == {
        "seconds": 4.0,
        "share": 0.0,
        "us_per_env_step": None,
        "us_per_update": None,
    }
    assert sum(phase["share"] for phase in report["phases"].values()) == pytest.approx(1.0)


def test_costs_are_per_env_step_and_per_update(report):
    assert report["phases"]["update"]["us_per_env_step"] == 1_000.0  # 20 s over 20,000
    assert report["phases"]["update"]["us_per_update"] == 4_000.0  # 20 s over 5,000
    assert report["counts"]["env_steps_per_second"] == 500.0
    item = report["counts"]["calls"][0]
    assert (item["name"], item["per_env_step"], item["per_update"]) == ("Tensor.item", 8.0, 32.0)


def test_lines_come_dearest_first_with_their_share(report):
    assert [line["where"] for line in report["lines"]][:2] == ["train.py:101", "train.py:97"]
    assert report["lines"][0]["share"] == 9.0 / 40.0


def test_the_timeline_is_kept_in_few_columns_that_lose_no_time():
    many = tuple(part for part in make_timeline() for _ in range(10))
    report = report_json(make_trace(timeline=many), [])
    columns = report["timeline"]
    assert len(columns["seconds"]) == 100 == len(columns["phases"]["update"])  # 400 slices, joined by four
    assert sum(columns["seconds"]) == pytest.approx(400.0, rel=1e-4)
    assert sum(columns["env_steps"]) == 200_000


def test_nothing_that_json_does_not_know_gets_in():
    growth = Growth(over="run", what="env step", points=((0.0, math.nan),), ratio=math.inf)
    machine = {"threads": np.int64(3), "load": (math.nan, 0.5), "denormals": True, 4: None}
    text = json.dumps(report_json(make_trace(growth=(growth,), machine=machine), FINDINGS), allow_nan=False)
    assert json.loads(text)["machine"] == {"threads": "3", "load": [None, 0.5], "denormals": True, "4": None}
    assert json_safe(np.float64(2.5)) == 2.5


def test_an_empty_recording_is_reported_too():
    trace = make_trace(phases={"start-up": 44.0}, counts=Counts(), timeline=(), lines=(), stacks=(), calls=())
    report = report_json(trace, [])
    assert report["loop_seconds"] == 0.0
    assert report["verdict"] == "No env step was seen in 44.0 s, and no update was seen: there is no loop to judge."
    json.dumps(report, allow_nan=False)


def test_the_verdict_is_one_sentence_with_the_largest_phase_and_gain():
    start = "50 % of the loop is the update; "
    assert verdict(make_trace(), FINDINGS) == (
        start + "2 findings that keep the computation would make it 1.27x faster (predicted, not tried). "
        "Beside it, 1.62x that changes learning: ask `hotloop compare`."
    )
    assert verdict(make_trace(), FINDINGS[2:]) == (
        start + "the one finding that keeps the computation would make it 1.08x faster (predicted, not tried)."
    )
    assert verdict(make_trace(), []) == start + "nothing was found that could be taken out of it."


def test_the_ending_tells_a_crash_from_a_limit():
    crashed = Subject(kind="script", name="a.py", ending="crashed", exit_code=1, error="ValueError: no")
    assert ending(make_trace(subject=crashed)) == "crashed with code 1 (ValueError: no)"
    assert ending(make_trace(subject=replace(crashed, ending="finished", exit_code=0, error=""))) == "finished"


def test_phases_come_dearest_first_and_start_up_last():
    assert [row.name for row in phase_rows(make_trace())][:1] == ["update"]
    assert [row.name for row in phase_rows(make_trace())][-1] == "start-up"


def test_merged_slices_keep_every_count():
    one = Slice(start_seconds=0.0, seconds=1.0, env_steps=2, episodes=1, updates=3, phases={"env": 0.5})
    two = Slice(start_seconds=1.0, seconds=2.0, env_steps=4, episodes=0, updates=1, phases={"act": 1.5})
    assert merged([one, two], 1) == [
        Slice(start_seconds=0.0, seconds=3.0, env_steps=6, episodes=1, updates=4, phases={"env": 0.5, "act": 1.5})
    ]


def test_the_chrome_trace_is_complete_events_in_microseconds():
    events = chrome_trace(make_trace())["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X", "C"}
    assert all(event["ts"] >= 0 and event["pid"] == 1 for event in events)
    phases = [event for event in events if event["ph"] == "X" and event["tid"] == 1]
    assert sum(event["dur"] for event in phases) == pytest.approx(44e6)
    assert phases[0]["name"] == "start-up"
    assert phases[1]["ts"] == 4e6  # the loop begins where start-up ends
    ends = [event["ts"] + event["dur"] for event in phases]
    assert all(after["ts"] >= end - 1 for end, after in zip(ends, phases[1:], strict=False))  # one after another
    first = next(event for event in events if event["ph"] == "C" and event["name"] == "env steps/s")
    assert first["args"]["value"] == pytest.approx(500 / make_timeline()[0].seconds, abs=1e-3)
    json.dumps(events, allow_nan=False)


def test_the_chrome_trace_names_its_tracks():
    named = [event["args"]["name"] for event in chrome_trace(make_trace())["traceEvents"] if event["ph"] == "M"]
    assert named == ["hotloop doctor: train.py", "phases", "slices of the loop"]


def test_numbers_read_well():
    assert [percent(share) for share in (0.683, 0.0342, 1.0)] == ["68 %", "3.4 %", "100 %"]
    assert [number(value) for value in (12345.6, 123.4, 12.34, 1.234, 8.0, None)] == [
        "12,346",
        "123",
        "12.3",
        "1.23",
        "8",
        "-",
    ]
    assert [times(ratio) for ratio in (1.04, 2.081, 12.34, 1e9, None)] == ["1.04x", "2.08x", "12.3x", ">100x", "-"]
    assert [duration(seconds) for seconds in (0.0042, 31.26, 754)] == ["4.2 ms", "31.3 s", "12 min 34 s"]
    assert [interval(1.24, 1.38), interval(1.5, None), interval(None, None)] == ["[1.24, 1.38]", "[1.50, ]", ""]
    assert nice_ticks(0, 2360, 5) == [0, 500, 1000, 1500, 2000]
    assert nice_ticks(7, 7) == [7]
    assert sparkline([0, 7]) == "▁█"
