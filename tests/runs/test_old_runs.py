"""A run of every schema version that was released still loads, and goes on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import hotloop
from hotloop.runs.checkpoint import load, newest
from hotloop.runs.digest import digest
from hotloop.runs.directory import Run

FIXTURES = Path(__file__).parents[1] / "fixtures"
SAVED = "2884d7fcfb1eb01349241ec5273de44da308a9d8721e9e8064d08a889ba89977"
"""The digest of the state in the fixture's checkpoint, as the version that wrote it computed it."""


@pytest.fixture
def first_version(tmp_path: Path) -> Path:
    """Schema 1: the replay in one file. Killed at 400 env steps, before its result; its checkpoint is at 200."""
    return shutil.copytree(FIXTURES / "runs-v1" / "dqn", tmp_path / "run")


def test_a_checkpoint_of_schema_1_is_what_it_was(first_version: Path):
    state, _ = load(first_version / "checkpoints" / "000000000000200")
    assert json.loads((first_version / "checkpoints" / "000000000000200" / "manifest.json").read_text())["schema"] == 1
    assert digest(state) == SAVED


def test_a_run_of_schema_1_is_resumed_and_goes_on_with_todays_checkpoints(first_version: Path):
    result = hotloop.resume(first_version)
    assert result["env_steps"] == 400
    path, state, _ = newest(first_version / "checkpoints", warn=pytest.fail)
    assert path.name == "000000000000400"
    assert (path / "replay.000000.segment").is_file()
    assert digest(state) == result["digest"]


def test_an_agent_of_schema_1_acts(first_version: Path):
    assert hotloop.load(first_version).act([0.0, 0.0, 0.0, 0.0]) in (0, 1)


def test_a_resumed_run_of_schema_1_ends_like_one_that_never_stopped(first_version: Path, tmp_path: Path):
    tree = Run.open(first_version).settings() | {"run_dir": str(tmp_path / "whole")}
    tree["checkpoint"]["keep"] = 3
    whole = hotloop.train(hotloop.preset("cartpole-dqn", **tree))
    halfway, _ = load(tmp_path / "whole" / "checkpoints" / "000000000000200")
    if digest(halfway) != SAVED:
        pytest.skip("this machine or these versions round otherwise than those of the fixture")
    assert hotloop.resume(first_version)["digest"] == whole["digest"]
