"""`hotloop runs [FOLDER]`."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from rich.table import Table

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.cli.console import answer_console
from hotloop.core.terminal import print_line, printable
from hotloop.runs.listing import RunSummary, list_runs


def run(words: list[str]) -> int:
    parser = VerbParser("runs", "List the runs in a folder, the newest last.", "hotloop runs --json")
    parser.add_argument("folder", nargs="?", default="runs", help="where to look (default: runs)")
    arguments = parser.parse_args(words)
    summaries = list_runs(Path(arguments.folder))
    if arguments.json:
        print_json([{**dataclasses.asdict(summary), "path": str(summary.path)} for summary in summaries])
    elif not summaries:
        print_line(f"no runs in {arguments.folder}; `hotloop train cartpole-dqn` makes one")
    else:
        answer_console().print(_table(summaries))
    return 0


def _table(summaries: list[RunSummary]) -> Table:
    names = ["path", "env", "status", "env_steps", "mean_return", "started"]
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in names:
        table.add_column(name.replace("_", " "), no_wrap=name == "path", overflow="fold")
    for summary in summaries:
        table.add_row(*[_cell(getattr(summary, name)) for name in names])
    return table


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else printable(str(value))  # before it is measured
