"""Actions that SAC cannot draw: a number whose lowest value is its highest."""

from pathlib import Path

import pytest

import hotloop
from hotloop.core.errors import EnvError

FILE = Path(__file__).parents[1] / "envs" / "planted_envs.py"


def test_a_number_of_one_value_is_named_before_anything_is_trained(tmp_path):
    env = {"id": f"{FILE}:OneValue"}
    with pytest.raises(EnvError, match="number 1 of the actions of .*:OneValue` can be 0.5 and nothing else") as told:
        hotloop.train(hotloop.preset("pendulum-sac", env=env, run_dir=str(tmp_path / "run")), verbose=False)
    assert "leave it out of the action space" in told.value.hint
    assert not (tmp_path / "run").exists()
