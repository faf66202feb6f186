"""Signals to the program itself: one asks it to save and leave, a second Ctrl-C stops it at once."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import hotloop
from hotloop.cli.main import main
from hotloop.loop.running import resume_hint
from hotloop.runs.directory import Run
from tests.reliability.killing import FAMILIES, outcome

LIMIT = 30
"""Seconds that a run may take to leave."""
ROOT = Path(__file__).parents[2]
PRESS_CONTROL_C = (
    "comparison/test_compare_pool.py::test_an_interrupt_ends_the_children_politely",
    "doctor/test_script_record.py::test_an_interrupt_reaches_the_script_and_the_report_is_still_made",
    "viewing/test_terminal.py::test_the_terminal_is_given_back_as_it_was",
    "viewing/test_watch_verb.py::test_in_a_terminal_it_plays_until_ctrl_c_and_gives_the_terminal_back",
)
"""Tests that send SIGINT to themselves or to a program that leaves it to Python."""


def words_of(tree: dict[str, Any], prefix: str = "") -> list[str]:
    found: list[str] = []
    for name, value in tree.items():
        if isinstance(value, dict):
            found += words_of(value, f"{prefix}{name}.")
        else:
            values = value if isinstance(value, list) else [value]
            found += [f"--{prefix}{name}".replace("_", "-"), *map(str, values)]
    return found


def start(family: str, run_dir: Path, **changes: Any) -> subprocess.Popen[str]:
    preset, tree = FAMILIES[family]
    words = words_of({**tree, **changes, "run_dir": str(run_dir)})
    command = [sys.executable, "-m", "hotloop", "train", preset, *words, "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(process: subprocess.Popen[str], run_dir: Path, text: str) -> None:
    events = run_dir / "events.jsonl"
    while process.poll() is None and (not events.exists() or text not in events.read_text()):
        time.sleep(0.002)


@pytest.mark.parametrize(
    ("family", "number"), [("dqn-native", signal.SIGTERM), ("ppo-gymnasium", signal.SIGINT)], ids=str
)
def test_a_signal_ends_a_run_in_time_and_it_resumes_exactly(family: str, number: int, tmp_path: Path) -> None:
    preset, tree = FAMILIES[family]
    long = {"total_env_steps": 12_800, "checkpoint": {"every": 1_280}}
    hotloop.train(hotloop.preset(preset, **{**tree, **long, "run_dir": str(tmp_path / "whole")}))
    process = start(family, tmp_path / "stopped", **long)
    wait_for(process, tmp_path / "stopped", '"env_steps":1')
    process.send_signal(number)
    said, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 128 + number, errors
    assert json.loads(said)["stopped"]
    hotloop.resume(tmp_path / "stopped")
    assert outcome(tmp_path / "stopped") == outcome(tmp_path / "whole")


def test_a_second_control_c_stops_at_once_and_keeps_the_last_checkpoint(tmp_path: Path) -> None:
    """The first comes while an evaluation without end is under way, which the run would give ten seconds more."""
    endless = {"evaluation": {"every": 400, "episodes": 1_000_000, "final_episodes": 2}}
    process = start("dqn-native", tmp_path / "run", **endless)
    wait_for(process, tmp_path / "run", '"env_steps":400')
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert "stopped at once" in errors
    assert "Traceback" not in errors
    saved = [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()]
    assert "000000000000200" in saved


@pytest.mark.parametrize("parallel", [[], ["-n", "1"]], ids=["one process", "workers of xdist"])
def test_the_suite_passes_where_it_began_with_control_c_ignored(parallel: list[str], tmp_path: Path) -> None:
    """As a background job of a shell does, and what `nohup` and CI runners start."""
    names = [f"tests/{name}" for name in (PRESS_CONTROL_C if not parallel else PRESS_CONTROL_C[:1])]
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "inner")]
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = [sys.executable, "-c", ignoring, *words, *(parallel or ["-n", "0"]), "--timeout", "200", *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, env=_alone())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no tests ran" not in done.stdout


def _alone() -> dict[str, str]:
    """Without what the suite around it tells its own workers."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}


@pytest.mark.parametrize(
    ("env_steps", "saved", "promise"),
    [(500, 0, "begins anew"), (500, 500, "all of it was saved"), (500, 300, "saved at 300.* makes the 200 .* again")],
)
def test_a_stopped_run_says_what_resume_will_do(env_steps: int, saved: int, promise: str, tmp_path: Path) -> None:
    assert re.search(promise, resume_hint(Run(tmp_path), env_steps, saved))


def test_stopped_before_its_first_checkpoint_a_gymnasium_run_says_so_and_begins_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both presses of Ctrl-C come from within, in the first iteration."""
    preset, tree = FAMILIES["dqn-gymnasium"]
    run_dir = tmp_path / "run"
    words = words_of({**tree, "checkpoint": {"every": 100_000}, "run_dir": str(run_dir)})
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def press_control_c(*_: object) -> None:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)

    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("hotloop.loop.collector.Collector._account", press_control_c)
            assert main(["train", preset, *words]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    said = capsys.readouterr().err
    assert f"stopped at once at 0 env steps; nothing was saved yet: `hotloop resume '{run_dir}'` begins anew" in said
    assert main(["resume", str(run_dir)]) == 0
    assert "the run had saved nothing yet: it begins anew, with the same seed" in capsys.readouterr().err
