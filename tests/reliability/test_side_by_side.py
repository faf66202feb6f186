"""The comparison with another library, hotloop's half of it, at a small scale."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_hotloop_passes_what_it_asks_of_others() -> None:
    program = Path(__file__).with_name("side_by_side.py")
    words = [sys.executable, str(program), "hotloop", "--kills", "2", "--trials", "3"]
    report = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    for algorithm in ("dqn", "ppo"):
        killed = report[f"{algorithm}: killed at random moments"]
        assert killed["same seed twice, same parameters"]
        assert killed["equal to the uninterrupted run"] == killed["kills"] > 0
        assert report[f"{algorithm}: killed while saving"]["ends equal"]
        damaged = report[f"{algorithm}: damaged files"].values()
        assert {outcome for found in damaged for outcome in found} == {"damage named, previous checkpoint used"}
    assert all(said.startswith("nothing ran") for said in report["hostile files"].values())
    assert report["fsync calls in a run"] != 0
