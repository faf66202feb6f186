"""Verdicts on scripts, resampled from real trainings of each of three arms, which were made once and are kept in
docs/results/compare-scripts.json: our parts in the place of a program's own, and a learning rate ten times too high."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hotloop.comparison.arms import Arm
from hotloop.comparison.measures import RunMeasures
from hotloop.comparison.summary import ArmSummary, common_span, default_margin
from hotloop.comparison.verdict import contrasts

KEPT = Path(__file__).parents[2] / "docs" / "results" / "compare-scripts.json"
SEEDS = 10
DRAWS = [100, pytest.param(1_000, marks=pytest.mark.slow)]


def read_runs(arm: dict[str, Any]) -> list[RunMeasures]:
    env_steps = np.array(arm["env_steps"], dtype=np.int64)
    return [
        RunMeasures(
            path=Path(f"seed-{seed}"),
            seed=seed,
            score=curve[-1],
            last_score=curve[-1],
            env_steps=int(env_steps[-1]),
            updates=0,
            seconds=1.0,
            training_seconds=1.0,
            env_steps_per_second=1.0,
            curve_env_steps=env_steps[-len(curve) :],
            curve_seconds=env_steps[-len(curve) :] / env_steps[-1],
            curve_score=np.array(curve),
        )
        for seed, curve in enumerate(arm["curves"])
    ]


def verdicts(other: str, draws: int, seeds: int = SEEDS) -> Counter[str]:
    """How often `other` is called what against `plain`, as `hotloop compare` would with so many seeds of each."""
    kept = {label: read_runs(arm) for label, arm in json.loads(KEPT.read_text())["arms"].items()}
    generator = np.random.default_rng(5)
    found: Counter[str] = Counter()
    for _ in range(draws):
        arms = {}
        for label in ("plain", other):  # other seeds in each: nothing is gained by pairing
            arms[label] = [kept[label][place] for place in generator.choice(len(kept[label]), seeds, replace=False)]
        span = common_span(list(arms.values()))
        summaries = [ArmSummary(Arm(label, label, (), {}), runs, None, span) for label, runs in arms.items()]
        (contrast,) = contrasts(summaries, default_margin(summaries[0]), repeats=200)
        found[contrast.learning] += 1
    return found


def test_what_is_kept_are_forty_runs_or_more_of_each_arm() -> None:
    kept = json.loads(KEPT.read_text())
    assert {label: len(arm["curves"]) for label, arm in kept["arms"].items()} == {"plain": 80, "exact": 80, "lr-10": 40}


@pytest.mark.parametrize("draws", DRAWS)
def test_our_parts_in_the_place_of_its_own_are_not_judged_worse(draws: int) -> None:
    found = verdicts("exact", draws)
    assert found["worse"] <= 0.05 * draws, found


@pytest.mark.parametrize("draws", DRAWS)
def test_a_learning_rate_ten_times_too_high_is_judged_worse(draws: int) -> None:
    found = verdicts("lr-10", draws)
    assert found["worse"] >= 0.95 * draws, found
