"""Every preset loads strictly, and trains as far as a test can wait."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import hotloop
from hotloop.core.errors import MissingExtraError
from hotloop.presets import preset_names

SHORT = {"total_env_steps": 600, "warmup_env_steps": 200, "evaluation": {"episodes": 2, "final_episodes": 2}}


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_trains(name: str, tmp_path: Path) -> None:
    settings = hotloop.preset(name, **SHORT, run_dir=str(tmp_path / "run"))
    if name.startswith("lunarlander") and importlib.util.find_spec("Box2D") is None:
        with pytest.raises(MissingExtraError, match=r"hotloop\[box2d\]"):
            hotloop.train(settings)
    else:
        assert hotloop.train(settings)["updates"] > 0


def test_cartpole_slm_makes_exactly_the_updates_of_the_measured_case() -> None:
    from hotloop.core.values import exact_fraction
    from hotloop.loop.cadence import UpdatePlan

    settings = hotloop.preset("cartpole-slm")
    plan = UpdatePlan(
        exact_fraction(settings.updates_per_env_step), settings.train_every, settings.warmup_env_steps, 64
    )
    calls = [list(plan.due(frame - 1, frame)) for frame in range(1, settings.total_env_steps + 1)]
    events = [call for call in calls if call]
    assert len(events) == 2_492
    assert sum(map(sum, events)) == 79_744
