"""Frozen behaviour: short runs end as they did when `runs.json` was written.

An intended change is frozen anew with `python -m tests.golden.freeze` and shows as a diff.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.golden.runs import arithmetic, frozen, observe, run_names, same_arithmetic

FROZEN = frozen()
EPISODES, TENSORS = 0.05, 0.02
"""What another rounding may change: the number of episodes by a twentieth (and one), norms by a fiftieth."""
CASES = [*run_names("short"), *(pytest.param(name, marks=pytest.mark.slow) for name in run_names("long"))]


@pytest.fixture(scope="module")
def here() -> dict[str, Any]:
    return arithmetic()


@pytest.mark.parametrize("name", CASES)
def test_a_run_resumed_in_the_middle_ends_as_it_did(name: str, here: dict[str, Any], tmp_path: Path) -> None:
    seen, then = observe(name, tmp_path / "run"), FROZEN["runs"][name]
    assert_alike(seen["summary"], then["summary"])
    if same_arithmetic(here, FROZEN["arithmetic"], name.split("/")[1]):
        assert seen == then


def assert_alike(seen: dict[str, Any], then: dict[str, Any]) -> None:
    """Equal, but for what follows from the rounding of another machine."""
    episodes = seen["counters"].pop("episodes"), then["counters"].pop("episodes")
    assert episodes[0] == pytest.approx(episodes[1], rel=EPISODES, abs=1)
    assert (seen["counters"], seen["events"]) == (then["counters"], then["events"])
    assert seen["tensors"].keys() == then["tensors"].keys()
    for name, (size, total, norm) in then["tensors"].items():
        assert seen["tensors"][name][0] == size, name
        assert seen["tensors"][name][1] == pytest.approx(total, abs=TENSORS * norm * size**0.5), name
        assert seen["tensors"][name][2] == pytest.approx(norm, rel=TENSORS), name


def test_every_run_is_frozen_and_nothing_else() -> None:
    assert list(FROZEN["runs"]) == [*run_names("short"), *run_names("long")]
