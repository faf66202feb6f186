"""Frozen: the keys of what verbs answer, the skeletons of pages, and how far fast and plain are apart.

An intended change is frozen anew with `python -m tests.golden.freeze answers` and shows as a diff.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.golden.answers import FILE, PROVED, answers, errors, pages
from tests.golden.runs import arithmetic, frozen, same_arithmetic

FROZEN = json.loads(FILE.read_text())


def test_verbs_answer_with_the_same_keys(run_folder: Path) -> None:
    assert answers() == FROZEN["answers"]


def test_pages_have_the_same_headings_and_elements(tmp_path: Path) -> None:
    assert pages(tmp_path) == FROZEN["pages"]


def test_fast_and_plain_are_as_far_apart_as_they_were() -> None:
    """How far is allowed anywhere, `tests/benchmarks/test_every_case.py` holds."""
    seen = errors()
    assert seen.keys() == FROZEN["errors"].keys() == set(PROVED)
    if same_arithmetic(arithmetic(), frozen()["arithmetic"], "native"):
        assert seen == FROZEN["errors"]
    else:
        assert seen == pytest.approx(FROZEN["errors"], rel=0, abs=1e-5)
