"""Run directories written by hand, for pages that need no training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hotloop.core.settings import as_tree
from hotloop.presets.dqn_settings import DQNSettings
from hotloop.runs.directory import Run


def rows(evaluations: int = 3) -> list[dict[str, Any]]:
    """Per 100 env steps: 1 s of updates, 0.5 s of evaluation; start-up took 5 s. Returns 10, 30, 20, 30 ..."""
    made: list[dict[str, Any]] = [{"event": "start", "machine": {"python": "3.12.3", "torch_threads": 1}}]
    for number in range(1, evaluations + 1):
        phases = {"start-up": 5.0, "update": 1.0 * number, "evaluate": 0.5 * (number - 1)}
        counters = {"env_steps": 100 * number, "updates": 50 * number, "episodes": 4 * number}
        made.append(
            {"event": "progress", **counters, "mean_return": 2.0 * number, "loss": 1.0 / number, "epsilon": None}
            | {"seconds": sum(phases.values()), "phases": phases}
        )
        phases = phases | {"evaluate": 0.5 * number}
        value = 10.0 if number == 1 else 30.0 if number % 2 == 0 else 20.0
        made.append(
            {"event": "evaluation", "env_steps": 100 * number, "episodes": 20, "mean_return": value, "std_return": 2.0}
            | {"success_rate": 0.1 * number, "seconds": sum(phases.values()), "phases": phases}
        )
    return made


def result() -> dict[str, Any]:
    phases = {name: {"seconds": value, "share": 0.0} for name, value in (("start-up", 5.0), ("update", 3.0))}
    evaluation = {"episodes": 100, "mean_return": 28.5, "std_return": 1.5, "success_rate": 0.25}
    counters = {"env_steps": 300, "updates": 150, "episodes": 12, "seconds": 8.0}
    return counters | {"phases": phases, "evaluation": evaluation, "digest": "0123456789abcdef" * 4}


def write_run(
    path: Path, label: str = "cartpole-dqn", *, events: str | None = None, finished: bool = True, **settings: Any
) -> Path:
    with Run.create(path, label, as_tree(DQNSettings(total_env_steps=400, **settings))) as run:
        lines = "".join(json.dumps(row) + "\n" for row in rows()) if events is None else events
        run.events.write_text(lines)
        run.write_json("lane.json", {"lane": "native", "reason": "a multilayer network on a CPU"})
        if finished:
            run.write_json("result.json", result())
    return path
