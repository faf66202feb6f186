"""`kill -9` of a verb that has children: whatever it was doing, none of them is left after some seconds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pytest

SECONDS = 120.0
ENDLESS = ["--total-env-steps", "1000000000", "--env.id", "CartPole-v1", "--env.num-envs", "2", "--env.workers", "1"]
SCRIPT = """
import pathlib, time

class Env:
    def reset(self):
        return 0
    def step(self, action):
        time.sleep(0.001)
        return 0, 1.0, False, False, {}

env = Env()
env.reset()
while True:
    env.step(0)
    pathlib.Path("ready").touch()
"""
ROOT = Path(__file__).parents[2]
PEER = "import pathlib, time; pathlib.Path('ready').touch(); time.sleep(1000)"


def verb(*words: str) -> list[str]:
    return [sys.executable, "-m", "hotloop", *words]


def compare(folder: Path) -> list[str]:
    return verb("compare", "cartpole-dqn", "--seeds", "2", "--workers", "2", "--out", "out", "--", *ENDLESS)


def tune(folder: Path) -> list[str]:
    pytest.importorskip("optuna")
    search = ["--search", "gamma=0.9..0.99", "--trials", "1", "--jobs", "1", "--storage", "out"]
    return verb("tune", "cartpole-dqn", *ENDLESS, *search)


def doctor(folder: Path) -> list[str]:
    (folder / "train.py").write_text(SCRIPT)
    return verb("doctor", "--seconds", "500", "train.py")


def bench(folder: Path) -> list[str]:
    (folder / "peer.py").write_text(PEER)
    program = "from benchmarks.peers.compare import *; run_script(sys.executable, sys.argv[1], Training(1, 1, 1))"
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); {program}"
    return [sys.executable, "-c", program, str(folder / "peer.py")]


def until(condition: Callable[[], object], why: Callable[[], str]) -> None:
    give_up = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < give_up, why()
        time.sleep(0.05)


def alive(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    """A zombie has ended; who waits for orphans is the system's business."""
    left = []
    for process in processes:
        try:
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                left.append(process)
        except psutil.NoSuchProcess:
            pass
    return left


@pytest.mark.parametrize(
    ("command", "ready", "at_work", "children"),
    [
        (compare, "out/*/seed-*/events.jsonl", 2, 5),  # two trainers, a worker each, and who keeps them
        (tune, "out/trial-*/seed-0/events.jsonl", 1, 3),  # a keeper for each trial
        (doctor, "ready", 1, 2),
        (bench, "ready", 1, 2),
    ],
    ids=["compare", "tune", "doctor", "bench"],
)
def test_no_child_outlives_a_killed_parent(
    command: Callable[[Path], list[str]], ready: str, at_work: int, children: int, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    with said.open("wb") as log:
        parent = subprocess.Popen(command(tmp_path), cwd=tmp_path, stdout=log, stderr=log, start_new_session=True)
    family: list[psutil.Process] = []
    try:

        def is_under_way() -> bool:
            family[:] = psutil.Process(parent.pid).children(recursive=True)
            return len(list(tmp_path.glob(ready))) >= at_work and len(family) >= children

        until(is_under_way, said.read_text)
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
        until(lambda: not alive(family), lambda: f"left: {alive(family)}")
    finally:
        for process in alive(family):
            process.kill()
        parent.kill()
        parent.wait()
