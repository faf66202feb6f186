"""SIGTERM and Ctrl-C under `--on ray`, whatever is going on: one sentence, the signal's exit code, nothing left, and
the same command goes on. Ray installs handlers of its own, in Python and in C++, which end or abort the process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.scale.clusters import TINY, left_behind, pids_of

pytest.importorskip("ray")
HOTLOOP = str(Path(sys.executable).with_name("hotloop"))
LONG = ["cartpole-dqn", *TINY, "--total-env-steps", "100000000"]
ON = ["--on", "ray"]
VERBS = {
    "train": ["train", *LONG, "--seeds", "2", "--out", "out", *ON],
    "compare": ["compare", f"a={' '.join(LONG)}", "--seeds", "2", "--out", "out", *ON],
    "tune": ["tune", *LONG, "--search", "gamma=0.9..0.99", "--trials", "2", *ON],
}


def of(parent: psutil.Process, name: str) -> bool:
    """Whether a process of this name is at work below it."""
    ours = {process.pid for process in parent.children(recursive=True)}
    return bool(ours & set(pids_of(name)))


MOMENTS: dict[str, Callable[[psutil.Process, Path], bool]] = {
    "cluster begins": lambda parent, folder: of(parent, "gcs_server"),
    "node begins": lambda parent, folder: of(parent, "raylet"),
    "handshake": lambda parent, folder: of(parent, "ray::facts"),
    "before a checkpoint": lambda parent, folder: of(parent, "ray::train"),
    "after a checkpoint": lambda parent, folder: any(folder.rglob("checkpoints/0*")),
}
QUICK = [("compare", "before a checkpoint", "SIGINT")]
REST = [(verb, moment, "SIGTERM") for verb in VERBS for moment in MOMENTS]
REST += [("compare", moment, "SIGINT") for moment in MOMENTS]


@pytest.mark.parametrize(
    ("verb", "moment", "number"),
    [*QUICK, *(pytest.param(*one, marks=pytest.mark.slow) for one in REST if one not in QUICK)],
)
def test_a_stop_at_any_moment_is_in_order(verb: str, moment: str, number: str, tmp_path: Path) -> None:
    said = tmp_path / "said"
    with said.open("w") as errors:
        started = psutil.Popen([HOTLOOP, *VERBS[verb]], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=errors)
    try:
        give_up = time.monotonic() + 120
        while not MOMENTS[moment](started, tmp_path):
            assert started.poll() is None, said.read_text()
            assert time.monotonic() < give_up, f"{moment} never came: {said.read_text()}"
            time.sleep(0.01)
        started.send_signal(getattr(signal, number))
        started.wait(60)
    finally:
        if started.poll() is None:
            started.kill()
    told = [line for line in said.read_text().splitlines() if line.startswith("stopped")]
    assert len(told) == 1, said.read_text()
    assert "Traceback" not in said.read_text()
    assert "***" not in said.read_text(), "Ray's abort"
    assert started.returncode == 128 + getattr(signal, number)
    assert left_behind() == []


@pytest.mark.slow
def test_the_same_command_goes_on_after_it(tmp_path: Path) -> None:
    def digest(folder: str, stop: bool) -> str:
        words = ["train", "cartpole-dqn", *TINY, "--total-env-steps", "20000", "--seeds", "1", "--out", folder, *ON]
        words += ["--checkpoint.every", "1000"]
        started = subprocess.Popen(
            [HOTLOOP, *words], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while stop and started.poll() is None and not any((tmp_path / folder).rglob("checkpoints/0*")):
            time.sleep(0.01)
        if stop:
            started.terminate()
        assert started.wait(200) == (143 if stop else 0)
        (result,) = [*(tmp_path / folder).rglob("result.json")] or [None]
        return "" if result is None else str(json.loads(result.read_text())["digest"])

    assert digest("stopped", stop=True) == ""
    assert digest("stopped", stop=False) == digest("whole", stop=False) != ""
