"""Real disks that fill up or turn read-only in the middle of a run: a clear message, and nothing saved is lost."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hotloop
from tests.reliability.killing import FAMILIES

PROGRAM = Path(__file__).with_name("full_disk.py")
NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount"]
LARGEST = 100_000
"""Kilobytes that no run here can fill."""


def may_mount(folder: Path) -> bool:
    if shutil.which("unshare") is None:
        return False
    mounted = 'mount -t tmpfs -o size=1m none "$1" && mount -o remount,size=2m "$1"'  # not everybody may do both
    return subprocess.run([*NAMESPACE, "sh", "-c", mounted, "sh", str(folder)], capture_output=True).returncode == 0


def try_disks(family: str, folder: Path, disks: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """Each disk is its size in kilobytes and the iteration at which it turns read-only (0 for never)."""
    if not may_mount(folder):
        pytest.skip("this system allows no mount namespaces")
    preset, tree = FAMILIES[family]
    tree = {**tree, "seed": 5}
    whole = hotloop.train(hotloop.preset(preset, **{**tree, "run_dir": str(folder / "whole")}))
    order = {"preset": preset, "tree": tree, "folder": str(folder), "disks": disks}
    command = [*NAMESPACE, sys.executable, str(PROGRAM), json.dumps(order)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(disks)
    for answer in answers:
        assert answer["loads"], answer
        assert answer["digest"] == whole["digest"], answer
    return answers


def check(answers: list[dict[str, Any]]) -> None:
    for answer in answers:
        if "read_only_at" in answer:
            assert "read-only" in answer["ended"].lower(), answer
        elif answer["ended"] != "finished":
            assert "space" in answer["ended"], answer
    full = [answer for answer in answers if answer["ended"] != "finished"]
    assert len({answer["saved"] for answer in full}) > 1, "no disk filled up both early and late"
    print(f"{len(full)} of {len(answers)} disks stopped the run")


def test_a_disk_that_fills_up_or_turns_read_only_costs_nothing_that_was_saved(tmp_path: Path) -> None:
    sizes = [8, 40, 80, 120, 160, 200]
    check(try_disks("dqn-native", tmp_path, [(size, 0) for size in sizes] + [(LARGEST, 130)]))


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_disks_of_a_hundred_sizes(family: str, tmp_path: Path) -> None:
    moments = [(LARGEST, at) for at in ((5, 9) if "ppo" in family else (60, 130, 250))]
    check(try_disks(family, tmp_path, [(4 * size, 0) for size in range(1, 100)] + moments))
