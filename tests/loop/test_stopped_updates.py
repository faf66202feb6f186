"""A stop that comes in the middle of an update: looked for between minibatches, and resumed to the same digest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hotloop
from hotloop.lanes.eager import EagerLane
from hotloop.loop.running import RunStopped
from hotloop.loop.watchdog import ENV, LEARNER, read_stack
from tests.loop.small_runs import PPO, rows

ENVS: dict[str, dict[str, Any]] = {
    "saves its state": {"id": "cartpole", "num_envs": 4},
    "does not": {"id": "CartPole-v1", "num_envs": 4},
}
AT = 13
"""The fifth iteration's first minibatch but one; there are four in each."""


def settings(env: str, folder: Path) -> Any:
    more = {"env": ENVS[env], "learner": {"lane": "eager"}, "run_dir": str(folder)}
    return hotloop.preset("cartpole-ppo", **{**PPO, **more})


@pytest.fixture(scope="module", params=ENVS)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, str]:
    """A kind of env, a run of it that nobody stopped, and its digest."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    return request.param, folder, hotloop.train(settings(request.param, folder))["digest"]


def stop_in_update(patch: pytest.MonkeyPatch, run: Any) -> tuple[RunStopped, int]:
    """How it ended, and how many minibatches were begun after the signal, which comes in the middle of one."""
    made, one_update = 0, EagerLane._one_update

    def counted(*arguments: Any) -> Any:
        nonlocal made
        made += 1
        if made == AT:
            os.kill(os.getpid(), signal.SIGTERM)
        return one_update(*arguments)

    patch.setattr(EagerLane, "_one_update", counted)
    with pytest.raises(RunStopped) as caught:
        hotloop.train(run)
    patch.undo()
    return caught.value, made - AT


def test_a_stop_in_an_update_ends_it_or_finishes_what_can_be_saved(whole, tmp_path, monkeypatch):
    env, unstopped, digest = whole
    run = settings(env, tmp_path / "run")
    stopped, more = stop_in_update(monkeypatch, run)
    assert stopped.env_steps == 4 * 64
    assert more == (3 if env == "saves its state" else 0)
    assert ("all of it was saved" if env == "saves its state" else "nothing was saved yet") in str(stopped)
    assert hotloop.resume(run.run_dir)["digest"] == digest
    assert rows(run.run_dir) == rows(unstopped)


def test_an_update_that_takes_too_long_is_given_up_and_made_again(whole, tmp_path, monkeypatch):
    env, unstopped, digest = whole
    run = settings(env, tmp_path / "run")
    monkeypatch.setattr("hotloop.loop.running.ITERATION_SECONDS", 0.0)
    stopped, more = stop_in_update(monkeypatch, run)
    assert (stopped.env_steps, more) == (4 * 64, 0)
    assert "nothing was saved yet" in str(stopped)
    assert hotloop.resume(run.run_dir)["digest"] == digest
    assert rows(run.run_dir) == rows(unstopped)


SLOW = """
import os, signal, sys, time
import hotloop.loop.watchdog as watchdog
from hotloop.lanes.eager import EagerLane
watchdog.STOP_SECONDS, one_update = 0.5, EagerLane._one_update
def slow(*arguments):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(3)
    return one_update(*arguments)
EagerLane._one_update = slow
from hotloop.cli.main import main
sys.exit(main())
"""


def test_a_learner_that_is_slow_is_not_killed_as_an_env_that_hangs(tmp_path):
    words = "train cartpole-ppo --env.id CartPole-v1 --learner.lane eager --total-env-steps 1280 --run-dir"
    done = subprocess.run(
        [sys.executable, "-c", SLOW, *words.split(), str(tmp_path / "run")], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 143, done.stderr
    assert "hangs" not in done.stderr
    assert "nothing was saved yet" in done.stderr


PACKAGE = "/site/hotloop"
LOOP = [f'  File "{PACKAGE}/loop/on_policy.py", line 40 in run_loop', f'  File "{PACKAGE}/cli/main.py", line 1 in main']
TORCH = '  File "/site/torch/autograd/graph.py", line 7 in backward'
USERS = '  File "/home/env.py", line 3 in step'


@pytest.mark.parametrize(
    ("frames", "where", "shown"),
    [
        ([USERS, f'  File "{PACKAGE}/envs/gymnasium_vector.py", line 9 in step'], ENV, [USERS]),
        ([TORCH, f'  File "{PACKAGE}/lanes/eager.py", line 9 in _backward'], LEARNER, [TORCH]),
        ([TORCH, USERS, f'  File "{PACKAGE}/envs/foreign.py", line 9 in step'], ENV, [TORCH, USERS]),
        ([], "", LOOP),
    ],
)
def test_an_env_is_named_only_where_the_stack_is_in_it(frames, where, shown):
    text = "\n".join(["Thread 0x01 (most recent call first):", USERS, "Current thread 0x02:", *frames, *LOOP])
    assert read_stack(text, PACKAGE) == (where, [frame.strip() for frame in shown])
    assert read_stack("", PACKAGE) == ("", [])
