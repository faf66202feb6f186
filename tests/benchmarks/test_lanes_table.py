"""What lanes' times mean for a run, on numbers that can be checked by eye; nothing is timed here."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from benchmarks import lane_times
from benchmarks.lane_times import LaneRow, LaneTime, break_even, draw_lanes, judge
from hotloop.proof.speed import Speed


def times(**microseconds):
    return {lane: LaneTime(value, 1.0, 1.0, 1.0) for lane, value in microseconds.items()}


def test_compiling_for_ten_seconds_is_repaid_by_a_hundred_thousand_updates_that_save_a_tenth_of_a_millisecond():
    assert break_even(times(eager=400.0, compiled=300.0), 10.0) == 100_000


def test_compiling_is_never_repaid_where_another_lane_is_as_fast():
    assert break_even(times(eager=400.0, compiled=100.0, native=20.0), 10.0) is None
    assert break_even(times(eager=400.0), None) is None


def test_a_short_run_is_cheapest_without_compiling_and_a_long_one_with_it():
    measured = times(eager=400.0, compiled=300.0)
    assert judge(1_000, "eager", "", measured, 10.0).agrees
    late = judge(1_000_000, "eager", "", measured, 10.0)  # 400 s against 10 + 300
    assert not late.agrees
    assert (late.cheapest, late.cost) == ("compiled", pytest.approx(400 / 310))


def test_a_choice_that_costs_a_twentieth_more_still_agrees():
    assert judge(10, "eager", "", times(eager=105.0, native=100.0), 0.0).agrees


def drawn(row):
    console = Console(width=200, file=io.StringIO())
    console.print(draw_lanes([row]))
    return console.file.getvalue()


def row():
    measured = times(eager=400.0, compiled=300.0)
    verdicts = [judge(updates, "eager", "a reason", measured, 10.0) for updates in (1_000, 1_000_000)]
    return LaneRow("net-b32", 8, measured, {"native": "it has no noisy layers"}, 10.0, verdicts)


def test_a_row_is_plain_json():
    data = json.loads(json.dumps(row().as_data()))
    assert set(data) == {"work", "k", "times", "refused", "compile_seconds", "verdicts", "break_even_updates"}
    assert data["break_even_updates"] == 100_000
    assert data["times"]["eager"]["microseconds"] == 400.0
    assert [verdict["agrees"] for verdict in data["verdicts"]] == [True, False]


def test_the_table_says_where_the_rule_is_wrong_and_who_refuses():
    text = drawn(row())
    assert "refuses" in text
    assert "1,000,000: eager, but compiled is 1.3x cheaper" in text


def test_every_lane_that_can_is_measured_and_the_rule_is_asked(monkeypatch):
    def measure(first, second, seconds):
        first()
        second()
        return Speed(4.0, 3.5, 4.5, 0.008, 0.002)

    monkeypatch.setattr(lane_times.speed, "measure", measure)
    monkeypatch.setattr(lane_times, "LANES", ("eager", "native"))
    work = lane_times._mlp(8, 4)
    measured = lane_times.measure_work(work, 8, 0.0, 0.0)
    assert measured.times["native"] == LaneTime(250.0, 4.0, 3.5, 4.5)  # 2 ms for 8 updates
    assert measured.times["eager"].microseconds == 1_000.0
    assert measured.compile_seconds is None
    assert [verdict.chosen for verdict in measured.verdicts] == ["native"] * 3


def test_a_network_that_native_refuses_is_measured_on_eager_alone(monkeypatch):
    monkeypatch.setattr(lane_times.speed, "measure", lambda first, second, seconds: Speed(1.0, 1.0, 1.0, 0.001, 0.001))
    monkeypatch.setattr(lane_times, "LANES", ("eager", "native"))
    measured = lane_times.measure_work(lane_times._mlp(8, 4, noisy=True), 1, 0.0, 0.0)
    assert set(measured.times) == {"eager"}
    assert "noisy" in measured.refused["native"]


def test_a_choice_that_cannot_run_disagrees():
    verdict = judge(10, "compiled", "", times(eager=400.0), 0.0)
    assert (verdict.agrees, verdict.cost) == (False, None)
    assert "10: compiled, which cannot run" in drawn(LaneRow("net", 1, times(eager=400.0), {}, None, [verdict]))
