"""Every command of the tutorial, in its order, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

TUTORIAL = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text()
BLOCKS = re.findall(r"^```(\w*) ?([\w.]*)\n(.*?)^```", TUTORIAL, flags=re.DOTALL | re.MULTILINE)
NEEDS = {"export": "onnxruntime"}
THINNED = {"--seconds 5": "--seconds 1", "--seeds 5": "--seeds 2"}
"""Counts that make a command long, on every `make test`; `make slow` runs every word as it stands."""


def test_the_tutorial_has_files_commands_and_one_that_installs() -> None:
    assert {name for kind, name, _ in BLOCKS if kind == "python"} == {"my_env.py", "use_agent.py", "plain.py"}
    assert [text for kind, _, text in BLOCKS if not kind] == ["make demo\n"]


@pytest.mark.parametrize(
    "thinned", [THINNED, pytest.param({}, marks=pytest.mark.slow)], ids=["thinned", "as it stands"]
)
def test_every_command_of_the_tutorial_runs(tmp_path: Path, thinned: dict[str, str]) -> None:
    assert all(TUTORIAL.count(long) == 1 for long in thinned)
    words = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    said = {}
    for kind, name, text in BLOCKS:
        if kind == "python":
            (tmp_path / name).write_text(text)
        for command in text.splitlines() if kind == "sh" else ():
            if not _can_run(command):
                continue
            for long, short in thinned.items():
                command = command.replace(long, short)
            answer = subprocess.run(
                command, shell=True, cwd=tmp_path, env={**os.environ, **words}, capture_output=True, text=True
            )
            assert answer.returncode == 0, f"{command}\n{answer.stdout}\n{answer.stderr}"
            said[command] = answer.stdout
    (spoken,) = [text for command, text in said.items() if command == "python use_agent.py"]
    assert "it goes right" in spoken
    assert {"plain.html", "errand.html", "errand-run.html"} <= {path.name for path in tmp_path.iterdir()}


def _can_run(command: str) -> bool:
    """Not where a verb wants an extra that is not installed; its own tests are skipped then too."""
    verb = command.split()[1] if command.startswith("hotloop") else ""
    return verb not in NEEDS or find_spec(NEEDS[verb]) is not None


def test_the_demo_installs_the_dashboard_and_names_its_command():
    words, root = ["make", "-n", "demo", "VENV=elsewhere"], Path(__file__).parents[1]
    outside = {
        name: value for name, value in os.environ.items() if not name.startswith("MAKE")
    }  # not one of make's own
    said = subprocess.run(words, cwd=root, env=outside, capture_output=True, text=True, check=True)
    lines = said.stdout.splitlines()
    assert any(line.endswith("-e '.[train,dashboard]'") for line in lines)
    assert "hotloop watch" in lines[-2]
    assert lines[-1].endswith('elsewhere/bin/hotloop dashboard"')
