"""Whole DQN runs: what the result says, when a run ends, kills, evaluation of Gymnasium's envs."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import hotloop
from hotloop.api import settings_of
from hotloop.runs.directory import Run
from tests.loop.small_runs import DQN, Interrupt, WholeRuns, rows
from tests.loop.small_runs import small as small_run


def small(tmp_path: Path, name: str = "run", **overrides: Any) -> hotloop.DQNSettings:
    return small_run("dqn", tmp_path, name, **overrides)


def test_the_result_says_what_was_done(whole_run: WholeRuns) -> None:
    result = whole_run("dqn")
    assert result["env_steps"] == 1_200
    assert result["updates"] == 1_200 - 200  # one per env step, those of the warm-up skipped
    assert result["evaluation"]["episodes"] == 5
    assert sum(phase["share"] for phase in result["phases"].values()) == pytest.approx(1.0)
    assert sum(phase["seconds"] for phase in result["phases"].values()) == pytest.approx(result["seconds"], rel=1e-3)
    assert {"act", "env", "store", "sample", "update", "log", "evaluate", "checkpoint"} <= set(result["phases"])


def test_updates_per_env_step_means_the_same_with_any_number_of_envs(tmp_path: Path) -> None:
    for num_envs in (1, 7, 16):
        settings = small(tmp_path, f"n{num_envs}", env={"num_envs": num_envs}, updates_per_env_step="3/10")
        result = hotloop.train(settings)
        assert result["updates"] == result["env_steps"] * 3 // 10 - 200 * 3 // 10


def test_total_episodes_ends_a_run(tmp_path: Path) -> None:
    result = hotloop.train(small(tmp_path, total_episodes=9))
    assert 9 <= result["episodes"] < 9 + 8
    assert result["env_steps"] < 1_200


def test_a_checkpoint_at_every_iteration_leaves_nothing_to_sample_and_the_run_goes_on(tmp_path: Path) -> None:
    settings = small(tmp_path, env={"id": "CartPole-v1", "num_envs": 8}, n_step=3, checkpoint={"every": 8})
    assert hotloop.train(settings)["env_steps"] == 1_200


def test_a_killed_run_resumes_bit_identical(tmp_path: Path) -> None:
    """SIGKILL at three moments that nobody chose; each resume is a process of its own and killed again until the last.
    Of other families and envs in `tests/reliability/test_kills.py`, from a process that is warm."""
    settings = {"env": {"id": "cartpole", "num_envs": 2}, "total_env_steps": 6_000, "checkpoint": {"every": 500}}
    whole = hotloop.train(small(tmp_path, "whole", **settings))
    run_dir = tmp_path / "killed"
    program = (
        "import hotloop, json, sys\n"
        "tree = json.loads(sys.argv[1])\n"
        "if sys.argv[2] == 'train': hotloop.train(hotloop.preset('cartpole-dqn', **tree))\n"
        "else: hotloop.resume(tree['run_dir'])\n"
    )
    tree = json.dumps({**DQN, **settings, "run_dir": str(run_dir)})
    for verb, events in (("train", 12), ("resume", 24), ("resume", 40)):
        process = subprocess.Popen([sys.executable, "-c", program, tree, verb])
        while process.poll() is None and _lines(run_dir / "events.jsonl") < events:
            time.sleep(0.005)
        process.kill()
        process.wait()
    assert not (run_dir / "result.json").exists(), "the run was finished before it could be killed"
    assert hotloop.resume(run_dir)["digest"] == whole["digest"]
    assert rows(run_dir) == rows(whole["run"])


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_settings_are_stored_as_they_were_resolved(whole_run: WholeRuns) -> None:
    run = Path(whole_run("dqn")["run"])
    asked = dataclasses.replace(small(run.parent, run.name), trust=False)
    assert settings_of(Run.open(run), trust=False) == asked


FOREIGN = {
    "total_env_steps": 2_000,
    "env": {"id": "CartPole-v1", "max_episode_steps": 20, "num_envs": 4},
    "evaluation": {"every": 0, "episodes": 0, "final_episodes": 0},
    "checkpoint": {"every": 700},
}


def test_a_gymnasium_run_is_evaluated_for_a_tenth_of_its_env_steps_and_resumes_exactly(tmp_path: Path) -> None:
    """200 env steps, half of them for periodic evaluations of five episodes of up to 20."""
    whole = hotloop.train(small(tmp_path, "whole", **FOREIGN))
    assert 100 < whole["evaluation_env_steps"] <= 200
    judged = [row for row in rows(whole["run"]) if row["event"] == "evaluation"]
    assert len(judged) < 20
    assert all(row["episodes"] >= 5 for row in judged[:-1])
    with pytest.raises(ZeroDivisionError):
        hotloop.train(small(tmp_path, "cut", **FOREIGN), progress=Interrupt(480))
    resumed = hotloop.resume(tmp_path / "cut")
    assert resumed["digest"] == whole["digest"]
    assert resumed["evaluation_env_steps"] == whole["evaluation_env_steps"]
    assert rows(tmp_path / "cut") == rows(tmp_path / "whole")


def test_an_interval_that_is_set_is_kept_in_a_gymnasium_run(tmp_path: Path) -> None:
    plan = {"every": 500, "episodes": 6, "final_episodes": 7}
    result = hotloop.train(small(tmp_path, **FOREIGN | {"evaluation": plan}))
    judged = [row for row in rows(result["run"]) if row["event"] == "evaluation"]
    assert [(row["env_steps"], row["episodes"]) for row in judged] == [(500 * k, 6) for k in (1, 2, 3, 4)]
    assert result["evaluation"]["episodes"] == 7
    assert result["evaluation_env_steps"] > 200
