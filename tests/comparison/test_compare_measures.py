from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hotloop.comparison.jobs import TrainingJob
from hotloop.comparison.measures import (
    MOST_POINTS,
    RunMeasures,
    before_updates,
    learning_curve,
    read_measures,
    training_seconds,
)
from hotloop.comparison.report import Question, collect, notes
from hotloop.comparison.summary import ArmSummary
from hotloop.core.errors import RunError, SettingsError
from tests.comparison.synthetic_runs import make_arm, write_run

ARM = make_arm()


def read(folder: Path, *rows: list[float]) -> list[RunMeasures]:
    arm = make_arm()
    return [
        read_measures(write_run(folder / f"seed-{seed}", arm, seed, scores), "mean_return")
        for seed, scores in enumerate(rows)
    ]


def test_a_run_is_judged_by_its_best_weights_and_timed_by_training_alone(tmp_path: Path) -> None:
    (run,) = read(tmp_path, [10.0, 60.0, 40.0])
    assert (run.score, run.last_score) == (60.0, 40.0)
    assert (run.seconds, run.training_seconds) == (14.0, 3.0)
    assert run.curve_env_steps.tolist() == [100, 200, 300]
    assert run.curve_seconds.tolist() == [1.0, 2.0, 3.0]
    assert run.reaches(40.0) == (200, 2.0)
    assert run.reaches(61.0) is None


def test_phases_may_be_seconds_or_tables() -> None:
    assert training_seconds({"seconds": 10.0, "phases": {"compile": 4.0, "env": 6.0}}) == 6.0
    assert training_seconds({"seconds": 10.0, "phases": {"checkpoint": {"seconds": 1.0}}}) == 9.0


def test_a_workloads_own_measure_can_be_asked_for(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", make_arm(), 0, [10.0, 60.0])
    assert read_measures(path, "mean_score").score == 6.0
    with pytest.raises(SettingsError, match="one of mean_return, mean_score"):
        read_measures(path, "mean_sore")


def test_a_run_without_its_files_is_a_run_error(tmp_path: Path) -> None:
    with pytest.raises(RunError):
        read_measures(write_run(tmp_path / "run", make_arm(), 0, [1.0], finished=False), "mean_return")


def test_an_arm_in_numbers(tmp_path: Path) -> None:
    runs = read(tmp_path, [10.0, 60.0], [70.0, 20.0], [10.0, 20.0])
    arm = ArmSummary(make_arm(), runs, threshold=50.0)
    data, clock = arm.as_data(), arm.circumstances()
    assert data["mean"] == 50.0
    assert data["mean_interval"][0] < 20.0 < 60.0 < data["mean_interval"][1]  # t(2) is wide
    assert data["iqm"] == pytest.approx((0.25 * 20 + 60 + 0.25 * 70) / 1.5)
    assert data["iqm_interval"] == [20.0, 70.0]
    assert data["area"] is None
    assert (data["reached"], data["final_reached"]) == (2, 2)
    assert (data["env_steps_to_threshold"], clock["seconds_to_threshold"]) == (200.0, 2.0)  # median of 100, 200, never
    assert (clock["seconds"], clock["training_seconds"], clock["env_steps_per_second"]) == (11.0, 2.0, 100.0)
    assert [run["env_steps_to_threshold"] for run in data["runs"]] == [200, 100, None]


def test_an_arm_without_runs_has_no_numbers() -> None:
    arm = ArmSummary(make_arm(), [], threshold=50.0)
    data = arm.as_data()
    assert (data["seeds"], data["mean"], data["mean_interval"], data["iqm"]) == (0, None, None, None)
    assert arm.circumstances()["seconds_to_threshold"] is None


def test_a_curve_is_the_mean_over_seeds_at_the_evaluations(tmp_path: Path) -> None:
    curve = learning_curve("a", read(tmp_path, [0.0, 10.0], [10.0, 30.0]), "env_steps")
    assert curve is not None
    assert curve.x.tolist() == [100.0, 200.0]
    assert curve.mean.tolist() == [5.0, 20.0]
    assert curve.low.tolist() == [0.0, 10.0]
    assert curve.high.tolist() == [10.0, 30.0]


def test_a_seed_that_ended_early_keeps_its_last_score(tmp_path: Path) -> None:
    curve = learning_curve("a", read(tmp_path, [0.0, 10.0, 20.0], [50.0]), "seconds")
    assert curve is not None
    assert len(curve.x) == MOST_POINTS
    assert (curve.x[0], curve.x[-1]) == (1.0, 3.0)
    assert (curve.mean[0], curve.mean[-1]) == (25.0, 35.0)
    assert (np.diff(curve.mean) > 0).all()


def test_one_seed_has_a_line_and_no_band(tmp_path: Path) -> None:
    curve = learning_curve("a", read(tmp_path, [1.0, 2.0]), "env_steps")
    assert curve is not None
    assert curve.low is None
    assert learning_curve("a", [], "env_steps") is None


def test_a_threshold_that_untrained_play_passes_times_nothing(tmp_path: Path) -> None:
    """Random play scores 22 before the first update; 20 is no threshold, 30 is one."""
    jobs = []
    for seed in range(2):
        path = write_run(tmp_path / f"seed-{seed}", ARM, seed, [40.0, 60.0])
        events = path / "events.jsonl"
        before = [
            {"event": "progress", "env_steps": 50, "updates": 0, "mean_return": 22.0},
            {"event": "progress", "env_steps": 150, "updates": 25, "mean_return": 35.0},
        ]
        events.write_text("".join(json.dumps(row) + "\n" for row in before) + events.read_text())
        jobs.append(TrainingJob(ARM, seed, path, (), status="finished"))
    assert read_measures(jobs[0].path, "mean_return").untrained_score == 22.0
    told = {limit: collect(Question("", "mean_return", limit, 2, 1, 1), jobs) for limit in (20.0, 30.0)}
    assert told[20.0].threshold is None
    assert "No time to 20 is told: play before any update scores 22 already." in notes(told[20.0])
    assert told[30.0].threshold == 30.0
    assert told[30.0].summaries[0].reached == [(100, 1.0), (100, 1.0)]


def test_a_point_before_the_first_update_reaches_nothing(tmp_path: Path) -> None:
    (run,) = read(tmp_path, [50.0, 10.0, 60.0])
    assert run.reaches(40.0) == (100, 1.0)
    lucky = replace(run, untrained_until=100)
    assert lucky.reaches(40.0) == (300, 3.0)


def test_where_no_update_was_counted_nothing_is_said_of_untrained_play() -> None:
    rows = [{"event": "progress", "env_steps": 50, "updates": 0, "mean_return": 22.0}]
    assert before_updates(rows, "mean_return") == {}
