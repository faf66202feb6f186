"""`hotloop bench lanes`, `hotloop bench peers [NAME ...]`, `hotloop bench workers`."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.errors import SettingsError
from hotloop.core.terminal import print_line

if TYPE_CHECKING:
    from hotloop.proof.bench_lanes import LaneRow
    from hotloop.proof.bench_peers import PeerRow
    from hotloop.proof.peers.libraries import Found

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
WIDTH = 200


def run(words: list[str]) -> int:
    parser = VerbParser(
        "bench",
        "lanes: microseconds per update on every lane, and where the rule behind `lane = auto` is right or wrong.\n"
        "peers: the same work in other libraries, taking turns on one thread; a ratio above 1 is in our favour.\n"
        "workers: envs in worker processes against Gymnasium's AsyncVectorEnv, by the clock on the wall.\n"
        "NAME for lanes: a network and batch (64x64-b32); for peers: a library (cpprb), or a part: `replay`,\n"
        "`dqn`, `ppo`, or `training` for both of these;\n"
        "for workers: an env (cartpole).",
        "hotloop bench peers stable-baselines3 ppo --rounds 6",
    )
    parser.add_argument("what", choices=["lanes", "peers", "workers"])
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these; without names, all")
    parser.add_argument("--seconds", type=float, default=1.0, help="of timing for each pair of calls (default 1)")
    parser.add_argument(
        "--rounds", type=int, default=3, help="training runs of each (default 3; 6 for a 95 %% interval)"
    )
    parser.add_argument("--env-steps", type=int, default=5_000, help="timed in each training run (default 5000)")
    parser.add_argument("--python-jax", default="", metavar="PYTHON", help="an interpreter that has sbx-rl and rejax")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    arguments = parser.parse_args(words)
    for name in ("seconds", "rounds", "env_steps"):
        if getattr(arguments, name) <= 0:
            raise SettingsError(f"`--{name.replace('_', '-')}` is {getattr(arguments, name)}, expected above 0")
    verbs = {"lanes": _lanes, "peers": _peers, "workers": _workers}
    return verbs[arguments.what](arguments)


def _prepare() -> None:
    """One thread and flushed denormals; the variables count only before numpy and torch are loaded."""
    for name in ONE_THREAD:
        os.environ.setdefault(name, "1")
    import torch

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)


def _lanes(arguments: Namespace) -> int:
    _prepare()
    from hotloop.proof import bench_lanes
    from hotloop.proof.bench_lanes import draw_lanes

    chosen = [work for work in bench_lanes.WORK if not arguments.names or work.name in arguments.names]
    unknown = set(arguments.names) - {work.name for work in bench_lanes.WORK}
    if unknown:
        known = ", ".join(work.name for work in bench_lanes.WORK)
        raise SettingsError(f"there is no work `{min(unknown)}` for the lanes", f"one of {known}")
    rows: list[LaneRow] = []
    with _progress(len(chosen) * len(bench_lanes.BATCHES_PER_CALL), arguments.quiet) as advance:
        loading_seconds = bench_lanes.load_compiler()
        for work in chosen:
            for k in bench_lanes.BATCHES_PER_CALL:
                advance(f"{work.name} k {k}", 0)
                rows.append(bench_lanes.measure_work(work, k, arguments.seconds, loading_seconds))
                advance(work.name, 1)
    if arguments.json:
        print_json({"load_average": _load(), "rows": [row.as_data() for row in rows]})
        return 0
    _print(draw_lanes(rows))
    for lane, reason in {pair for row in rows for pair in row.refused.items()}:
        print_line(f"{lane} refuses: {reason}")
    wrong = sum(not verdict.agrees for row in rows for verdict in row.verdicts)
    asked = sum(len(row.verdicts) for row in rows)
    print_line(f"`auto` agrees with {asked - wrong} of {asked} measurements; load average {_load()}")
    return 0


def _peers(arguments: Namespace) -> int:
    from hotloop.proof.peers.libraries import find_libraries, split_names

    parts, names = split_names(arguments.names)
    found = find_libraries(names, arguments.python_jax)
    _prepare()
    rows: list[PeerRow] = []
    notes = [f"{name}: {advice}" for name, advice in found.missing.items()]
    replays = _compare_replays(found, arguments) if "replay" in parts else []
    for result in chain(replays, _compare_training(found, arguments, parts)):
        if isinstance(result, str):
            notes.append(result)
        else:
            rows.append(result)
    if arguments.json:
        print_json({"load_average": _load(), "rows": [row.as_data() for row in rows], "notes": notes})
    else:
        _print_peers(rows, notes)
    return 0


def _workers(arguments: Namespace) -> int:
    from hotloop.proof.bench_workers import choose, compare_workers

    chosen = choose(arguments.names)
    rows: list[PeerRow] = []
    with _progress(len(chosen), arguments.quiet) as advance:
        for row in compare_workers(chosen, arguments.seconds):
            rows.append(row)
            advance(row.work, 1)
    if arguments.json:
        print_json({"load_average": _load(), "rows": [row.as_data() for row in rows], "notes": []})
    else:
        _print_peers(rows, [])
    return 0


def _compare_replays(found: Found, arguments: Namespace) -> Iterator[PeerRow]:
    from hotloop.proof.bench_peers import compare_replays, count_comparisons

    with _progress(count_comparisons(found.libraries), arguments.quiet) as advance:
        for about, row in compare_replays(found.libraries, arguments.seconds):
            advance(about, 1)
            if row is not None:
                yield row


def _compare_training(found: Found, arguments: Namespace, parts: Sequence[str]) -> Iterator[PeerRow | str]:
    from hotloop.proof.bench_peers import WARM_UP, compare_training, plan

    planned = plan(found.libraries, WARM_UP, arguments.env_steps, parts)
    if not planned:
        return
    with _progress(len(planned) * arguments.rounds, arguments.quiet) as advance:
        for about, result in compare_training(planned, arguments.rounds):
            advance(about, 1)
            if result is not None:
                yield result


def _print_peers(rows: list[PeerRow], notes: list[str]) -> None:
    from hotloop.proof.bench_peers import draw_peers, losses

    _print(draw_peers(rows))
    for note in notes:
        print_line(note)
    behind = losses(rows)
    print_line(f"hotloop is ahead in {len(rows) - len(behind)} of {len(rows)}; load average {_load()}")
    for sentence in behind:
        print_line(f"behind: {sentence}")


def _print(table: Any) -> None:
    from hotloop.cli.console import answer_console

    console = answer_console()
    console.width = max(console.width, WIDTH)  # a narrower terminal wraps; shortened numbers would mislead
    console.print(table)


def _load() -> list[float]:
    return [round(load, 2) for load in os.getloadavg()] if hasattr(os, "getloadavg") else []


@contextmanager
def _progress(total: int, quiet: bool) -> Iterator[Any]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from hotloop.cli.console import display_console

    about = TextColumn("{task.description}", markup=False)
    columns, console = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), about), display_console(quiet)
    with Progress(*columns, console=console, auto_refresh=False) as progress:  # no thread beside what is timed
        task = progress.add_task("", total=total)
        yield lambda about, steps: progress.update(task, advance=steps, description=about, refresh=True)
