"""Whole runs of every family: same seed same digest, resumed from anywhere same digest, and what is left of them."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hotloop
from hotloop.core.errors import NonFiniteError, RunError, SettingsError
from hotloop.loop.running import RunStopped
from tests.loop.small_runs import EVERYTHING, FAMILIES, VARIANTS, Interrupt, WholeRuns, rows, small

ALL_VARIANTS = [(family, variant) for family in VARIANTS for variant in VARIANTS[family]]


@pytest.mark.parametrize(("family", "variant"), [("dqn", "plain"), ("ppo", "plain"), ("ppo", "everything")])
def test_the_same_seed_gives_the_same_digest_and_another_seed_another(
    tmp_path: Path, whole_run: WholeRuns, family: str, variant: str
) -> None:
    first = whole_run(family, **VARIANTS[family][variant])
    again = hotloop.train(small(family, tmp_path, "again", **VARIANTS[family][variant]))
    other = hotloop.train(small(family, tmp_path, "other", seed=4, **VARIANTS[family][variant]))
    assert first["digest"] == again["digest"] != other["digest"]
    assert rows(first["run"]) == rows(again["run"])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_finished_run_returns_its_result_again(whole_run: WholeRuns, family: str) -> None:
    result = whole_run(family)
    assert hotloop.resume(result["run"]) == result


@pytest.mark.parametrize("family", FAMILIES)
def test_a_run_directory_in_use_is_not_taken_twice(whole_run: WholeRuns, family: str) -> None:
    used = Path(whole_run(family)["run"])
    with pytest.raises(RunError, match="resume"):
        hotloop.train(small(family, used.parent, used.name))


@pytest.mark.parametrize(("family", "more"), [("dqn", {}), ("ppo", EVERYTHING)])
def test_the_loaded_agent_is_the_best_one_and_acts_on_one_or_many(
    whole_run: WholeRuns, family: str, more: dict[str, Any]
) -> None:
    """As it was judged: with its observations normalized, where they were."""
    run = whole_run(family, **more)["run"]
    agent = hotloop.load(run)
    obs = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    many = agent.act(obs)
    assert many.shape == (6,)
    assert [agent.act(row) for row in obs] == many.tolist()
    assert isinstance(agent.act([0.0, 0.1, 0.0, 0.1]), int)
    assert hotloop.evaluate(run, episodes=5) == hotloop.evaluate(run, episodes=5)


@pytest.mark.parametrize(("family", "variant"), ALL_VARIANTS)
def test_a_run_that_broke_off_and_was_resumed_ends_bit_identical(
    tmp_path: Path, whole_run: WholeRuns, family: str, variant: str
) -> None:
    whole = whole_run(family, **VARIANTS[family][variant])
    broken = small(family, tmp_path, "broken", **VARIANTS[family][variant])
    iterations = 900 // broken.env.num_envs - 3 if family == "dqn" else 13
    with pytest.raises(ZeroDivisionError):
        hotloop.train(broken, progress=Interrupt(iterations))
    resumed = hotloop.resume(broken.run_dir)
    assert resumed["digest"] == whole["digest"]
    assert rows(broken.run_dir) == rows(whole["run"])


@pytest.mark.parametrize(
    ("family", "variant"), [("dqn", "n-step"), ("dqn", "gymnasium"), ("ppo", "everything"), ("ppo", "gymnasium")]
)
def test_a_run_killed_after_its_last_checkpoint_only_judges_again(
    tmp_path: Path, whole_run: WholeRuns, family: str, variant: str
) -> None:
    whole = whole_run(family, **VARIANTS[family][variant])
    killed = shutil.copytree(whole["run"], tmp_path / "run")
    (killed / "result.json").unlink()
    again = hotloop.resume(killed)
    assert again["digest"] == whole["digest"]
    assert again["evaluation"] == whole["evaluation"]


@pytest.mark.parametrize(
    ("family", "number", "iterations"),
    [("dqn", signal.SIGTERM, 71), ("dqn", signal.SIGINT, 71), ("ppo", signal.SIGTERM, 7)],
)
def test_a_signal_saves_at_once_and_the_run_resumes_exactly(
    tmp_path: Path, whole_run: WholeRuns, family: str, number: int, iterations: int
) -> None:
    stopped = small(family, tmp_path, "stopped")
    with pytest.raises(RunStopped) as caught:
        hotloop.train(stopped, progress=Interrupt(iterations, number))
    assert caught.value.env_steps == iterations * {"dqn": 8, "ppo": 64}[family]
    assert hotloop.resume(stopped.run_dir)["digest"] == whole_run(family)["digest"]
    assert rows(stopped.run_dir) == rows(whole_run(family)["run"])


def test_a_signal_ends_an_evaluation_that_takes_too_long(
    tmp_path: Path, whole_run: WholeRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = small("dqn", tmp_path, "stopped")
    monkeypatch.setattr("hotloop.loop.machine.GRACE_SECONDS", 0.0)
    with pytest.raises(RunStopped):
        hotloop.train(stopped, progress=Interrupt(150, signal.SIGTERM))  # asked as the run's last evaluation begins
    monkeypatch.undo()
    assert hotloop.resume(stopped.run_dir)["digest"] == whole_run("dqn")["digest"]
    assert rows(stopped.run_dir) == rows(whole_run("dqn")["run"])


def test_a_damaged_checkpoint_is_told_and_the_one_before_it_used(tmp_path: Path, whole_run: WholeRuns) -> None:
    broken = small("dqn", tmp_path, "broken")
    with pytest.raises(ZeroDivisionError):
        hotloop.train(broken, progress=Interrupt(140))
    newest = sorted((tmp_path / "broken" / "checkpoints").iterdir())[-1]
    damaged = newest / "learner.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-7])
    said: list[str] = []
    progress = Interrupt(10**9)
    progress.say = said.append  # type: ignore[method-assign]
    assert hotloop.resume(broken.run_dir, progress=progress)["digest"] == whole_run("dqn")["digest"]
    assert any("learner.safetensors" in text for text in said)


@pytest.mark.parametrize("family", FAMILIES)
def test_numbers_that_are_not_finite_stop_the_run(tmp_path: Path, family: str) -> None:
    more: dict[str, Any] = {"loss": "mse"} if family == "dqn" else {}
    with pytest.raises(NonFiniteError, match="loss" if family == "dqn" else None):
        hotloop.train(small(family, tmp_path, optimizer={"learning_rate": 1e30, "max_grad_norm": 0.0}, **more))


@pytest.mark.parametrize("family", FAMILIES)
def test_an_unknown_device_is_refused_before_anything_is_trained(tmp_path: Path, family: str) -> None:
    with pytest.raises(SettingsError, match="device"):
        hotloop.train(small(family, tmp_path, device="tpu"))
