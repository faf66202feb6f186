"""`hotloop bench lanes`, `hotloop bench peers [NAME ...]`, `hotloop bench workers`."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from hotloop.cli.arguments import VerbParser, print_json, require_above_zero
from hotloop.cli.console import Bar, print_table
from hotloop.core.program import load_average, use_one_thread
from hotloop.core.terminal import print_line


def run(words: list[str]) -> int:
    parser = VerbParser(
        "bench",
        "lanes: microseconds per update on every lane, and where the rule behind `lane = auto` is right or wrong.\n"
        "peers: the same work in other libraries, taking turns on one thread; a ratio above 1 is in our favour.\n"
        "workers: envs in worker processes against Gymnasium's AsyncVectorEnv, by the clock on the wall.\n"
        "NAME for lanes: a network and batch (64x64-b32); for peers: a library (cpprb), or a part: `replay`,\n"
        "`dqn`, `ppo`, `sac`, or `training` for all of these;\nfor workers: an env (cartpole).",
        "hotloop bench peers stable-baselines3 ppo --rounds 6",
    )
    parser.add_argument("what", choices=["lanes", "peers", "workers"])
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these; without names, all")
    parser.add_argument("--seconds", type=float, default=1.0, help="of timing for each pair of calls (default 1)")
    rounds = "training runs of each (default 3; 6 for a 95 %% interval)"
    parser.add_argument("--rounds", type=int, default=3, help=rounds)
    parser.add_argument("--env-steps", type=int, default=5_000, help="timed in each training run (default 5000)")
    parser.add_argument("--python-jax", default="", metavar="PYTHON", help="an interpreter that has sbx-rl and rejax")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    arguments = parser.parse_args(words)
    require_above_zero(arguments, "seconds", "rounds", "env_steps")
    {"lanes": _lanes, "peers": _peers, "workers": _workers}[arguments.what](arguments)
    return 0


def _lanes(arguments: Namespace) -> None:
    use_one_thread()
    from hotloop.proof import bench_lanes

    chosen = bench_lanes.choose(arguments.names)
    with Bar(len(chosen), arguments.quiet) as bar:
        rows = bar.collect(bench_lanes.measure_lanes(chosen, arguments.seconds))
    _answer(rows, bench_lanes.draw_lanes, bench_lanes.remarks(rows), arguments.json)


def _peers(arguments: Namespace) -> None:
    use_one_thread()
    from hotloop.proof import bench_peers
    from hotloop.proof.peers import libraries

    parts, names = libraries.split_names(arguments.names)
    found = libraries.find_libraries(names, arguments.python_jax)
    results: list[Any] = []
    asked = arguments.seconds, arguments.rounds, arguments.env_steps
    for total, part in bench_peers.compare_peers(found.libraries, parts, *asked):
        with Bar(total, arguments.quiet) as bar:
            results += bar.collect(part)
    rows = [result for result in results if not isinstance(result, str)]
    notes = [*found.notes, *[result for result in results if isinstance(result, str)]]
    _answer(rows, bench_peers.draw_peers, [*notes, *bench_peers.remarks(rows)], arguments.json, notes=notes)


def _workers(arguments: Namespace) -> None:
    from hotloop.proof import bench_peers, bench_workers

    chosen = bench_workers.choose(arguments.names)
    with Bar(len(chosen), arguments.quiet) as bar:
        rows = bar.collect(bench_workers.compare_workers(chosen, arguments.seconds))
    _answer(rows, bench_peers.draw_peers, bench_peers.remarks(rows), arguments.json, notes=[])


def _answer(rows: list[Any], draw: Any, lines: list[str], as_json: bool, **more: Any) -> None:
    if as_json:
        print_json({"load_average": load_average(), "rows": [row.as_data() for row in rows], **more})
    else:
        print_table(draw(rows))
        print_line("\n".join(lines))
