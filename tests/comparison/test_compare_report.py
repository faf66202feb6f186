"""From run directories to the files and words that a person gets."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from hotloop.comparison.jobs import TrainingJob, plan_jobs
from hotloop.comparison.page import as_html
from hotloop.comparison.progress import CompareProgress
from hotloop.comparison.report import (
    CURVES,
    Comparison,
    Question,
    as_page,
    collect,
    notes,
    parse_target,
    with_part,
    write_files,
    write_part,
    write_table,
)
from hotloop.comparison.verdict_text import arm_rows
from hotloop.core.errors import SettingsError
from hotloop.render.tables import as_rich
from tests.comparison.synthetic_runs import make_arm, write_run

QUESTION = Question("hotloop compare a 'b|c' --seeds 2", "mean_return", 50.0, 2, workers=2, cores=4)


@pytest.fixture
def jobs(tmp_path: Path) -> list[TrainingJob]:
    arms = [make_arm("a", total_env_steps=200), make_arm("b|<i>[x]", total_env_steps=200)]
    for arm in arms:
        for seed in (0, 1):
            write_run(tmp_path / arm.folder / f"seed-{seed}", arm, seed, [10.0, 60.0 + 1_000 * seed])
    return plan_jobs(arms, 2, tmp_path)


def page(comparison: Comparison) -> str:
    return as_page(comparison, {against: f"{name}.svg" for against, name in CURVES.items()})


def test_the_folder_holds_data_table_and_two_curves(jobs: list[TrainingJob], tmp_path: Path) -> None:
    write_files(collect(QUESTION, jobs), tmp_path)
    write_table(collect(QUESTION, jobs), tmp_path)
    data = json.loads((tmp_path / "compare.json").read_text())
    assert data["schema"] == 1
    there = data["circumstances"]
    assert (there["workers"], there["cores"], there["reused"], data["failed"]) == (2, 4, 4, [])
    assert [arm["mean"] for arm in data["arms"]] == [560.0, 560.0]
    assert there["arms"][0]["runs"][1]["run"] == str(tmp_path / "a" / "seed-1")
    assert {"python", "hotloop", "torch", "numba"} <= there["versions"].keys()
    assert "env steps" in (tmp_path / "curve-env-steps.svg").read_text()
    assert "checkpoints not counted" in (tmp_path / "curve-seconds.svg").read_text()
    assert (tmp_path / "table.md").read_text().startswith("| arm | seeds | mean return [95 %] | over the run [95 %] |")


def test_but_for_circumstances_the_data_does_not_depend_on_clock_command_or_folders(tmp_path: Path) -> None:
    """The same scores and env steps, trained elsewhere and twice as slowly."""
    texts = []
    for place, cores, factor in (("here", 2, 1.0), ("elsewhere/deep", 64, 2.0)):
        arms = [make_arm("a", total_env_steps=200), make_arm("b", total_env_steps=200, gamma=0.5)]
        for arm in arms:
            for seed in (0, 1):
                path = write_run(tmp_path / place / arm.folder / f"seed-{seed}", arm, seed, [10.0, 60.0 + seed])
                slower(path, factor)
        question = replace(QUESTION, command=f"hotloop compare {place}", cores=cores, workers=cores)
        data = collect(question, plan_jobs(arms, 2, tmp_path / place), tmp_path / place).as_data()
        clock = data.pop("circumstances")
        assert clock["arms"][1]["training_seconds"] == 2 * factor
        texts.append(json.dumps(data))
    assert texts[0] == texts[1]
    assert "second" not in texts[0]
    assert str(tmp_path) not in texts[0]


def slower(path: Path, factor: float) -> None:
    rows = [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]
    result = json.loads((path / "result.json").read_text())
    for row in [row for row in rows if "phases" in row]:
        row["seconds"] *= factor
        row["phases"] = {name: seconds * factor for name, seconds in row["phases"].items()}
    result["seconds"] *= factor
    result["env_steps_per_second"] /= factor
    for phase in result["phases"].values():
        phase["seconds"] *= factor
    (path / "events.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (path / "result.json").write_text(json.dumps(result))


def test_the_page_has_one_row_per_arm_the_command_and_how_to_read_it(jobs: list[TrainingJob]) -> None:
    text = page(collect(QUESTION, jobs))
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 4 + 3  # both arms, and one against the other
    cells = [cell.strip() for cell in rows[2].split("|")[1:-1]]
    assert cells[:2] == ["a", "2"]
    assert cells[2] == "560.0 [60.0, 1,060]"
    assert cells[3] == "285.0 [35.0, 535.0]"  # the middle of 10 and 60, and of 10 and 1,060
    assert cells[4:] == ["2/2", "200.0 [200.0, 200.0]", "2 [2, 2]", "100.0", "2", "11.0"]
    assert rows[3].startswith(r"| b\|&lt;i>[x] |")
    assert text.count("```\nhotloop compare a 'b|c' --seeds 2\n```") == 2  # under each figure
    assert r"**b\|&lt;i>[x] against a: as fast; too few seeds to judge learning" in text
    assert "2 runs at once on 4 cores" in text
    assert "![mean_return against training time](curve-seconds.svg)" in text


def test_a_run_that_cannot_be_read_is_a_failed_one(jobs: list[TrainingJob]) -> None:
    (jobs[0].path / "result.json").write_text("{")
    comparison: Comparison = collect(QUESTION, jobs)
    assert [job.name for job in comparison.failed] == ["a, seed 0"]
    assert "not valid JSON" in comparison.circumstances()["failed"][0]["error"]
    assert [len(summary.runs) for summary in comparison.summaries] == [1, 2]
    assert "- failed: a, seed 0" in page(comparison)


def test_the_table_on_a_terminal_shows_labels_and_intervals_as_they_are(jobs: list[TrainingJob]) -> None:
    console = Console(file=io.StringIO(), width=200)
    console.print(as_rich(arm_rows(collect(QUESTION, jobs).summaries, "mean_return", 50.0)))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "b|<i>[x]" in text
    assert "560.0 [60.0, 1,060]" in text


def progress_of(jobs: list[TrainingJob], terminal: bool) -> tuple[CompareProgress, Console, list[float]]:
    console = Console(file=io.StringIO(), width=160, force_terminal=terminal, color_system=None)
    now = [0.0]
    return CompareProgress(jobs, "mean_return", console, lambda: now[0]), console, now


def test_progress_without_a_terminal_is_plain_lines(jobs: list[TrainingJob]) -> None:
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


def test_progress_on_a_terminal_is_a_live_table(jobs: list[TrainingJob]) -> None:
    jobs[3].status = "failed"
    progress, console, _ = progress_of(jobs, terminal=True)
    with progress:
        progress.watch()
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "b|<i>[x]" in text
    assert "2/2 runs" in text
    assert "1 failed" in text


def test_a_part_of_a_page_is_put_in_its_place_and_what_people_wrote_stays(
    jobs: list[TrainingJob], tmp_path: Path
) -> None:
    file = tmp_path / "docs" / "mine.md"
    comparison = collect(QUESTION, jobs)
    write_part(comparison, file, "first")
    file.write_text(file.read_text() + "\nMy own words.\n")
    write_part(comparison, file, "second")
    before = file.read_text()
    write_part(comparison, file, "first")
    assert file.read_text() == before
    assert (
        before.index("<!-- compare first -->") < before.index("My own words.") < before.index("<!-- compare second -->")
    )
    assert "(first-env-steps.svg)" in before
    assert (file.parent / "second-seconds.svg").read_text().startswith("<svg")


def test_a_mark_without_its_end_is_a_mistake() -> None:
    with pytest.raises(SettingsError, match="has no"):
        with_part("<!-- compare a --> and no more", "a", "new")


def test_the_target_of_markdown_is_a_file_and_a_name() -> None:
    assert parse_target("docs/snake.md") == (Path("docs/snake.md"), "snake")
    assert parse_target("docs/snake.md#original") == (Path("docs/snake.md"), "original")
    for wrong in ("docs/snake", "docs/snake.md#../x"):
        with pytest.raises(SettingsError, match="FILE.md"):
            parse_target(wrong)


def test_the_html_page_is_complete_in_itself_and_labels_stay_text(jobs: list[TrainingJob]) -> None:
    jobs[3].status, jobs[3].error = "failed", "no <luck>"
    text = as_html(collect(QUESTION, jobs))
    assert "<i>[x]" not in text
    assert "b|&lt;i&gt;[x]" in text
    assert "no &lt;luck&gt;" in text
    assert text.count("data:image/svg+xml;base64,") == 2
    assert "http://" not in text
    assert "https://" not in text
    assert "<script" not in text
    assert "hotloop compare a &#x27;b|c&#x27; --seeds 2" in text
    assert "Too few seeds to judge learning" in text


def test_settings_that_differ_stand_with_their_values(tmp_path: Path) -> None:
    arms = [make_arm("a"), make_arm("b", gamma=0.5)]
    for arm in arms:
        write_run(tmp_path / arm.folder / "seed-0", arm, 0, [1.0, 2.0])
    comparison = collect(QUESTION, plan_jobs(arms, 1, tmp_path))
    assert comparison.differing_settings == {"gamma": [0.99, 0.5]}
    assert '<td data-label="b">0.5</td>' in as_html(comparison)
    assert comparison.as_data()["differing_settings"] == {"gamma": [0.99, 0.5]}


def test_without_a_threshold_the_first_arm_sets_it(jobs: list[TrainingJob]) -> None:
    comparison = collect(replace(QUESTION, threshold=None), jobs)
    assert comparison.threshold == 500.0  # 10 + 0.9 x 550 = 505
    assert comparison.margin == 28.0  # a twentieth of 550
    assert "nine tenths of what the first arm learned" in page(comparison)


def test_two_names_of_the_same_settings_are_told(jobs: list[TrainingJob]) -> None:
    comparison = collect(QUESTION, jobs)
    told = "a and b|<i>[x] have the same settings: they are one program under two names."
    assert told in notes(comparison)
    changed = replace(jobs[0].arm, settings={**jobs[0].arm.settings, "n_step": 5})
    apart = [replace(job, arm=changed) if job.arm.label == "a" else job for job in jobs]
    assert told not in notes(collect(QUESTION, apart))
