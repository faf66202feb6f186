"""From run directories to the files and words that a person gets."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from tests.compare.synthetic_runs import make_arm, write_run

from hotloop.compare.jobs import Job, plan_jobs
from hotloop.compare.progress import CompareProgress
from hotloop.compare.report import Comparison, Question, collect, page, write_files
from hotloop.compare.table import as_rich

QUESTION = Question("hotloop compare a 'b|c' --seeds 2", "mean_return", 50.0, 2, workers=2, cores=4)


@pytest.fixture
def jobs(tmp_path: Path) -> list[Job]:
    arms = [make_arm("a", total_env_steps=200), make_arm("b|<i>[x]", total_env_steps=200)]
    for arm in arms:
        for seed in (0, 1):
            write_run(tmp_path / arm.folder / f"seed-{seed}", arm, seed, [10.0, 60.0 + 1_000 * seed])
    return plan_jobs(arms, 2, tmp_path)


def test_the_folder_holds_data_table_and_two_curves(jobs: list[Job], tmp_path: Path) -> None:
    write_files(collect(QUESTION, jobs), tmp_path)
    data = json.loads((tmp_path / "compare.json").read_text())
    assert data["schema"] == 1
    assert (data["workers"], data["cores"], data["reused"], data["failed"]) == (2, 4, 4, [])
    assert [arm["mean"] for arm in data["arms"]] == [560.0, 560.0]
    assert data["arms"][0]["runs"][1]["run"] == "a/seed-1"
    assert "env steps" in (tmp_path / "curve-env-steps.svg").read_text()
    assert "checkpoints not counted" in (tmp_path / "curve-seconds.svg").read_text()
    assert (tmp_path / "table.md").read_text().startswith("| arm | seeds | mean return [95 %] |")


def test_the_page_has_one_row_per_arm_the_command_and_how_to_read_it(jobs: list[Job]) -> None:
    text = page(collect(QUESTION, jobs))
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 4
    cells = [cell.strip() for cell in rows[2].split("|")[1:-1]]
    assert cells[:2] == ["a", "2"]
    assert cells[2].startswith("560.0 [-")  # t(1) is very wide
    assert cells[3:] == ["560.0 [60.0, 1,060]", "2/2", "200.0", "2.00", "2.00", "11.0", "100.0"]
    assert rows[3].startswith(r"| b\|&lt;i>[x] |")
    assert "```\nhotloop compare a 'b|c' --seeds 2\n```" in text
    assert "2 runs at once on 4 cores" in text
    assert "![mean_return against training time](curve-seconds.svg)" in text


def test_a_run_that_cannot_be_read_is_a_failed_one(jobs: list[Job]) -> None:
    (jobs[0].path / "result.json").write_text("{")
    comparison: Comparison = collect(QUESTION, jobs)
    assert [job.name for job in comparison.failed] == ["a, seed 0"]
    assert "not valid JSON" in comparison.as_data()["failed"][0]["error"]
    assert [len(summary.runs) for summary in comparison.summaries] == [1, 2]
    assert "- failed: a, seed 0" in page(comparison)


def test_the_table_on_a_terminal_shows_labels_and_intervals_as_they_are(jobs: list[Job]) -> None:
    console = Console(file=io.StringIO(), width=200)
    console.print(as_rich(collect(QUESTION, jobs).summaries, "mean_return", 50.0))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "b|<i>[x]" in text
    assert "560.0 [60.0, 1,060]" in text


def progress_of(jobs: list[Job], terminal: bool) -> tuple[CompareProgress, Console, list[float]]:
    console = Console(file=io.StringIO(), width=160, force_terminal=terminal, color_system=None)
    now = [0.0]
    return CompareProgress(jobs, "mean_return", console, lambda: now[0]), console, now


def test_progress_without_a_terminal_is_plain_lines(jobs: list[Job]) -> None:
    jobs[2].status = "running"
    jobs[3].status = "waiting"
    progress, console, now = progress_of(jobs, terminal=False)
    with progress:
        progress.watch()
        assert console.file.getvalue() == ""  # type: ignore[attr-defined]
        now[0] = 31.0
        progress.watch()
        jobs[2].status = "finished"
        jobs[3].status, jobs[3].error = "failed", "the env [broke]"
        progress.watch()
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines == [
        "a: 1/2 runs, 100% of env steps, best 1060; b|<i>[x]: 1/2 runs, 100% of env steps, best 1060",
        "finished a, seed 1 (a: 2/2 runs, 100% of env steps, best 1060)",
        "failed b|<i>[x], seed 1: the env [broke]",
    ]


def test_progress_on_a_terminal_is_a_live_table(jobs: list[Job]) -> None:
    jobs[3].status = "failed"
    progress, console, _ = progress_of(jobs, terminal=True)
    with progress:
        progress.watch()
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "b|<i>[x]" in text
    assert "2/2 runs" in text
    assert "1 failed" in text
