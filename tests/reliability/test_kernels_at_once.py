"""Trainers that start side by side and find no compiled kernel: all compile, none disturbs another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reliability.killing import FAMILIES

TRAINERS = 6
PROGRAM = """
import json, sys
import hotloop
preset, tree = json.loads(sys.argv[1])
hotloop.train(hotloop.preset(preset, **tree))
"""


def start(folder: Path, name: str, family: str) -> subprocess.Popen[str]:
    preset, tree = FAMILIES[family]
    work = json.dumps([preset, {**tree, "run_dir": str(folder / name)}])
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    environment.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-c", PROGRAM, work]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def digest_of(run: Path) -> str:
    digest: str = json.loads((run / "result.json").read_text())["digest"]
    return digest


@pytest.mark.slow
@pytest.mark.parametrize("family", ["dqn-native", "ppo-native"])
def test_six_trainers_on_a_cold_cache_end_the_same(family: str, tmp_path: Path) -> None:
    together = [start(tmp_path, f"run{trainer}", family) for trainer in range(TRAINERS)]
    said = [process.communicate()[1] for process in together]
    assert [process.returncode for process in together] == [0] * TRAINERS, said
    assert len({digest_of(tmp_path / f"run{trainer}") for trainer in range(TRAINERS)}) == 1
    assert not list((tmp_path / "cache").rglob("*.tmp.*"))
    warm = start(tmp_path, "warm", family)
    assert "compiling" not in warm.communicate()[1]
    assert digest_of(tmp_path / "warm") == digest_of(tmp_path / "run0")
