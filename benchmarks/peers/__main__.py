"""`python -m benchmarks.peers [NAME ...]`: the same work in other libraries, taking turns on one thread."""

from __future__ import annotations

from typing import Any

from benchmarks import command
from hotloop.cli.arguments import require_above_zero
from hotloop.cli.main import run_command
from hotloop.core.program import use_one_thread

ABOUT = """The same work in other libraries, taking turns on one thread; a ratio above 1 is in our favor."""
NAMES = "a library (cpprb), or a part: `replay`, `dqn`, `ppo`, `sac`, or `training` for these three; without names, all"


def run(words: list[str]) -> int:
    parser = command.make_parser("benchmarks.peers", ABOUT, NAMES)
    rounds = "training runs of each (default 3; 6 for a 95 %% interval)"
    parser.add_argument("--rounds", type=int, default=3, help=rounds)
    parser.add_argument("--env-steps", type=int, default=5_000, help="timed in each training run (default 5000)")
    parser.add_argument("--python-jax", default="", metavar="PYTHON", help="an interpreter that has sbx-rl and rejax")
    arguments = parser.parse_args(words)
    require_above_zero(arguments, "seconds", "rounds", "env_steps")
    use_one_thread()  # before PyTorch is loaded
    from benchmarks.peers import compare, libraries

    parts, names = libraries.split_names(arguments.names)
    found = libraries.find_libraries(names, arguments.python_jax)
    results: list[Any] = []
    asked = arguments.seconds, arguments.rounds, arguments.env_steps
    for total, part in compare.compare_peers(found.libraries, parts, *asked):
        results += command.collect(part, total, arguments.quiet)
    rows = [result for result in results if not isinstance(result, str)]
    notes = [*found.notes, *[result for result in results if isinstance(result, str)]]
    return command.show(rows, compare.draw_peers, [*notes, *compare.remarks(rows)], arguments.json, notes=notes)


if __name__ == "__main__":
    raise SystemExit(run_command(run))
