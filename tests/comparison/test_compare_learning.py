"""Real training, judged: another lane changes nothing, a spoilt learning rate is caught."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hotloop
from hotloop.cli import compare as verb
from hotloop.comparison.measures import RunMeasures, read_measures
from hotloop.comparison.summary import ArmSummary, common_span, default_margin
from hotloop.comparison.verdict import contrasts
from tests.comparison.synthetic_runs import make_arm

SHORT: dict[str, Any] = {
    "total_env_steps": 4_000,
    "learning_starts": 200,
    "updates_per_env_step": 0.25,
    "batch_size": 32,
    "network": {"hidden": [64]},
    "exploration": {"over": 1_500},
    "evaluation": {"every": 500, "episodes": 5, "final_episodes": 20},
    "target": {"every": 50},
}


def train_here(folder: str, lane: str, lr: float) -> None:
    """Five seeds, in this process: 4,000 env steps take less time than starting a process does."""
    for seed in range(5):
        own = {"learner": {"lane": lane}, "optimizer": {"learning_rate": lr}, "run_dir": f"{folder}/seed-{seed}"}
        hotloop.train(hotloop.preset("cartpole-dqn", **SHORT, **own, seed=seed))


@pytest.mark.timeout(1_800)  # it trains: on one core among busy neighbors that takes its time
def test_another_lane_shows_no_difference_and_a_spoilt_learning_rate_is_caught(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, lane, lr in (("native", "native", 1e-2), ("eager", "eager", 1e-2), ("spoilt", "native", 1.0)):
        train_here(f"there/{name}", lane, lr)
    capsys.readouterr()
    words = ["there/native", "there/eager", "there/spoilt", "--out", "out", "--html", "page.html", "--json", "--quiet"]
    assert verb.run(words) == 0
    answer = json.loads(capsys.readouterr().out)
    lane, spoilt = answer["contrasts"]
    assert lane["learning"] in ("as good", "unseen"), lane
    assert spoilt["learning"] == "worse", spoilt
    assert answer["differing_settings"]["optimizer.learning_rate"] == [1e-2, 1e-2, 1.0]
    assert "orse by" in (run_folder / "page.html").read_text()


@pytest.mark.slow
def test_the_eager_lane_differs_from_the_native_one_in_at_most_one_of_twenty_comparisons(run_folder: Path) -> None:
    """Random eights of 24 seeds each; they share seeds, so that this is no count of independent repeats."""
    longer = SHORT | {"total_env_steps": 6_000, "exploration": {"over": 2_000}, "optimizer": {"learning_rate": 1e-2}}
    runs: dict[str, list[RunMeasures]] = {"native": [], "eager": []}
    for lane, found in runs.items():
        for seed in range(24):
            own = {"learner": {"lane": lane}, "run_dir": f"{lane}/seed-{seed}", "seed": seed}
            hotloop.train(hotloop.preset("cartpole-dqn", **longer, **own))
            found.append(read_measures(Path(own["run_dir"]), "mean_return"))
    span = common_span(list(runs.values()))
    generator = np.random.default_rng(0)
    different = 0
    for _ in range(200):
        eights = [[found[place] for place in generator.permutation(24)[:8]] for found in runs.values()]
        arms = [ArmSummary(make_arm(lane), eight, None, span) for lane, eight in zip(runs, eights, strict=True)]
        (contrast,) = contrasts(arms, default_margin(arms[0]), repeats=300)
        different += contrast.learning in ("better", "worse", "mixed")
    assert different / 200 <= 0.05


@pytest.mark.slow
def test_ten_times_the_learning_rate_is_caught(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The preset as it is, eight seeds: with the higher rate it gets there sooner, and does not stay there."""
    words = ["cartpole-dqn", "cartpole-dqn", "--optimizer.learning-rate", "5e-3", "--seeds", "8", "--out", "there"]
    assert verb.run([*words, "--json", "--quiet"]) == 0
    (contrast,) = json.loads(capsys.readouterr().out)["contrasts"]
    assert contrast["learning"] == "worse", contrast
    final, area = contrast["measures"]
    assert (final["finding"], area["finding"]) == ("equal", "worse")
