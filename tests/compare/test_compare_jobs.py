from __future__ import annotations

from pathlib import Path

import pytest
from tests.compare.synthetic_runs import make_arm, write_run

from hotloop.compare.jobs import default_folder, plan_jobs
from hotloop.core.errors import RunError


def test_new_runs_are_trained_seed_by_seed(tmp_path: Path) -> None:
    jobs = plan_jobs([make_arm("a"), make_arm("b")], 2, tmp_path)
    assert [job.name for job in jobs] == ["a, seed 0", "b, seed 0", "a, seed 1", "b, seed 1"]
    words = jobs[2].command[1:]
    assert words[:4] == ("-m", "hotloop", "train", "cartpole-dqn")
    assert words[-6:] == ("--seed", "1", "--run-dir", str(tmp_path / "a" / "seed-1"), "--json", "--quiet")


def test_a_finished_run_is_reused_and_an_unfinished_one_resumed(tmp_path: Path) -> None:
    arm = make_arm("a")
    write_run(tmp_path / "a" / "seed-0", arm, 0, [1.0])
    write_run(tmp_path / "a" / "seed-1", arm, 1, [1.0], finished=False)
    done, stopped, new = plan_jobs([arm], 3, tmp_path)
    assert (done.status, done.reused, done.command) == ("finished", True, ())
    assert stopped.status == "waiting"
    assert stopped.command[3:6] == ("resume", str(tmp_path / "a" / "seed-1"), "--trust")
    assert new.command[3] == "train"


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


def test_the_default_folder_follows_from_what_is_learned() -> None:
    first = default_folder([make_arm("a"), make_arm("b", gamma=0.5)])
    assert first == default_folder([make_arm("a", seed=3, trust=True), make_arm("b", gamma=0.5)])
    assert first != default_folder([make_arm("a"), make_arm("b", gamma=0.6)])
    assert first.name.startswith("compare-a-b-")
