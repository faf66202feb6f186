"""Thousands of damaged and forged runs: every verb answers or refuses with a sentence, soon and in little memory.

`mutants.py` makes them, `fuzzed_verbs.py` tries the verbs on them in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).with_name("fuzzed_verbs.py")
QUICK, MANY = 100, 10_000


def fuzzed(folder: Path, first: int, count: int, timeout: float) -> dict[str, Any]:
    command = [sys.executable, str(PROGRAM), str(folder), str(first), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    now = folder / "now.txt"
    where = now.read_text() if now.exists() else "before the first mutant"
    assert done.returncode == 0, f"ended by {done.returncode} at {where}\n{done.stderr[-3000:]}"
    answer: dict[str, Any] = json.loads(done.stdout)
    assert answer["mutants"] == count
    return answer


def test_no_mutant_of_a_run_ends_in_a_traceback_a_hang_or_a_large_allocation(tmp_path: Path) -> None:
    answer = fuzzed(tmp_path, 20_000, QUICK, timeout=280)
    assert not answer["faults"], "\n\n".join(answer["faults"])[:10_000]


@pytest.mark.slow
def test_nor_does_any_of_ten_thousand(tmp_path: Path) -> None:
    answer = fuzzed(tmp_path, 0, MANY, timeout=7_000)
    print(f"{answer['mutants']} mutants, {len(answer['faults'])} faults, verbs {answer['verbs']}")
    assert not answer["faults"], "\n\n".join(answer["faults"])[:10_000]
