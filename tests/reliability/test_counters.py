"""Runs whose counters stand beyond what a float or a 32-bit number holds: not one step is lost or made up."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest
import tomli_w

import hotloop
from hotloop.runs import checkpoint
from tests.loop.small_runs import Interrupt
from tests.reliability.killing import FAMILIES, outcome, rows

OFFSETS = {"2^24": 2**24, "2^31": 2**31, "fifteen digits": 10**15 - 700, "2^53": 2**53 + 1}
CASES = [
    pytest.param(family, offset, id=f"{family}, {name}")
    for family in ("dqn-native", "ppo-native")
    for name, offset in OFFSETS.items()
]


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of each family, broken off in its first half."""
    folder = tmp_path_factory.mktemp("begun")
    for family in ("dqn-native", "ppo-native"):
        preset, tree = FAMILIES[family]
        settings = hotloop.preset(preset, **{**tree, "run_dir": str(folder / family), "checkpoint": {"every": 128}})
        per_iteration = settings.env.num_envs * (16 if "ppo" in family else 1)
        with pytest.raises(ZeroDivisionError):
            hotloop.train(settings, progress=Interrupt(300 // per_iteration + 1))
    return {path.name: path for path in folder.iterdir()}


def move_on(run_dir: Path, offset: int) -> None:
    """Add `offset` to every counter of a run and to where it is to end."""
    found = checkpoint.newest(run_dir / "checkpoints", pytest.fail)
    assert found is not None
    newest, state, meta = found
    state["counters"] = {name: value + offset for name, value in state["counters"].items()}
    name = checkpoint.checkpoint_name(state["counters"]["env_steps"])
    meta["settings"]["total_env_steps"] += offset
    moved = checkpoint.save(run_dir / "checkpoints", name, state, meta)
    for other in newest.parent.iterdir():
        if other != moved:
            shutil.rmtree(other)
    stored = tomllib.loads((run_dir / "settings.toml").read_text())
    stored["total_env_steps"] += offset
    (run_dir / "settings.toml").write_text(tomli_w.dumps(stored))


@pytest.mark.parametrize(("family", "offset"), CASES)
def test_counters_stay_exact(family: str, offset: int, begun: dict[str, Path], tmp_path: Path) -> None:
    near, far, broken = (shutil.copytree(begun[family], tmp_path / name) for name in ("near", "far", "broken"))
    move_on(far, offset)
    move_on(broken, offset)
    result, moved = hotloop.resume(near), hotloop.resume(far)
    assert (moved["env_steps"], moved["updates"]) == (result["env_steps"] + offset, result["updates"] + offset)
    logged = [row["env_steps"] - offset for row in rows(far) if row.get("env_steps", 0) > offset]
    assert logged[-1] == result["env_steps"]
    assert logged == sorted(logged)
    with pytest.raises(ZeroDivisionError):
        hotloop.resume(broken, progress=Interrupt(180 if "dqn" in family else 12))
    hotloop.resume(broken)
    assert outcome(broken) == outcome(far)
    last = checkpoint.newest(far / "checkpoints", pytest.fail)
    assert last is not None
    assert last[1]["counters"]["env_steps"] == moved["env_steps"], "an older checkpoint passes for the newest"
