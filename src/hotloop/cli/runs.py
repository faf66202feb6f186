"""`hotloop runs [FOLDER]`."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.errors import RunError
from hotloop.core.terminal import print_line, printable
from hotloop.runs.listing import RunSummary, list_runs


def run(words: list[str]) -> int:
    parser = VerbParser("runs", "List the runs in a folder, the newest last.", "hotloop runs --json")
    parser.add_argument("folder", nargs="?", help="where to look (default: runs)")
    arguments = parser.parse_args(words)
    folder = Path(arguments.folder or "runs")
    if arguments.folder is not None and not folder.is_dir():
        raise RunError(f"there is no folder `{folder}`", "`hotloop runs` lists those in `runs`; give a folder of runs")
    summaries = list_runs(folder)
    if arguments.json:
        print_json({"runs": [{**dataclasses.asdict(summary), "path": str(summary.path)} for summary in summaries]})
    elif not summaries:
        print_line(f"no runs in {folder}; `hotloop train cartpole-dqn` makes one")
    else:
        print_line("\n".join(_lines(summaries)))
    return 0


def _lines(summaries: list[RunSummary]) -> list[str]:
    """Columns as wide as they need to be: only the path, the last, may run over a narrow terminal's edge."""
    names = ["started", "status", "env_steps", "mean_return", "env", "path"]
    rows = [[name.replace("_", " ") for name in names]]
    for summary in summaries:
        started = (summary.started or "-").replace("T", " ")[: len("2026-01-01 12:00")]
        rows.append([started, *[_cell(getattr(summary, name)) for name in names[1:]]])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else printable(str(value))  # before it is measured
