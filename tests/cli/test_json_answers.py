"""Every answer under `--json` is one object with a `schema`, an error's included."""

from __future__ import annotations

import ast
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hotloop.cli
from hotloop.cli.main import main

CLI = Path(hotloop.cli.__file__).parent
UPDATES = Path(__file__).parents[2] / "benchmarks" / "update.py"
TINY = "--total-env-steps 200 --learning-starts 100 --evaluation.final-episodes 1"


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any, str]:
    """Exit code, what stdout holds, and what stderr says."""
    capsys.readouterr()
    code, said = main(list(words)), capsys.readouterr()
    return code, json.loads(said.out), said.err


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ("envs", "envs"),
        ("envs check cartpole --env-steps 50", "checks"),
        ("runs", "runs"),
        ("settings dqn gamma", "settings"),
        ("settings cartpole-dqn", "total_env_steps"),
        (f"prove {shlex.quote(str(UPDATES))} --list", "cases"),
        ("train cartpole-dqn --quiet --run-dir run " + TINY, "digest"),
    ],
)
def test_an_answer_is_an_object_with_a_schema(words, key, run_folder, capsys):
    code, answer, _ = asked(capsys, *shlex.split(words), "--json")
    assert code == 0
    assert isinstance(answer["schema"], int)
    assert key in answer


@pytest.mark.parametrize(
    "words",
    [
        "train nosuch",
        "train cartpole-dqn --batch-size none",
        "evaluate nowhere",
        "resume nowhere",
        "watch nowhere",
        "doctor --seconds -1 cartpole-dqn",
        "envs check",
        "settings dqn --nosuch",
        "runs nowhere",
        "nosuchverb",
    ],
)
def test_an_error_is_told_in_both_places(words, run_folder, capsys):
    code, answer, said = asked(capsys, *words.split(), "--json")
    assert code == 2
    assert list(answer) == ["schema", "error", "hint"]
    assert said.splitlines()[0] == f"error: {answer['error'].splitlines()[0]}"
    assert answer["hint"] in said
    assert main(words.split()) == 2
    assert not capsys.readouterr().out  # nobody asked


def test_the_scripts_own_json_option_is_not_ours(run_folder, capsys):
    assert main(["doctor", "nowhere.py", "--json"]) == 2
    assert not capsys.readouterr().out


def test_a_reader_that_left_changes_nothing(tmp_path):
    command = [sys.executable, "-m", "hotloop", "evaluate", "nowhere", "--json"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_no_verb_prints_json_by_another_way():
    for file in CLI.glob("*.py"):
        calls = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
        dumps = [call for call in calls if ast.unparse(call.func) == "json.dumps"]
        assert len(dumps) == (file.name == "arguments.py"), file.name
        for call in calls:
            if ast.unparse(call.func) == "print_json":
                assert not isinstance(call.args[0], ast.List | ast.ListComp), ast.unparse(call)
