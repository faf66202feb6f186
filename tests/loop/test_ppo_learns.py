"""Presets of the actor-critic family reach what their workload calls solved."""

from __future__ import annotations

from pathlib import Path

import pytest

import hotloop

SOLVED = {"cartpole-ppo": 475.0, "cartpole-a2c": 475.0, "pendulum-ppo": -200.0}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", SOLVED)
def test_a_preset_solves_its_workload(name: str, seed: int, tmp_path: Path) -> None:
    result = hotloop.train(hotloop.preset(name, seed=seed, run_dir=str(tmp_path / "run")))
    assert result["evaluation"]["mean_return"] >= SOLVED[name]
