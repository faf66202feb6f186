"""`hotloop tune PRESET [--any.setting VALUE] --search NAME=VALUES ... --trials N`."""

from __future__ import annotations

import hashlib
import os
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.cli.arguments import VerbParser, print_json, settings_from_words
from hotloop.core.errors import SettingsError
from hotloop.core.terminal import print_line, say

if TYPE_CHECKING:
    from hotloop.tuning.search_result import SearchResult
    from hotloop.tuning.study import Plan

_OURS = {"--seed": "`--seeds N` trains seeds 0 to N - 1", "--run-dir": "`--storage FOLDER` holds the runs"}


def run(words: list[str]) -> int:
    parser = _parser()
    first, rest = (words[:1], words[1:]) if words and not words[0].startswith("-") else ([], words)
    arguments, overrides = parser.parse_known_args([*first, *rest])
    _check(arguments, overrides)
    plan = _plan(arguments, overrides)
    from hotloop.export.follow import need
    from hotloop.runs import lock
    from hotloop.runs.files import make_folder
    from hotloop.tuning.search_result import find, write_findings
    from hotloop.tuning.study import close_study, open_study

    need("tune", "searching", "optuna")
    make_folder(plan.folder)
    held = lock.acquire(plan.folder / "lock")
    try:
        study = open_study(plan)
        try:
            ended = _search(study, plan, arguments)
            findings = find(study, plan)
        finally:
            close_study(study)
        files = write_findings(findings, plan.folder)
    finally:
        lock.release(held)
    if arguments.json:
        from hotloop.runs.files import finite_or_null

        print_json(finite_or_null(findings.as_data()) | {"folder": str(plan.folder), "stopped": not ended})
    else:
        _print(findings, plan.folder, files)
    if not ended:
        say(f"stopped; what was trained is in {plan.folder}, and the same command continues it")
        return 130
    return 0 if findings.best else 1


def _parser() -> VerbParser:
    parser = VerbParser(
        "tune",
        "Search for better settings: trials are trained as runs of their own, several at once, and those that do\n"
        "worse than the median of the others are ended early. The same command continues what was stopped.\n"
        "--search NAME=LOW..HIGH[:log|:step=N] or NAME=A,B,C, as often as there are settings to search.",
        "hotloop tune cartpole-dqn --search optimiser.lr=1e-5..1e-2:log --search n-step=1,3,5 --trials 20",
        usage="hotloop tune PRESET|FILE.toml [--any.setting VALUE ...] --search NAME=VALUES [--search ...] --trials N "
        "[--seeds N] [--jobs N] [--storage FOLDER] [--measure NAME] [--no-prune] [--json] [--quiet]",
    )
    parser.add_argument("preset", help="a preset's name, or a TOML file with settings")
    parser.add_argument("--search", action="append", required=True, metavar="NAME=VALUES", help="a setting to search")
    parser.add_argument(
        "--trials", type=int, required=True, help="how many there shall be, those there before included"
    )
    parser.add_argument("--seeds", type=int, default=1, help="runs of each trial, whose mean counts (default 1)")
    parser.add_argument("--jobs", type=int, default=0, help="runs at once (default: as many as there are cores)")
    parser.add_argument(
        "--storage", type=Path, metavar="FOLDER", help="where study and runs are kept (default: runs/tune-...)"
    )
    parser.add_argument(
        "--measure", default="mean_return", help="what counts, a field of an evaluation (default mean_return)"
    )
    parser.add_argument("--no-prune", action="store_true", help="train every trial to its end")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    return parser


def _check(arguments: Namespace, overrides: Sequence[str]) -> None:
    for name, least in (("trials", 1), ("seeds", 1), ("jobs", 0)):
        if getattr(arguments, name) < least:
            raise SettingsError(f"`--{name}` is {getattr(arguments, name)}, expected at least 1")
    for word in overrides:
        name = word.partition("=")[0].replace("_", "-")
        if name in _OURS:
            raise SettingsError(f"`{name}` is something that tune sets itself", _OURS[name])


def _plan(arguments: Namespace, overrides: Sequence[str]) -> Plan:
    from hotloop.algos.registry import class_of
    from hotloop.runs.files import canonical_json
    from hotloop.tuning.space import check_space, parse_search
    from hotloop.tuning.study import Plan

    settings = _resolve(arguments.preset, overrides)
    dimensions = [parse_search(text, class_of(settings)) for text in arguments.search]
    check_space(dimensions, arguments.preset, overrides, _resolve)
    asked = (arguments.preset, tuple(overrides), settings, dimensions)
    judged = (arguments.seeds, arguments.measure, not arguments.no_prune)
    plan = Plan(*asked, *judged, arguments.storage or Path())
    if arguments.storage:
        return plan
    mark = hashlib.sha256(canonical_json(plan.identity())).hexdigest()[:8]
    return Plan(*asked, *judged, Path("runs") / f"tune-{Path(arguments.preset).stem}-{mark}")


def _resolve(source: str, words: Sequence[str]) -> dict[str, Any]:
    from hotloop.core.settings import as_tree

    return as_tree(settings_from_words(source, words))


def _search(study: Any, plan: Plan, arguments: Namespace) -> bool:
    """False where it was interrupted."""
    from hotloop.tuning.search import Search

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = min(arguments.jobs or max(1, cores // plan.settings["threads"]), arguments.trials)

    remark = (lambda text: None) if arguments.quiet else say
    remark(f"{arguments.trials} trials in {plan.folder}, {workers} at once")
    try:
        Search(study, plan, arguments.trials, _resolve, remark).run(workers)
    except KeyboardInterrupt:
        return False
    return True


def _print(findings: SearchResult, folder: Path, files: Sequence[str]) -> None:
    from rich.table import Table

    from hotloop.cli.console import answer_console

    console, plan = answer_console(soft_wrap=True), findings.plan
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("trial", "", plan.measure.replace("_", " "), *[dimension.path for dimension in plan.dimensions]):
        table.add_column(heading, no_wrap=True)
    unranked = [row for row in findings.rows if row not in findings.ranked]
    for row in [*findings.ranked, *unranked]:
        state = f"{row.state}{', preset' if row.is_preset else ''}"
        score = row.value if row.value is not None else row.last
        shown = "-" if score is None else f"{score:.4g}{'' if row.value is not None else ' so far'}"
        table.add_row(str(row.number), state, shown, *[row.values.get(dim.path, "-") for dim in plan.dimensions])
    console.print(table)
    if findings.importance:
        parts = ", ".join(f"{name} {share:.0%}" for name, share in findings.importance.items())
        print_line(f"\nwhat told good trials from the others: {parts}")
    for row in findings.rows:
        if row.error:
            print_line(f"failed: trial {row.number}: {row.error}")
    if findings.best is None:
        print_line("\nno trial was finished")
    else:
        print_line(
            f"\nbest: trial {findings.best.number}, {plan.measure} {findings.best.value:.4g}\n{findings.train_command}"
        )
    if findings.compare_command:
        print_line(f"\nThe best of many is partly luck; this tells how much:\n{findings.compare_command}")
    print_line(f"\n{folder}: {', '.join(files)}, study.db, and the runs")
