"""`docs/findings.md` is what the rules say. That the code they recommend runs: `test_remedies.py`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hotloop.doctor.finding import Rule
from hotloop.doctor.rules import load_rules
from hotloop.doctor.rules.document import GROUPS, findings_document

ROOT = Path(__file__).parents[2]
RULES = load_rules()


def test_the_document_on_disk_is_what_the_rules_say() -> None:
    assert (ROOT / "docs" / "findings.md").read_text() == findings_document(RULES)


def test_there_are_at_least_twenty_rules_each_in_a_group_and_explained() -> None:
    assert len(RULES) >= 20
    for rule in RULES:
        assert re.fullmatch(r"[A-Z]+\d{3}", rule.code)
        assert rule.code.rstrip("0123456789") in GROUPS
        assert "Found" in rule.explanation.split(), rule.code


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_recommended_code_is_short(rule: Rule) -> None:
    remedy = rule.remedy
    assert remedy.text
    assert remedy.before
    assert len(remedy.after.splitlines()) <= 20
