"""`deploy`: a trained durotaxis agent on substrates of choice, and a file of what every node was and did."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.core.errors import SettingsError
from hotloop.runs.files import explained

if TYPE_CHECKING:
    from hotloop.core.types import Array, Policy, VecEnv
    from hotloop.presets.registry import RunSettings
    from hotloop.runs.directory import Run

SUBSTRATES = ("linear", "exponential", "random")
COLUMNS = ("substrate", "episode", "step", "id", "x", "y", "intensity", "age", "action")


def deploy(
    run_dir: str | Path,
    *,
    substrate: str = "",
    m: float = 0.0,
    b: float = 0.0,
    episodes: int = 100,
    seed: int = 0,
    log: str | Path | None = None,
) -> dict[str, Any]:
    """Let a run's best agent migrate, and say how it fared: the object that `hotloop durotaxis deploy --json` prints.

        answer = deploy("runs/durotaxis-ppo-20260101-120000", substrate="exponential", m=0.008, log="nodes.csv")
        answer["substrates"]["exponential"]["success_rate"]

    On one `substrate` (linear, exponential, random) or on all three; `m` is its slope (linear) or rate (exponential),
    `b` its stiffness at the left, both as usual where 0. `log` names a `.jsonl` or `.csv` file for a row of `COLUMNS`
    for each node at each step; a file of that name is replaced.
    """
    _require_sense(substrate, m, b, episodes, log)
    from hotloop.presets.registry import settings_of
    from hotloop.runs.directory import Run

    run = Run.open(run_dir)
    settings = settings_of(run)
    if settings.env.id != "durotaxis":
        raise SettingsError(
            f"{run_dir} was trained on `{settings.env.id}`, which has no substrate", "`hotloop evaluate` plays it"
        )
    with ExitStack() as cleanup:
        file = cleanup.enter_context(NodeFile(Path(log))) if log else None
        names = [substrate] if substrate else SUBSTRATES
        results = {
            name: _migrate(run, settings, {"substrate": name, "m": m, "b": b}, episodes, seed, file) for name in names
        }
    told: dict[str, Any] = {"run": str(run_dir), "substrates": results}
    return told if file is None else told | {"log": {"file": str(file.path), "rows": file.rows}}


def _require_sense(substrate: str, m: float, b: float, episodes: int, log: str | Path | None) -> None:
    if (m or b) and substrate not in ("linear", "exponential"):
        raise SettingsError("`--m` and `--b` want a substrate", "`--substrate linear` or `--substrate exponential`")
    if episodes < 1:  # before a log is begun
        raise SettingsError(f"`episodes` is {episodes}, expected at least 1")
    if log and Path(log).suffix not in (".jsonl", ".csv"):
        raise SettingsError(f"`--log` is {log}, whose ending says no format", "end it in .jsonl or .csv")


def _migrate(
    run: Run, settings: RunSettings, substrate: dict[str, Any], episodes: int, seed: int, file: NodeFile | None
) -> dict[str, Any]:
    """The object called `evaluation`, on one substrate."""
    from hotloop.core.settings import as_tree, build, merge
    from hotloop.loop.agent_files import load_agent
    from hotloop.loop.agents import require_same_actions
    from hotloop.loop.evaluate import play_fresh
    from hotloop.presets.env_settings import EnvSettings
    from hotloop.workloads.durotaxis.node_log import LoggedColonies

    env = build(EnvSettings, merge(as_tree(settings.env), {"options": substrate}), source="the command line")
    agent, limit = load_agent(run, settings), settings.evaluation.max_episode_steps

    def player_for(envs: VecEnv) -> Policy:
        require_same_actions(agent, envs, env.id)
        return agent.as_policy()

    def logged(envs: Any, quota: Array) -> Any:
        return LoggedColonies(envs, quota, limit, partial(file.write, substrate["substrate"])) if file else envs

    return play_fresh(env, player_for, episodes=episodes, seed=seed, max_episode_steps=limit, look_on=logged)


class NodeFile:
    """Rows of `COLUMNS` in the format that the file's ending names; a file of that name is replaced."""

    def __init__(self, path: Path) -> None:
        self.path, self.rows = path, 0

    def __enter__(self) -> NodeFile:
        with explained("write", self.path):
            self._file = self.path.open("w", newline="", encoding="utf-8")
            self._table = csv.writer(self._file, lineterminator="\n") if self.path.suffix == ".csv" else None
            if self._table is not None:
                self._table.writerow(COLUMNS)
        return self

    def write(self, substrate: str, rows: Iterable[tuple[Any, ...]]) -> None:
        with explained("write", self.path):
            for row in ((substrate, *others) for others in rows):
                self.rows += 1
                if self._table is not None:
                    self._table.writerow(row)
                else:
                    self._file.write(json.dumps(dict(zip(COLUMNS, row, strict=True))) + "\n")

    def __exit__(self, *_: object) -> None:
        with explained("write", self.path):
            self._file.close()
