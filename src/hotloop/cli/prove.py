"""`hotloop prove [CASE ...]`."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.errors import SettingsError
from hotloop.core.terminal import print_line

if TYPE_CHECKING:
    from hotloop.proof.case import Case
    from hotloop.proof.registry import Registry
    from hotloop.proof.run import Row

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def run(words: list[str]) -> int:
    parser = VerbParser(
        "prove",
        "Hold every fast path equal to a plain program that people write first, then time both interleaved in this\n"
        "process, on one thread. A case is named family/variant/lane/size; parts may be left out, a family runs all\n"
        "of it. Without names a small set runs, which takes a few minutes.\n"
        "error: |fast - plain| / |plain|, per update made. growth: the fast form's time per unit at a larger size\n"
        "over that at a smaller one. Exit code 1: something is not equal.",
        "hotloop prove dqn-update/double/native/64x64-b32 replay-sample",
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", help="a case, or the parts that several cases share")
    parser.add_argument("--full", action="store_true", help="every case (long)")
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    parser.add_argument("--seconds", type=float, default=1.0, help="of timing for each case (default 1)")
    parser.add_argument(
        "--keep",
        metavar="FILE",
        help="put each row into this JSON file as it comes, in the place of the case's last one",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    arguments = parser.parse_args(words)
    if arguments.seconds <= 0:
        raise SettingsError(f"`--seconds` is {arguments.seconds}, expected above 0", "1 is enough on a quiet machine")
    _prepare()
    from hotloop.proof import registry as known

    _require_keepable(arguments.keep)
    registry = known.build_registry()
    cases = registry.select(arguments.cases, full=arguments.full or arguments.list)
    if arguments.list:
        _print_list(registry, cases, arguments.json)
        return 0
    return _report(_prove_all(cases, registry, arguments), arguments.json)


def _require_keepable(name: str | None) -> None:
    """Said before the minutes that a proof takes."""
    from hotloop.proof.figures import read

    if name is not None:
        read(Path(name))
        if not Path(name).absolute().parent.is_dir():
            raise SettingsError(f"`--keep {name}`: there is no such folder", "make it first, or name another")


def _prepare() -> None:
    """One thread and flushed denormals for both; the variables count only before numpy and torch are loaded."""
    for name in ONE_THREAD:
        os.environ.setdefault(name, "1")
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else PyTorch's memory profiler writes into the progress display
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    import torch

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)


def _print_list(registry: Registry, cases: list[Case], as_json: bool) -> None:
    from hotloop.proof.registry import FAMILIES

    if as_json:
        print_json([{"case": case.name, "kind": case.kind, "default": case.is_default} for case in cases])
        return
    for family, (_, about) in FAMILIES.items():
        members = [case for case in cases if case.family == family]
        if members:
            print_line(f"{family}: {about}")
        for case in members:
            print_line(f"  {'*' if case.is_default else ' '} {case.name}")
    print_line("* in the set that runs when nothing is named")
    for lane, reason in registry.missing.items():
        print_line(f"{lane} lane not available: {reason}")


def _prove_all(cases: list[Case], registry: Registry, arguments: Namespace) -> list[Row]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.text import Text

    from hotloop.cli.console import display_console
    from hotloop.proof.figures import keep
    from hotloop.proof.run import prove

    console = display_console(arguments.quiet)
    for lane, reason in registry.missing.items():
        console.print(f"{lane} lane not available: {reason}")
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    rows = []
    with Progress(*columns, console=console, auto_refresh=False) as progress:  # no thread beside what is timed
        task = progress.add_task("", total=len(cases))
        for case in cases:
            progress.update(task, description=case.name, refresh=True)
            rows.append(prove(case, arguments.seconds))
            if arguments.keep:
                keep(Path(arguments.keep), rows[-1].as_data(), [known.name for known in registry.cases])
            if rows[-1].equal is False:
                where = f" {case.name}: {rows[-1].equality.where}"
                progress.console.print(Text.assemble(("not equal", "red"), where))
            progress.update(task, advance=1, refresh=True)
    return rows


def _report(rows: list[Row], as_json: bool) -> int:
    from hotloop.cli.console import answer_console
    from hotloop.proof.run import WIDTH, draw

    if as_json:
        print_json([row.as_data() for row in rows])
    else:
        console = answer_console()
        console.width = max(console.width, WIDTH)  # a narrower terminal wraps; shortened numbers would mislead
        console.print(draw(rows))
        unequal = sum(row.equal is False for row in rows)
        promised = sum(row.equal is not None for row in rows)
        print_line(f"\n{promised - unequal} of {promised} cases equal" + ("" if unequal == 0 else f", {unequal} NOT"))
    return 1 if any(row.equal is False for row in rows) else 0
