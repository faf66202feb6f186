"""`hotloop compare ARM [overrides] ARM [overrides] ... --seeds N [-- --any.setting VALUE]`."""

from __future__ import annotations

import math
import os
import shlex
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.cli.arguments import VerbParser, print_json, settings_from_words
from hotloop.core.errors import SettingsError
from hotloop.core.terminal import print_line, say

if TYPE_CHECKING:
    from hotloop.comparison.arms import Arm
    from hotloop.comparison.jobs import Job
    from hotloop.comparison.report import Comparison

_OPTIONS = ("--seeds", "--out", "--threshold", "--margin", "--measure", "--workers", "--html", "--markdown")
_SWITCHES = ("--json", "--quiet", "--debug")


def run(words: list[str]) -> int:
    arguments, arms = _read(words)
    from hotloop.comparison.jobs import DEFAULT_ROOT, default_folder, plan_jobs
    from hotloop.comparison.report import Question, collect

    folder = Path(arguments.out) if arguments.out else default_folder(arms)
    jobs = plan_jobs(arms, arguments.seeds or 0, folder, reuse=None if arguments.out else DEFAULT_ROOT)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = min(arguments.workers or _workers(arms, cores), len(jobs))
    if not _train(jobs, workers, folder, arguments):
        return 130
    command = shlex.join(["hotloop", "compare", *[word for word in words if word not in _SWITCHES]])
    seeds = arguments.seeds or max(len(arm.runs) for arm in arms)
    asked = arguments.measure, arguments.threshold, seeds, workers, cores, arguments.margin
    comparison = collect(Question(command, *asked), jobs)
    _write(comparison, folder, arguments)
    _print(comparison, folder, arguments)
    return 1 if comparison.failed else 0


def _read(words: list[str]) -> tuple[Namespace, list[Arm]]:
    parser = _parser()
    cut = words.index("--") if "--" in words else len(words)
    if {"-h", "--help"} & set(words[:cut]):
        parser.parse_args(["--help"])  # answers at once, before anything heavy is imported
    from hotloop.comparison.arms import explained, parse_arms, split_words
    from hotloop.presets import preset_names

    presets = preset_names()
    own, texts = split_words(words[:cut], _OPTIONS, _SWITCHES, presets)
    arguments = parser.parse_args(own)
    if not texts:
        raise SettingsError("no ARM is given", "`hotloop compare --help` explains")
    _check(arguments)
    arms = explained(lambda: parse_arms(texts, words[cut + 1 :], _resolve), words[:cut], _OPTIONS, presets)
    if arguments.seeds is None and not all(arm.runs for arm in arms):
        raise SettingsError("`--seeds N` is missing: how many runs to train of each arm", "8 of each show most of it")
    return arguments, arms


def _parser() -> VerbParser:
    parser = VerbParser(
        "compare",
        "Say what a change did to learning and to speed. An arm is a preset, a TOML file, or a folder of finished\n"
        "runs; its own overrides follow it (or stand in the same quotes, with a label in front if you like), those\n"
        "of all arms follow `--`. What is missing is trained in parallel processes; finished runs of the same\n"
        "settings and seed are reused, and the same command continues what was stopped. Every arm is judged against\n"
        "the first: docs/compare.md has the rule. Exit code 1: a run failed.",
        "hotloop compare cartpole-dqn cartpole-dqn --double false --seeds 8 --threshold 475\n"
        '  hotloop compare "plain=cartpole-dqn" "rainbow=cartpole-rainbow" --seeds 8 -- --total-env-steps 30k\n'
        "  hotloop compare runs/family/cartpole-dqn runs/family/cartpole-rainbow --html family.html",
        usage="hotloop compare ARM [--any.setting VALUE ...] [ARM ...] --seeds N [options] [-- --setting VALUE ...]",
    )
    parser.add_argument("--seeds", type=int, help="runs to train of each arm: seeds 0 to SEEDS - 1")
    parser.add_argument("--out", help="folder for runs and results (default: runs/compare-..., by arms and settings)")
    parser.add_argument(
        "--threshold",
        type=float,
        help="score whose first reaching is timed (default: 0.9 of what the first arm learned)",
    )
    parser.add_argument(
        "--margin", type=float, help="difference that counts as none (default: 1/20 of what the first arm learned)"
    )
    parser.add_argument("--measure", default="mean_return", help="field of the evaluations (default mean_return)")
    parser.add_argument("--workers", type=int, default=0, help="runs at once (default: as many as there are cores)")
    parser.add_argument("--html", metavar="FILE", help="write one page with verdicts, figures, tables and settings")
    parser.add_argument(
        "--markdown", metavar="FILE.md[#NAME]", help="put tables and figures into a Markdown page, between two marks"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    return parser


def _check(arguments: Namespace) -> None:
    for name, least in (("seeds", 1), ("workers", 0)):
        value = getattr(arguments, name)
        if value is not None and value < least:
            raise SettingsError(f"`--{name}` is {value}, expected at least 1")
    if arguments.threshold is not None and not math.isfinite(arguments.threshold):
        raise SettingsError(f"`--threshold` is {arguments.threshold}, expected a finite number")
    if arguments.margin is not None and not 0 < arguments.margin < math.inf:
        raise SettingsError(f"`--margin` is {arguments.margin}, expected a number above 0")
    if arguments.markdown is not None:
        from hotloop.comparison.report import parse_target

        parse_target(arguments.markdown)


def _resolve(source: str, words: Sequence[str]) -> dict[str, Any]:
    from hotloop.core.settings import as_tree

    return as_tree(settings_from_words(source, words))


def _workers(arms: Sequence[Arm], cores: int) -> int:
    return max(1, cores // max(arm.settings["threads"] for arm in arms))


def _train(jobs: Sequence[Job], workers: int, folder: Path, arguments: Namespace) -> bool:
    """False where it was interrupted."""
    from hotloop.cli.console import display_console
    from hotloop.comparison.jobs import run_jobs
    from hotloop.comparison.progress import CompareProgress

    console = display_console(arguments.quiet)
    there = sum(job.reused for job in jobs)
    console.print(
        f"{len(jobs)} runs in {folder}, {workers} at once" + (f"; {there} are finished already" if there else ""),
        style="dim",
        soft_wrap=True,
    )
    try:
        with CompareProgress(jobs, arguments.measure, console) as progress:
            run_jobs(jobs, workers, progress.watch)
    except KeyboardInterrupt:
        say(f"stopped; what was trained is in {folder}, and the same command continues it")
        return False
    return True


def _write(comparison: Comparison, folder: Path, arguments: Namespace) -> None:
    from hotloop.comparison.page import as_html
    from hotloop.comparison.report import CURVES, chart_of, parse_target, write_files, write_part, write_table
    from hotloop.render.chart import as_pixels
    from hotloop.render.picture import png_bytes
    from hotloop.runs.files import make_folder, write_file

    make_folder(folder)
    write_files(comparison, folder)
    write_table(comparison, folder)
    for against, name in CURVES.items():
        write_file(folder / f"{name}.png", png_bytes(as_pixels(chart_of(comparison, against))))
    if arguments.html:
        make_folder(Path(arguments.html).parent)
        write_file(Path(arguments.html), as_html(comparison).encode())
    if arguments.markdown:
        write_part(comparison, *parse_target(arguments.markdown))


def _print(comparison: Comparison, folder: Path, arguments: Namespace) -> None:
    if arguments.json:
        from hotloop.runs.files import finite_or_null

        print_json(finite_or_null(comparison.as_data()) | {"folder": str(folder)})
        return
    from hotloop.cli.console import answer_console
    from hotloop.comparison.report import notes
    from hotloop.comparison.verdict_text import arm_rows, as_rich, details, pair_rows, sentence

    console = answer_console()
    tables = [arm_rows(comparison.summaries, arguments.measure, comparison.threshold)]
    tables += [rows] if (rows := pair_rows(comparison.contrasts, comparison.threshold)) else []
    boundless = console.options.update(max_width=1_000)
    for table in map(as_rich, tables):
        # wrapped by the terminal where it must be; a shortened number would mislead
        console.width = max(console.width, console.measure(table, options=boundless).maximum)
        console.print(table)
        print_line()
    for contrast in comparison.contrasts:
        print_line("\n  ".join([sentence(contrast), *details(contrast, comparison.threshold)]) + "\n")
    print_line("\n".join(notes(comparison)))
    for job in comparison.failed:
        print_line(f"failed: {job.name}: {job.error}")
    print_line(f"\n{folder}: table.md, compare.json, curve-env-steps and curve-seconds as .svg and .png")
