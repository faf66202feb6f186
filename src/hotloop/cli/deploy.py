"""`hotloop deploy RUN`: a durotaxis agent on a substrate of choice."""

from __future__ import annotations

import csv
import json
from argparse import Namespace
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.errors import SettingsError
from hotloop.core.terminal import say

SUBSTRATES = ("linear", "exponential", "random")
COLUMNS = ("substrate", "episode", "step", "id", "x", "y", "intensity", "age", "action")


def run(words: list[str]) -> int:
    parser = VerbParser(
        "deploy",
        "Let a trained durotaxis agent migrate on a chosen substrate, and say how it fared: return, length, how often\n"
        "it reached the goal (success), where its centroid ended, how large its colony was.\n"
        "Without a substrate: on all three, one after the other. `--log FILE` also writes what every node was and did.",
        "hotloop deploy runs/durotaxis-ppo-20260101-120000 --substrate exponential --m 0.008 --episodes 200",
    )
    parser.add_argument("run", help="a run's directory")
    parser.add_argument("--substrate", choices=SUBSTRATES, help="how stiffness grows to the right")
    parser.add_argument("--m", type=float, default=0.0, help="its slope (linear) or rate (exponential); 0: the usual")
    parser.add_argument("--b", type=float, default=0.0, help="its stiffness at the left; 0: the usual")
    parser.add_argument("--episodes", type=int, default=100, help="how many episodes of each (default 100)")
    parser.add_argument("--seed", type=int, default=0, help="which episodes (default 0)")
    parser.add_argument(
        "--log",
        metavar="FILE",
        help=f"a row for each node at each step, as JSON lines (.jsonl) or CSV (.csv): {', '.join(COLUMNS)}",
    )
    arguments = parser.parse_args(words)
    _check(arguments)
    names = [arguments.substrate] if arguments.substrate else SUBSTRATES
    _check_run(arguments.run)
    with ExitStack() as cleanup:
        log = cleanup.enter_context(_NodeFile(Path(arguments.log))) if arguments.log else None
        results = {name: _deploy(arguments, name, log) for name in names}
    told = {"run": arguments.run, "substrates": results}
    if log is not None:
        told["log"] = {"file": str(log.path), "rows": log.rows}
        say(f"{log.rows:,} rows in {log.path}")
    if arguments.json:
        print_json(told)
    else:
        _print(results)
    return 0


def _check(arguments: Namespace) -> None:
    if (arguments.m or arguments.b) and arguments.substrate not in ("linear", "exponential"):
        raise SettingsError("`--m` and `--b` want a substrate", "`--substrate linear` or `--substrate exponential`")
    if arguments.episodes < 1:  # before a log is begun
        raise SettingsError(f"`episodes` is {arguments.episodes}, expected at least 1")
    if arguments.log and Path(arguments.log).suffix not in (".jsonl", ".csv"):
        raise SettingsError(f"`--log` is {arguments.log}, whose ending says no format", "end it in .jsonl or .csv")


def _check_run(run: str) -> None:
    from hotloop import api
    from hotloop.runs.directory import Run

    env_id = api.settings_of(Run.open(run), trust=False).env.id
    if env_id != "durotaxis":
        raise SettingsError(f"{run} was trained on `{env_id}`, which has no substrate", "`hotloop evaluate` plays it")


def _deploy(arguments: Namespace, substrate: str, log: _NodeFile | None) -> dict[str, Any]:
    from hotloop import api

    env = {"options": {"substrate": substrate, "m": arguments.m, "b": arguments.b}}
    look_on = None if log is None else _look_on(arguments.run, substrate, log)
    return api.evaluate(arguments.run, episodes=arguments.episodes, seed=arguments.seed, env=env, look_on=look_on)


def _look_on(run: str, substrate: str, log: _NodeFile) -> Callable[[Any, Any], Any]:
    from hotloop import api
    from hotloop.envs.durotaxis.node_log import LoggedColonies
    from hotloop.runs.directory import Run

    limit = api.settings_of(Run.open(run), trust=False).evaluation.max_episode_steps
    write = partial(log.write, substrate)
    return lambda envs, quota: LoggedColonies(envs, quota, limit, write)


class _NodeFile:
    """Rows of `COLUMNS` in the format that the file's ending names; a file of that name is replaced."""

    def __init__(self, path: Path) -> None:
        self.path, self.rows = path, 0

    def __enter__(self) -> _NodeFile:
        from hotloop.runs.files import explained

        self._explained = explained
        with explained("write", self.path):
            self._file = self.path.open("w", newline="", encoding="utf-8")
            self._table = csv.writer(self._file, lineterminator="\n") if self.path.suffix == ".csv" else None
            if self._table is not None:
                self._table.writerow(COLUMNS)
        return self

    def write(self, substrate: str, rows: Iterable[tuple[Any, ...]]) -> None:
        with self._explained("write", self.path):
            for row in ((substrate, *others) for others in rows):
                self.rows += 1
                if self._table is not None:
                    self._table.writerow(row)
                else:
                    self._file.write(json.dumps(dict(zip(COLUMNS, row, strict=True))) + "\n")

    def __exit__(self, *_: object) -> None:
        with self._explained("write", self.path):
            self._file.close()


def _print(results: dict[str, dict[str, Any]]) -> None:
    from rich.table import Table

    from hotloop.cli.console import answer_console

    table = Table(box=None)
    for heading in ("substrate", "episodes", "success", "return", "length", "final centroid", "colony"):
        table.add_column(heading, justify="left" if heading == "substrate" else "right")
    for name, result in results.items():
        table.add_row(
            name,
            f"{result['episodes']:,}",
            f"{result['success_rate']:.0%}",
            f"{result['mean_return']:.2f} ± {result['std_return']:.2f}",
            f"{result['mean_length']:.1f}",
            f"{result['final_centroid']:.0f}",
            f"{result['mean_colony_size']:.1f}",
        )
    answer_console().print(table)
