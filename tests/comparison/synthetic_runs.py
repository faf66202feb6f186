"""Run directories written by hand, for tests that need no training."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hotloop.comparison.arms import Arm
from hotloop.core.settings import as_tree
from hotloop.presets.dqn_settings import DQNSettings
from hotloop.runs.directory import Run


def make_arm(label: str = "arm", **settings: Any) -> Arm:
    return Arm(label, "cartpole-dqn", (), as_tree(DQNSettings(**settings)))


def write_run(path: Path, arm: Arm, seed: int, scores: Sequence[float], *, finished: bool = True) -> Path:
    """Evaluations every 100 env steps; each 100 take 1 s of training, 2 s of evaluation and, once, 5 s of start-up.

    The best weights are judged at the highest score, the last ones at the last.
    """
    settings = dict(arm.settings) | {"seed": seed, "run_dir": str(path)}
    with Run.create(path, arm.label, settings) as run:
        rows = [{"event": "start"}] + [_row(number, score) for number, score in enumerate(scores, start=1)]
        run.events.write_text("".join(json.dumps(row) + "\n" for row in rows))
        if finished:
            run.write_json("result.json", _result(scores))
    return path


def _row(number: int, score: float) -> dict[str, Any]:
    return {"event": "evaluation", "env_steps": 100 * number, "mean_return": score, "mean_score": score / 10} | {
        "seconds": 5.0 + 3.0 * number,
        "phases": {"start-up": 5.0, "update": 1.0 * number, "evaluate": 2.0 * number},
    }


def _judged(score: float) -> dict[str, float]:
    return {"episodes": 100, "mean_return": score, "std_return": 0.0, "mean_score": score / 10}


def _result(scores: Sequence[float]) -> dict[str, Any]:
    number = len(scores)
    phases = {"start-up": 5.0, "update": 1.0 * number, "evaluate": 2.0 * number}
    return {
        "env_steps": 100 * number,
        "updates": 50 * number,
        "episodes": number,
        "run": "somewhere",
        "digest": "0" * 64,
        "lane": "eager",
        "seconds": 5.0 + 3.0 * number,
        "env_steps_per_second": 100.0,
        "phases": {name: {"seconds": seconds, "share": 0.0} for name, seconds in phases.items()},
        "evaluation": _judged(max(scores)),
        "final_evaluation": _judged(scores[-1]),
    }
