"""Folders of runs that nobody trained, as many and as long as a test or a measurement wants.

python -m tests.dashboard.synthetic FOLDER --arms 125 --seeds 8 --rows 830
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

SETTINGS: dict[str, Any] = {
    "algorithm": "dqn",
    "seed": 0,
    "total_env_steps": 100_000,
    "env": {"id": "cartpole", "num_envs": 16},
    "optimizer": {"learning_rate": 5e-4},
}


def write_run(
    path: Path,
    *,
    seed: int = 0,
    lr: float = 5e-4,
    rows: int = 100,
    evaluations: int = 10,
    height: float = 400.0,
    finished: bool = True,
    digest: str = "",
) -> Path:
    """A run whose return climbs to about `height`."""
    path.mkdir(parents=True)
    settings = {**SETTINGS, "seed": seed, "optimizer": {"learning_rate": lr}}
    started = {"schema": 1, "label": "cartpole-dqn", "started": "2026-01-01T12:00:00+00:00", "hotloop": "0.1.0"}
    (path / "run.json").write_text(json.dumps(started))
    lines = [json.dumps(row, separators=(",", ":")) for row in event_rows(seed, rows, evaluations, height)]
    (path / "events.jsonl").write_text("\n".join(lines) + "\n")
    (path / "lock").touch()
    if finished:
        (path / "result.json").write_text(json.dumps(_result(path, height + seed, rows, digest or f"{seed:064x}")))
    (path / "settings.toml").write_text(tomli_w.dumps(settings))
    return path


def event_rows(seed: int, rows: int, evaluations: int, height: float) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    yield {"event": "start", "schema": 1, "time": 1.7e9, "machine": {"python": "3.11.0", "torch_threads": 1}}
    total, every = SETTINGS["total_env_steps"], max(1, rows // max(1, evaluations))
    for number in range(1, rows + 1):
        share = number / rows
        env_steps, seconds = int(total * share), 60.0 * share
        mean_return = height * (1 - np.exp(-4 * share)) + rng.normal(0, height / 20)
        phases = {"act": 0.2, "env": 0.2, "update": 0.4, "evaluate": 0.15, "start-up": 0.05}
        clock = {
            "seconds": round(seconds, 6),
            "env_steps_per_second": round(env_steps / (0.8 * seconds), 3),
            "phases": {name: round(part * seconds, 6) for name, part in phases.items()},
        }
        counters = {"env_steps": env_steps, "updates": env_steps // 4, "episodes": number * 3}
        losses = {"loss": 1 / number, "q_mean": mean_return / 10, "gradient_norm": 1.0, "epsilon": 1 - share}
        yield {
            "event": "progress",
            **counters,
            "mean_return": mean_return,
            "mean_length": mean_return,
            **losses,
            **clock,
        }
        if evaluations and number % every == 0:
            judged = {"episodes": 20, "mean_return": mean_return, "std_return": 10.0, "mean_length": mean_return}
            yield {"event": "evaluation", "env_steps": env_steps, **judged, **clock}


def _result(path: Path, score: float, rows: int, digest: str) -> dict[str, Any]:
    judged = {"episodes": 100, "mean_return": score, "std_return": 10.0, "mean_length": score}
    phases = {"act": 12.0, "env": 12.0, "update": 24.0, "evaluate": 9.0, "start-up": 3.0}
    return {
        "schema": 1,
        "run": str(path),
        "env_steps": SETTINGS["total_env_steps"],
        "updates": SETTINGS["total_env_steps"] // 4,
        "episodes": 3 * rows,
        "seconds": 60.0,
        "env_steps_per_second": 2083.3,
        "overall_env_steps_per_second": 1666.7,
        "phases": {name: {"seconds": part, "share": part / 60} for name, part in phases.items()},
        "evaluation_env_steps": 1000,
        "evaluation": judged,
        "final_evaluation": judged,
        "lane": "native",
        "precision": "float32",
        "digest": digest,
    }


def write_folder(folder: Path, arms: int, seeds: int, rows: int) -> int:
    """Arms of different learning rates; the number of points in all."""
    for arm in range(arms):
        for seed in range(seeds):
            lr = round(1e-4 * (1 + arm), 6)
            height = 200.0 + 250.0 * (arm % 7) / 7
            write_run(folder / f"lr-{arm:03}" / f"seed-{seed}", seed=seed, lr=lr, rows=rows, height=height)
    return arms * seeds * (rows * 15 + 10 * 9)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    for name, default in (("arms", 125), ("seeds", 8), ("rows", 660)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    print(f"{write_folder(given.folder, given.arms, given.seeds, given.rows):,} points")
