from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.comparison.arms import Arm, parse_arms
from hotloop.comparison.jobs import TrainingJob, default_folder, plan_jobs
from hotloop.core.children import HOTLOOP, own_child
from hotloop.core.errors import RunError
from hotloop.core.settings import as_tree
from hotloop.presets.registry import settings_from_argv
from tests.comparison.synthetic_runs import make_arm, write_run


def words_of(job: TrainingJob) -> tuple[str, ...]:
    """What `hotloop` is told; the launcher's own words stand around it."""
    begun = own_child(HOTLOOP)
    return job.command[4 : len(job.command) - len(begun) + 4]


def test_new_runs_are_trained_seed_by_seed(tmp_path: Path) -> None:
    jobs = plan_jobs([make_arm("a"), make_arm("b")], 2, tmp_path)
    assert [job.name for job in jobs] == ["a, seed 0", "b, seed 0", "a, seed 1", "b, seed 1"]
    words = words_of(jobs[2])
    assert words[:2] == ("train", "cartpole-dqn")
    assert words[-6:] == ("--seed", "1", "--run-dir", str(tmp_path / "a" / "seed-1"), "--json", "--quiet")


def test_a_finished_run_is_reused_and_an_unfinished_one_resumed(tmp_path: Path) -> None:
    arm = make_arm("a")
    write_run(tmp_path / "a" / "seed-0", arm, 0, [1.0])
    write_run(tmp_path / "a" / "seed-1", arm, 1, [1.0], finished=False)
    done, stopped, new = plan_jobs([arm], 3, tmp_path)
    assert (done.status, done.reused, done.command) == ("finished", True, ())
    assert stopped.status == "waiting"
    assert words_of(stopped)[:3] == ("resume", str(tmp_path / "a" / "seed-1"), "--trust")
    assert words_of(new)[0] == "train"


def test_trust_and_place_do_not_make_another_run(tmp_path: Path) -> None:
    write_run(tmp_path / "a" / "seed-0", make_arm("a"), 0, [1.0])
    (job,) = plan_jobs([make_arm("a", trust=True, run_dir="elsewhere", seed=7)], 1, tmp_path)
    assert job.reused


@pytest.mark.parametrize(
    ("settings", "seed", "expected"),
    [({"gamma": 0.5}, 0, "gamma 0.99 there, 0.5 now"), ({}, 3, "seed 3 there, 0 now")],
)
def test_a_run_with_other_settings_is_refused_by_name(
    settings: dict[str, float], seed: int, expected: str, tmp_path: Path
) -> None:
    write_run(tmp_path / "a" / "seed-0", make_arm("a"), seed, [1.0])
    with pytest.raises(RunError, match=expected):
        plan_jobs([make_arm("a", **settings)], 1, tmp_path)


def test_an_env_in_a_file_is_the_same_env_from_every_folder(run_folder: Path) -> None:
    typed = [as_tree(settings_from_argv("cartpole-dqn", ["--env.id", name])) for name in ("my.py:Env", "./my.py:Env")]
    assert typed[0] == typed[1]
    assert typed[0]["env"]["id"] == f"{run_folder.resolve()}/my.py:Env"


def test_the_default_folder_follows_from_what_is_learned() -> None:
    first = default_folder([make_arm("a"), make_arm("b", gamma=0.5)])
    assert first == default_folder([make_arm("a", seed=3, trust=True), make_arm("b", gamma=0.5)])
    assert first != default_folder([make_arm("a"), make_arm("b", gamma=0.6)])
    assert first.name.startswith("compare-a-b-")


def arms_of(*texts: str) -> list[Arm]:
    return parse_arms(texts, [])


def test_finished_runs_are_an_arm_by_run_by_folder_or_by_the_comparison_they_came_from(run_folder: Path) -> None:
    for label, gamma in (("b", 0.9), ("a", 0.8)):
        for seed in (1, 0):
            write_run(Path("old") / label / f"seed-{seed}", make_arm(label, gamma=gamma), seed, [1.0])
    (one,) = arms_of("old/a/seed-1")
    assert (one.label, one.runs) == ("seed-1", (Path("old/a/seed-1"),))
    (several,) = arms_of("mine=old/a/seed-1 old/a/seed-0")
    assert (several.label, several.runs) == ("mine", (Path("old/a/seed-0"), Path("old/a/seed-1")))
    assert [arm.label for arm in arms_of("old")] == ["a", "b"]
    (Path("old") / "compare.json").write_text('{"arms": [{"label": "b"}, {"label": "a"}]}')
    first, second = arms_of("old")
    assert (first.label, second.label) == ("b", "a")
    assert first.settings["gamma"] == 0.9
    jobs = plan_jobs([first, make_arm("new")], 1, Path("out"))
    assert [(job.name, job.status) for job in jobs] == [
        ("b, seed 0", "finished"),
        ("b, seed 1", "finished"),
        ("new, seed 0", "waiting"),
    ]


def test_a_named_run_that_is_not_finished_is_told_and_the_others_count(run_folder: Path) -> None:
    write_run(Path("old/seed-0"), make_arm("a"), 0, [1.0])
    write_run(Path("old/seed-1"), make_arm("a"), 1, [1.0], finished=False)
    done, stopped = plan_jobs(arms_of("old"), 0, Path("out"))
    assert (done.status, stopped.status) == ("finished", "failed")
    assert "hotloop resume old/seed-1" in stopped.error


def test_runs_that_are_no_seeds_of_one_arm_are_refused(run_folder: Path) -> None:
    write_run(Path("old/one"), make_arm("a"), 0, [1.0])
    write_run(Path("old/two"), make_arm("a", gamma=0.5), 1, [1.0])
    write_run(Path("twice/one"), make_arm("a"), 3, [1.0])
    write_run(Path("twice/two"), make_arm("a"), 3, [1.0])
    Path("empty").mkdir()
    for text, expected in (("old", "differ in gamma"), ("twice", "the same seed, 3"), ("empty", "holds no run")):
        with pytest.raises(RunError, match=expected):
            arms_of(text)
    with pytest.raises(RunError, match="without settings"):
        arms_of("old/one --gamma 0.5")


def test_a_finished_run_of_the_same_settings_and_seed_is_found_elsewhere(tmp_path: Path) -> None:
    arm = make_arm("a", gamma=0.5)
    write_run(tmp_path / "compare-old" / "other-label" / "seed-0", arm, 0, [1.0])
    write_run(tmp_path / "alone", arm, 1, [1.0])
    write_run(tmp_path / "unfinished", arm, 2, [1.0], finished=False)
    write_run(tmp_path / "another", make_arm("a"), 3, [1.0])
    jobs = plan_jobs([arm], 4, tmp_path / "compare-new", reuse=tmp_path)
    assert [job.status for job in jobs] == ["finished", "finished", "waiting", "waiting"]
    assert jobs[1].path == tmp_path / "alone"
    assert all(job.status == "waiting" for job in plan_jobs([arm], 4, tmp_path / "compare-new"))
