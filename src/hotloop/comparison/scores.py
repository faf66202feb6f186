"""Scores that a program writes by itself: `FILE:COLUMN`, with `{seed}` in the path, instead of what the recorder sees.

As an arm of its own these are runs that somebody has made, by whatever program; beside commands (`--scores`) they say
where each run leaves its scores. CSV, JSON lines, Stable-Baselines3's files and TensorBoard's (`runs/logs.py`).
"""

from __future__ import annotations

import glob
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hotloop.comparison.measures import RunMeasures
from hotloop.comparison.scripts import SEED
from hotloop.comparison.training_returns import WINDOW, running_means
from hotloop.core.errors import RunError, SettingsError
from hotloop.runs.files import read_json_table
from hotloop.runs.logs import Log, kind_by_name, read_log
from hotloop.runs.tensorboard import event_files
from hotloop.scale.work import ORDER, SCRIPT, read_trace

ARM = "{arm}"
PER_EPISODE = frozenset({"r", "charts/episodic_return", "episodic_return", "episode_return", "episode_reward"})
"""Columns with a row for each episode: the mean of the last 100 is taken, as of a script's own episodes."""
HINT = (
    f"`FILE:COLUMN` with `{SEED}` in the path: `logs/{SEED}/monitor.csv:r`, or a folder of event files, "
    f"`runs/dqn__{SEED}__*:charts/episodic_return`"
)
_MOST_NAMED = 40


@dataclass(frozen=True)
class Scores:
    """Where an arm's scores are: `*` in the path stands for anything."""

    path: str
    column: str

    def settings(self) -> dict[str, Any]:
        return {"scores": self.path, "column": self.column}

    def of_arm(self, label: str) -> Scores:
        return replace(self, path=self.path.replace(ARM, label))

    def there(self) -> dict[int, Path]:
        """Every file that is there, by its seed, in order."""
        before, *rest = map(_as_pattern, self.path.split(SEED))
        pattern = before + r"(\d+)" + r"\1".join(rest)  # a seed in several places is the same in all of them
        found: dict[int, Path] = {}
        for name in sorted(glob.glob(_with_seed(self.path, "*"))):
            match = re.fullmatch(pattern, name)
            if match is not None:
                self._keep(found, int(match[1]), Path(name))
        return dict(sorted(found.items()))

    def _keep(self, found: dict[int, Path], seed: int, path: Path) -> None:
        if seed in found:
            raise RunError(f"{found[seed]} and {path} are both of seed {seed}", "name one of them without `*`")
        found[seed] = path

    def of_seed(self, seed: int) -> Path:
        found = sorted(glob.glob(_with_seed(self.path, str(seed))))
        if len(found) != 1:
            many = f" ({', '.join(found[:3])})" if found else ""
            raise RunError(f"{len(found)} files match {_with_seed(self.path, str(seed))}{many}, expected one", HINT)
        return Path(found[0])


def _with_seed(path: str, seed: str) -> str:
    """As `glob` reads it: only `*` is a wildcard."""
    return glob.escape(path).replace("[*]", "*").replace(SEED, seed)


def _as_pattern(text: str) -> str:
    return ".*".join(re.escape(part) for part in text.split("*"))


def parse_scores(text: str) -> Scores:
    path, colon, column = text.rpartition(":")
    if not colon:
        path, column = text, "r" if kind_by_name(Path(text).name) == "monitor" else ""
    if SEED not in path or not column:
        missing = f"has no `{SEED}` in its path" if SEED not in path else "names no column"
        raise SettingsError(f"`{text}` {missing}", HINT)
    return Scores(path, column)


def find_files(text: str) -> tuple[Scores, dict[int, Path]]:
    """An arm of files that are there already; their column is looked for at once."""
    scores = parse_scores(text)
    found = scores.there()
    if not found:
        raise SettingsError(f"no file matches {scores.path}", HINT)
    for path in found.values():
        _points(read_log(path), scores.column, path)
    return scores, found


def is_file_arm(word: str) -> bool:
    return SEED in word and " " not in word and not word.startswith("-") and not word.endswith(".py")


def _points(log: Log, column: str, path: Path) -> Any:
    """Env steps, seconds and score of every row that has one, by env steps: [3, rows]."""
    rows = [row for _, row in log.rows if column in row]
    if column == "mean_return":  # our name for what other programs call otherwise: of training where there is both
        rows = [row for event, row in log.rows if column in row and event == "progress"] or rows
    if not rows:
        names = sorted({name for _, row in log.rows for name in row} - {"env_steps", "seconds"})
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        raise SettingsError(
            f"{path} has no column `{column}`",
            f"it has {', '.join(names[:_MOST_NAMED]) or 'no numbers'}{more}",
        )
    rows.sort(key=lambda row: row["env_steps"])
    return np.array([[row["env_steps"], row.get("seconds", math.nan), row[column]] for row in rows]).T


def read_scores(scores: Scores, path: Path, seed: int) -> RunMeasures:
    """One run by what it wrote: the curve is the mean of its last rows, the final score is where it ends.

    Where the file does not tell seconds there are none, and nothing is said about speed.
    """
    log = read_log(path)
    env_steps, seconds, score = _points(log, scores.column, path)
    per_episode = scores.column in PER_EPISODE or kind_by_name(path.name) == "monitor"
    window = WINDOW if per_episode else max(1, min(WINDOW, len(score) // 10))
    places, times, means = running_means(env_steps, seconds, score, int(env_steps[-1]), window)
    if len(means) == 0:
        raise RunError(f"{path} has no score at a place above 0", "its steps must grow")
    took = float(seconds[-1]) if log.timed and seconds[-1] > 0 else math.nan
    return RunMeasures(
        path=path,
        seed=seed,
        score=float(means[-1]),
        last_score=float(means[-1]),
        env_steps=int(env_steps[-1]),
        updates=0,
        seconds=took,
        training_seconds=took,
        env_steps_per_second=float(env_steps[-1]) / took,
        curve_env_steps=places.astype(np.int64),
        curve_seconds=times if log.timed else np.full(len(times), math.nan),
        curve_score=means,
    )


def read_scores_of_command(scores: Scores, folder: Path) -> RunMeasures:
    """What a command has left; a file that is older than its run is none of its own."""
    seed, trace = int(read_json_table(folder / SCRIPT)["seed"]), read_trace(folder)
    path = scores.of_seed(seed)
    if path.is_dir() and not event_files(path):
        raise RunError(f"{path} holds no event file of TensorBoard's", HINT)
    newest = max(file.stat().st_mtime_ns for file in (event_files(path) if path.is_dir() else [path]))
    if newest < (folder / ORDER).stat().st_mtime_ns:
        raise RunError(f"{path} was written before the run of seed {seed} began", "is it the file that the arm writes?")
    found = read_scores(scores, path, seed)
    return replace(found, path=folder, seconds=float(trace["seconds"]), updates=int(trace["updates"]))
