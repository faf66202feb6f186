"""Frozen behavior: short runs end as they did when `runs.json` was written.

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


@pytest.mark.parametrize("name", CASES)
def test_a_run_resumed_in_the_middle_ends_as_it_did(name: str, tmp_path: Path) -> None:
    seen, then = observe(name, tmp_path / "run"), FROZEN["runs"][name]
    if same_arithmetic(arithmetic(), then.get("arithmetic", FROZEN["arithmetic"]), name.split("/")[1]):
        assert seen == {key: then[key] for key in seen}
    else:
        assert_alike(seen["summary"], then["summary"])


def assert_alike(seen: dict[str, Any], then: dict[str, Any]) -> None:
    """Equal, but for what follows from the rounding of another machine."""
    for name, count in then["counters"].items():
        allowed = {"rel": EPISODES, "abs": 1} if name == "episodes" else {"abs": 0}
        assert seen["counters"][name] == pytest.approx(count, **allowed), name
    assert (seen["counters"].keys(), seen["events"]) == (then["counters"].keys(), then["events"])
    assert seen["tensors"].keys() == then["tensors"].keys()
    for name, (size, total, norm) in then["tensors"].items():
        assert seen["tensors"][name][0] == size, name
        assert seen["tensors"][name][1] == pytest.approx(total, abs=TENSORS * norm * size**0.5), name
        assert seen["tensors"][name][2] == pytest.approx(norm, rel=TENSORS), name


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("counters", "updates", 201),
        ("counters", "episodes", 15),
        ("events", "progress", 3),
        ("tensors", "target", [4_610, 138.0, 8.5]),
        ("tensors", "target", [4_611, 158.2, 9.0]),
    ],
)
def test_another_rounding_changes_little_and_a_summary_tells_more(part: str, name: str, value: Any) -> None:
    then = FROZEN["runs"]["dqn/native/short"]["summary"]
    assert_alike(then | {"counters": then["counters"] | {"episodes": 16}}, then)
    assert name in then[part]
    with pytest.raises(AssertionError):
        assert_alike(then | {part: then[part] | {name: value}}, then)


def test_every_run_is_frozen_and_nothing_else() -> None:
    assert list(FROZEN["runs"]) == [*run_names("short"), *run_names("long")]
