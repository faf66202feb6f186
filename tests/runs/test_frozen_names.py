"""Names that must not change when code is renamed: they are hashed into digests and seeds, or read from old runs.

`frozen_names.json` lists them as the first settings vocabulary had them. A name may be added; none may go or change.
"""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import hotloop
from hotloop.runs.checkpoint import load, newest
from hotloop.runs.digest import digest
from hotloop.runs.directory import Run
from hotloop.runs.events import read_events

FIXTURES = Path(__file__).parents[1] / "fixtures" / "settings-1"
"""Runs broken off in their middle, with settings of schema 1: `optimiser.lr`, `warmup_env_steps`, `entropy_weight`."""
FROZEN: dict[str, Any] = json.loads(Path(__file__).with_name("frozen_names.json").read_text())
FAMILIES = sorted(FROZEN["state"])


@pytest.fixture(scope="module", params=FAMILIES)
def resumed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A run of every family as it was written before, gone on to its end by today's code."""
    run = shutil.copytree(FIXTURES / request.param, tmp_path_factory.mktemp("old") / "run")
    hotloop.resume(run, verbose=False)
    return request.param, run


def names_in(state: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for name, value in state.items():
        if isinstance(value, dict) and value:
            yield from names_in(value, f"{above}{name}/")
        else:
            yield f"{above}{name}"


def test_state_keys(resumed: tuple[str, Path]) -> None:
    family, run = resumed
    _, state, _ = newest(run / "checkpoints", warn=pytest.fail)  # type: ignore[misc]
    assert sorted(names_in(state)) == sorted(FROZEN["state"][family])


def test_files_and_schema_fields(resumed: tuple[str, Path]) -> None:
    family, run = resumed
    assert set(FROZEN["files"][family]) <= {path.name for path in run.iterdir()}
    for row in read_events(run / "events.jsonl"):
        assert set(FROZEN["events"][family].get(row["event"], ())) <= set(row), row["event"]
    for name, fields in FROZEN["json"][family].items():
        assert set(fields) <= set(json.loads((run / name).read_text())), name


def test_random_streams() -> None:
    """Each is still given to some call."""
    given: set[str] = set()
    for path in Path(hotloop.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                given |= {
                    one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)
                }
    assert set(FROZEN["streams"]) <= given


@pytest.mark.parametrize("family", FAMILIES)
def test_a_run_with_the_settings_of_schema_1_ends_like_one_that_never_stopped(family: str, tmp_path: Path) -> None:
    old = shutil.copytree(FIXTURES / family, tmp_path / "old")
    (saved,) = (old / "checkpoints").iterdir()
    tree = Run.open(old).settings() | {"run_dir": str(tmp_path / "whole")}
    tree["checkpoint"]["keep"] = 9
    whole = hotloop.train(hotloop.preset(tree.pop("algorithm"), **tree), verbose=False)
    if digest(load(tmp_path / "whole" / "checkpoints" / saved.name)[0]) != digest(load(saved)[0]):
        pytest.skip("this machine or these versions round otherwise than those of the fixture")
    assert hotloop.resume(old, verbose=False)["digest"] == whole["digest"]


@pytest.mark.parametrize("family", FAMILIES)
def test_an_agent_of_a_run_with_the_settings_of_schema_1_acts(family: str) -> None:
    agent = hotloop.load(FIXTURES / family)
    assert agent.act([0.1] * (4 if family == "dqn" else 3)) is not None
