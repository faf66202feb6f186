"""`hotloop compare ARM ARM ... --seeds N [-- --any.setting VALUE]`."""

from __future__ import annotations

import math
import os
import shlex
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.errors import SettingsError
from hotloop.core.suggest import nearest

if TYPE_CHECKING:
    from hotloop.compare.arms import Arm
    from hotloop.compare.jobs import Job
    from hotloop.compare.report import Comparison

_OPTIONS = ("--seeds", "--out", "--threshold", "--measure", "--workers", "--json", "--quiet")


def run(words: list[str]) -> int:
    arguments, common = _read(words)
    from hotloop.compare.arms import parse_arms
    from hotloop.compare.jobs import default_folder, plan_jobs
    from hotloop.compare.report import Question, collect, write_files

    arms = parse_arms(arguments.arms, common, _resolve)
    folder = Path(arguments.out) if arguments.out else default_folder(arms)
    jobs = plan_jobs(arms, arguments.seeds, folder)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = min(arguments.workers or _workers(arms, cores), len(jobs))
    if not _train(jobs, workers, folder, arguments):
        return 130
    command = shlex.join(["hotloop", "compare", *[word for word in words if word not in ("--json", "--quiet")]])
    question = Question(command, arguments.measure, arguments.threshold, arguments.seeds, workers, cores)
    comparison = collect(question, jobs)
    write_files(comparison, folder)
    _print(comparison, folder, arguments)
    return 1 if comparison.failed else 0


def _read(words: list[str]) -> tuple[Namespace, list[str]]:
    parser = VerbParser(
        "compare",
        "Train arms x seeds in parallel processes and say what came of each: score with intervals, env steps and\n"
        "seconds to a threshold, learning curves. An arm is a preset or a TOML file, with overrides in the same\n"
        "quotes and a label in front if you like; overrides of all arms follow `--`. The same command continues what\n"
        "was stopped and reuses finished runs. Exit code 1: a run failed.",
        'hotloop compare "single=cartpole-dqn --double false" cartpole-dqn --seeds 5 --threshold 475\n'
        "  hotloop compare cartpole-dqn cartpole-rainbow --seeds 8 --out runs/family -- --total-env-steps 30k",
        usage="hotloop compare ARM [ARM ...] --seeds N [options] [-- --any.setting VALUE ...]",
    )
    parser.add_argument("arms", nargs="+", metavar="ARM", help='"[LABEL=]PRESET|FILE.toml [--any.setting VALUE ...]"')
    parser.add_argument("--seeds", type=int, required=True, help="runs of each arm: seeds 0 to SEEDS - 1")
    parser.add_argument("--out", help="folder for runs and results (default: runs/compare-..., by arms and settings)")
    parser.add_argument("--threshold", type=float, help="score whose first reaching is timed")
    parser.add_argument("--measure", default="mean_return", help="field of the evaluations (default mean_return)")
    parser.add_argument("--workers", type=int, default=0, help="runs at once (default: as many as there are cores)")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    cut = words.index("--") if "--" in words else len(words)
    arguments, unknown = parser.parse_known_args(words[:cut])
    if unknown:
        near = nearest(unknown[0], _OPTIONS)
        raise SettingsError(
            f"`{unknown[0]}` is no option of `hotloop compare`",
            (f"did you mean `{near}`? " if near else "")
            + 'settings of one arm stand in its quotes: "cartpole-dqn --double false"; those of all arms after `--`',
        )
    for name in ("seeds", "workers"):
        least = 1 if name == "seeds" else 0
        if getattr(arguments, name) < least:
            raise SettingsError(f"`--{name}` is {getattr(arguments, name)}, expected at least 1")
    if arguments.threshold is not None and not math.isfinite(arguments.threshold):
        raise SettingsError(f"`--threshold` is {arguments.threshold}, expected a finite number")
    return arguments, words[cut + 1 :]


def _resolve(source: str, words: Sequence[str]) -> dict[str, Any]:
    from hotloop import api
    from hotloop.core.settings import as_tree

    return as_tree(api.settings_from_words(source, words))


def _workers(arms: Sequence[Arm], cores: int) -> int:
    return max(1, cores // max(arm.settings["threads"] for arm in arms))


def _train(jobs: Sequence[Job], workers: int, folder: Path, arguments: Namespace) -> bool:
    """False where it was interrupted."""
    from rich.console import Console

    from hotloop.compare.pool import run_jobs
    from hotloop.compare.progress import CompareProgress

    console = Console(stderr=True, quiet=arguments.quiet)
    there = sum(job.reused for job in jobs)
    console.print(
        f"{len(jobs)} runs in {folder}, {workers} at once" + (f"; {there} are finished already" if there else ""),
        style="dim",
        highlight=False,
        soft_wrap=True,
    )
    try:
        with CompareProgress(jobs, arguments.measure, console) as progress:
            run_jobs(jobs, workers, progress.watch)
    except KeyboardInterrupt:
        print(f"stopped; what was trained is in {folder}, and the same command continues it", file=sys.stderr)
        return False
    return True


def _print(comparison: Comparison, folder: Path, arguments: Namespace) -> None:
    if arguments.json:
        from hotloop.runs.plain import finite_or_null

        print_json(finite_or_null(comparison.as_data()) | {"folder": str(folder)})
        return
    from rich.console import Console

    from hotloop.compare.report import notes
    from hotloop.compare.table import as_rich

    console = Console(highlight=False)
    table = as_rich(comparison.summaries, arguments.measure, arguments.threshold)
    boundless = console.options.update(max_width=1_000)
    # wrapped by the terminal where it must be; a shortened number would mislead
    console.width = max(console.width, console.measure(table, options=boundless).maximum)
    console.print(table)
    print(f"\n{notes(comparison)}")
    for job in comparison.failed:
        print(f"failed: {job.name}: {job.error}")
    print(f"\n{folder}: table.md, compare.json, curve-env-steps.svg, curve-seconds.svg")
