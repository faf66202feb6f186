"""`docs/findings.md` is what the rules say; the code they recommend runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from hotloop.doctor.finding import Rule
from hotloop.doctor.rules import load_rules
from hotloop.doctor.rules.document import GROUPS, findings_document, remedy_of

ROOT = Path(__file__).parents[2]
RULES = load_rules()
PRELUDE = """
import numpy as np
from hotloop.core.types import Batch
obs = next_obs = final_obs = np.zeros((256, 11), np.float32)
action, reward = np.zeros(256, np.int64), np.zeros(256, np.float32)
terminated = truncated = np.zeros(256, bool)
rows = np.zeros((1, 32), np.float32)
four = np.zeros((1, 32, 4), np.float32)
batch = Batch(four, np.zeros((1, 32), np.int64), rows, rows, four,
              np.ones((1, 32), np.float32), np.zeros((1, 32), np.int64))
"""


def test_the_document_on_disk_is_what_the_rules_say() -> None:
    assert (ROOT / "docs" / "findings.md").read_text() == findings_document(RULES)


def test_there_are_at_least_twenty_rules_each_in_a_group_and_explained() -> None:
    assert len(RULES) >= 20
    for rule in RULES:
        assert re.fullmatch(r"[A-Z]+\d{3}", rule.code)
        assert rule.code.rstrip("0123456789") in GROUPS
        assert "Found" in rule.explanation.split(), rule.code


def test_every_recommended_piece_of_code_runs_as_it_stands() -> None:
    """Each in a namespace of its own, one process for all."""
    program = "\n".join(
        f"exec(compile({PRELUDE + remedy_of(rule).after!r}, {rule.code!r}, 'exec'), {{}})" for rule in RULES
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_recommended_code_is_short(rule: Rule) -> None:
    remedy = remedy_of(rule)
    assert remedy.text
    assert remedy.before
    assert len(remedy.after.splitlines()) <= 14
