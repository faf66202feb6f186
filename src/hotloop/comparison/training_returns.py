"""Arms judged by the episodes of their training, whatever program made them: scripts, and our own runs beside them.

The curve is the mean return of the last 100 episodes, as our runs log it; the final score is where it ends.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hotloop.comparison.measures import RunMeasures, before_updates, training_seconds
from hotloop.comparison.scripts import training_envs
from hotloop.core.errors import RunError
from hotloop.core.types import Array
from hotloop.runs.directory import EVENTS, Run
from hotloop.runs.events import read_events
from hotloop.runs.files import read_json_table
from hotloop.scale.work import SCRIPT, read_trace

WINDOW = 100
"""Episodes, as in the log rows of our own runs."""
POINTS = 50


def read_script_run(folder: Path) -> RunMeasures:
    """What the recorder saw of one run of a script."""
    trace, seed = read_trace(folder), int(read_json_table(folder / SCRIPT)["seed"])
    training = training_envs(trace["envs"])
    rows = [row for row in read_events(folder / EVENTS) if row.get("env") in training] if _has_lines(folder) else []
    if not rows:
        seen = ", ".join(sorted({str(env["name"]) for env in trace["envs"]})) or "none"
        raise RunError(
            f"{folder}: no training episode was seen to end (envs seen: {seen})",
            "where the recorder cannot see the env, `--scores FILE:COLUMN` reads what the program writes",
        )
    env_steps = sum(int(env["env_steps"]) for env in trace["envs"] if env["number"] in training)
    ends, times, returns = (np.array([float(row[name]) for row in rows]) for name in ("env_steps", "seconds", "return"))
    curve = running_means(ends, times, returns, env_steps)
    seconds = float(trace["training_seconds"])
    untrained = [float(row["return"]) for row in rows if row.get("updates") == 0] if trace["updates"] else []
    return RunMeasures(
        path=folder,
        seed=seed,
        score=float(curve[2][-1]),
        last_score=float(curve[2][-1]),
        env_steps=env_steps,
        updates=int(trace["updates"]),
        seconds=float(trace["seconds"]),
        training_seconds=seconds,
        env_steps_per_second=env_steps / max(seconds, 1e-9),
        curve_env_steps=curve[0].astype(np.int64),
        curve_seconds=curve[1],
        curve_score=curve[2],
        untrained_until=int(ends[len(untrained) - 1]) if untrained else 0,
        untrained_score=float(np.mean(untrained[-WINDOW:])) if untrained else None,
    )


def _has_lines(folder: Path) -> bool:
    return (folder / EVENTS).is_file()


def running_means(
    env_steps: Array, seconds: Array, returns: Array, end: int, window: int = WINDOW
) -> tuple[Array, Array, Array]:
    """The mean of the last `window` returns at `POINTS` evenly spaced env steps up to `end`, from the end of the first
    episode on; the seconds are those of the last episode that had ended there."""
    places = np.linspace(end / POINTS, end, POINTS)
    ended = np.searchsorted(env_steps, places, side="right")
    places, ended = places[ended > 0], ended[ended > 0]
    sums = np.concatenate([[0.0], np.cumsum(returns)])
    first = np.maximum(0, ended - window)
    return places, seconds[ended - 1], (sums[ended] - sums[first]) / (ended - first)


def read_training_of(path: Path, measure: str) -> RunMeasures:
    """One of our own runs, by its training episodes."""
    run = Run.open(path)
    result, events = run.result(), list(read_events(run.events))
    rows = [row for row in events if row.get("event") == "progress" and isinstance(row.get(measure), int | float)]
    if not rows:
        raise RunError(
            f"{path} has no log row with `{measure}` of training episodes", "train for longer, or log more often"
        )
    score = float(rows[-1][measure])
    return RunMeasures(
        path=path,
        seed=int(run.settings()["seed"]),
        score=score,
        last_score=score,
        env_steps=int(result["env_steps"]),
        updates=int(result["updates"]),
        seconds=float(result["seconds"]),
        training_seconds=training_seconds(result),
        env_steps_per_second=float(result["env_steps_per_second"]),
        curve_env_steps=np.array([row["env_steps"] for row in rows], dtype=np.int64),
        curve_seconds=np.array([training_seconds(row) for row in rows]),
        curve_score=np.array([float(row[measure]) for row in rows]),
        **before_updates(events, measure),
    )
