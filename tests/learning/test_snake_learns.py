"""How well the snake presets play after a minute or so of training; the figures are in docs/results/snake.md."""

from __future__ import annotations

from pathlib import Path

import pytest

import hotloop


def mean_score(name: str, folder: Path, **settings: object) -> float:
    result = hotloop.train(hotloop.preset(name, **settings, run_dir=str(folder / "run")))
    return float(result["evaluation"]["mean_score"])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_three_thousand_episodes_beat_the_published_score(seed: int, tmp_path: Path) -> None:
    assert mean_score("snake-dqn", tmp_path, total_episodes=3_000, seed=seed) > 25.44


@pytest.mark.slow
def test_half_a_million_env_steps_make_a_demonstration(tmp_path: Path) -> None:
    assert mean_score("snake-dqn", tmp_path, total_env_steps=500_000) > 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_foresight_beats_the_best_published_score(seed: int, tmp_path: Path) -> None:
    assert mean_score("snake-foresight", tmp_path, seed=seed) > 40
