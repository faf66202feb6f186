"""Whole runs: same seed same digest, resumed from anywhere same digest, and what the result says."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hotloop
from hotloop.core.errors import NonFiniteError, RunError, SettingsError
from hotloop.loop.running import RunStopped
from hotloop.runs.events import read_events

CLOCK_FIELDS = ("time", "seconds", "env_steps_per_second", "phases")
SMALL = {
    "total_env_steps": 1_200,
    "warmup_env_steps": 200,
    "batch_size": 16,
    "log_every": 100,
    "network": {"hidden": [16]},
    "checkpoint": {"every": 300},
    "evaluation": {"every": 400, "episodes": 4, "final_episodes": 5},
}


def small(tmp_path: Path, name: str = "run", **overrides: Any) -> hotloop.DQNSettings:
    tree = {**SMALL, "run_dir": str(tmp_path / name), **overrides}
    return hotloop.preset("cartpole-dqn", **tree)


def rows(run_dir: str | Path) -> list[dict[str, Any]]:
    """Event rows without what the clock decides."""
    return [
        {key: value for key, value in row.items() if key not in CLOCK_FIELDS}
        for row in read_events(Path(run_dir) / "events.jsonl")
    ]


def test_the_same_seed_gives_the_same_digest_and_another_seed_another(tmp_path: Path) -> None:
    first = hotloop.train(small(tmp_path, "a", seed=3))
    again = hotloop.train(small(tmp_path, "b", seed=3))
    other = hotloop.train(small(tmp_path, "c", seed=4))
    assert first["digest"] == again["digest"] != other["digest"]
    assert rows(first["run"]) == rows(again["run"])


def test_the_result_says_what_was_done(tmp_path: Path) -> None:
    result = hotloop.train(small(tmp_path))
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


def test_a_finished_run_returns_its_result_again(tmp_path: Path) -> None:
    result = hotloop.train(small(tmp_path))
    assert hotloop.resume(result["run"]) == result


def test_a_run_directory_in_use_is_not_taken_twice(tmp_path: Path) -> None:
    hotloop.train(small(tmp_path))
    with pytest.raises(RunError, match="resume"):
        hotloop.train(small(tmp_path))


def test_the_loaded_agent_is_the_best_one_and_acts_on_one_or_many(tmp_path: Path) -> None:
    result = hotloop.train(small(tmp_path))
    agent = hotloop.load(result["run"])
    obs = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    many = agent.act(obs)
    assert many.shape == (6,)
    assert [agent.act(row) for row in obs] == many.tolist()
    assert isinstance(agent.act([0.0, 0.1, 0.0, 0.1]), int)
    best = hotloop.evaluate(result["run"], episodes=5)
    assert best == hotloop.evaluate(result["run"], episodes=5)


class Interrupt:
    """A progress display that stops the run after so many iterations, by raising or by a signal."""

    def __init__(self, iterations: int, signal_number: int = 0) -> None:
        self.left = iterations
        self.signal_number = signal_number

    def say(self, text: str) -> None:
        pass

    def show(self, session: Any, timer: Any, row: dict[str, Any] | None = None) -> None:
        if row is not None:
            return
        self.left -= 1
        if self.left == 0 and self.signal_number:
            os.kill(os.getpid(), self.signal_number)
        elif self.left == 0:
            raise ZeroDivisionError


VARIANTS = {
    "plain": {},
    "n-step": {"n_step": 3},
    "prioritised": {"replay": {"prioritised": True}},
    "noisy": {"network": {"hidden": [16], "noisy": True}, "exploration": {"start": 0.0, "end": 0.0}},
    "gymnasium": {"env": {"id": "CartPole-v1", "num_envs": 2}, "n_step": 2},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_run_that_broke_off_and_was_resumed_ends_bit_identical(tmp_path: Path, variant: str) -> None:
    whole = hotloop.train(small(tmp_path, "whole", **VARIANTS[variant]))
    broken = small(tmp_path, "broken", **VARIANTS[variant])
    iterations = 900 // broken.env.num_envs - 3
    with pytest.raises(ZeroDivisionError):
        hotloop.train(broken, progress=Interrupt(iterations))
    resumed = hotloop.resume(broken.run_dir)
    assert resumed["digest"] == whole["digest"]
    assert rows(broken.run_dir) == rows(whole["run"])


@pytest.mark.parametrize("env_id", ["cartpole", "CartPole-v1"])
def test_a_run_killed_after_its_last_checkpoint_only_judges_again(tmp_path: Path, env_id: str) -> None:
    whole = hotloop.train(small(tmp_path, "run", env={"id": env_id, "num_envs": 2}, n_step=2))
    (tmp_path / "run" / "result.json").unlink()
    again = hotloop.resume(tmp_path / "run")
    assert again["digest"] == whole["digest"]
    assert again["evaluation"] == whole["evaluation"]


def test_a_checkpoint_at_every_iteration_leaves_nothing_to_sample_and_the_run_goes_on(tmp_path: Path) -> None:
    settings = small(tmp_path, env={"id": "CartPole-v1", "num_envs": 8}, n_step=3, checkpoint={"every": 8})
    assert hotloop.train(settings)["env_steps"] == 1_200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_at_once_and_the_run_resumes_exactly(tmp_path: Path, number: int) -> None:
    whole = hotloop.train(small(tmp_path, "whole"))
    stopped = small(tmp_path, "stopped")
    with pytest.raises(RunStopped) as caught:
        hotloop.train(stopped, progress=Interrupt(71, number))
    assert caught.value.env_steps == 71 * 8
    assert hotloop.resume(stopped.run_dir)["digest"] == whole["digest"]
    assert rows(stopped.run_dir) == rows(whole["run"])


def test_a_signal_ends_an_evaluation_that_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = hotloop.train(small(tmp_path, "whole"))
    stopped = small(tmp_path, "stopped")
    monkeypatch.setattr("hotloop.loop.machine.GRACE_SECONDS", 0.0)
    with pytest.raises(RunStopped):
        hotloop.train(stopped, progress=Interrupt(150, signal.SIGTERM))  # asked as the run's last evaluation begins
    monkeypatch.undo()
    assert hotloop.resume(stopped.run_dir)["digest"] == whole["digest"]
    assert rows(stopped.run_dir) == rows(whole["run"])


@pytest.mark.parametrize("env_id", ["cartpole", "CartPole-v1"])
def test_a_killed_run_resumes_bit_identical(tmp_path: Path, env_id: str) -> None:
    """SIGKILL at three moments that nobody chose; each resume is killed again until the last."""
    settings = {"env": {"id": env_id, "num_envs": 2}, "total_env_steps": 6_000, "checkpoint": {"every": 500}}
    whole = hotloop.train(small(tmp_path, "whole", **settings))
    run_dir = tmp_path / "killed"
    program = (
        "import hotloop, json, sys\n"
        "tree = json.loads(sys.argv[1])\n"
        "if sys.argv[2] == 'train': hotloop.train(hotloop.preset('cartpole-dqn', **tree))\n"
        "else: hotloop.resume(tree['run_dir'])\n"
    )
    tree = json.dumps({**SMALL, **settings, "run_dir": str(run_dir)})
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


def test_a_damaged_checkpoint_is_told_and_the_one_before_it_used(tmp_path: Path) -> None:
    whole = hotloop.train(small(tmp_path, "whole"))
    broken = small(tmp_path, "broken")
    with pytest.raises(ZeroDivisionError):
        hotloop.train(broken, progress=Interrupt(140))
    newest = sorted((tmp_path / "broken" / "checkpoints").iterdir())[-1]
    damaged = newest / "learner.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-7])
    said: list[str] = []
    progress = Interrupt(10**9)
    progress.say = said.append  # type: ignore[method-assign]
    assert hotloop.resume(broken.run_dir, progress=progress)["digest"] == whole["digest"]
    assert any("learner.safetensors" in text for text in said)


def test_numbers_that_are_not_finite_stop_the_run_and_keep_the_last_checkpoint(tmp_path: Path) -> None:
    settings = small(tmp_path, optimiser={"lr": 1e30, "max_gradient_norm": 0.0}, loss="mse")
    with pytest.raises(NonFiniteError, match="loss"):
        hotloop.train(settings)


def test_an_unknown_device_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="device"):
        hotloop.train(small(tmp_path, device="tpu"))


def test_settings_are_stored_as_they_were_resolved(tmp_path: Path) -> None:
    settings = small(tmp_path)
    hotloop.train(settings)
    from hotloop.api import settings_of
    from hotloop.runs.directory import Run

    assert settings_of(Run.open(settings.run_dir), trust=False) == dataclasses.replace(settings, trust=False)


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
