"""Every public part has an example in its docstring, and the example does what it says."""

from __future__ import annotations

import doctest

import pytest

import hotloop
from tests.api_page import GROUPS, PARTS

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", GROUPS[PARTS])
def test_the_example_of_a_part_runs(name: str, run_folder: object) -> None:
    """Those of its methods too, where they have any."""
    found = doctest.DocTestFinder(exclude_empty=True).find(getattr(hotloop, name), name, globs={})
    assert any(test.name == name and test.examples for test in found), f"{name} has no example"
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    said: list[str] = []
    for test in found:
        runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)
