"""`hotloop tune PRESET [--any.setting VALUE] --search NAME=VALUES ... --trials N`."""

from __future__ import annotations

from pathlib import Path

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.interrupts import stop_code
from hotloop.core.terminal import print_line, say


def run(words: list[str]) -> int:
    parser = VerbParser(
        "tune",
        "Search for better settings: trials are trained as runs of their own, several at once, and those that do\n"
        "worse than the median of the others are ended early. The same command continues what was stopped.\n"
        "--search NAME=LOW..HIGH[:log|:step=N] or NAME=A,B,C, as often as there are settings to search.",
        "hotloop tune cartpole-dqn --search optimizer.learning_rate=1e-5..1e-2:log --search n-step=1,3,5 --trials 20",
        usage="hotloop tune PRESET|FILE.toml [--any.setting VALUE ...] --search NAME=VALUES [--search ...] --trials N "
        "[--seeds N] [--workers N] [--on PLACE] [--storage FOLDER] [--measure NAME] [--no-prune] [--json] [--quiet]",
    )
    parser.add_argument("preset", help="a preset's name, or a TOML file with settings")
    parser.add_argument("--search", action="append", required=True, metavar="NAME=VALUES", help="a setting to search")
    parser.add_argument(
        "--trials", type=int, required=True, help="how many there shall be, those there before included"
    )
    parser.add_argument("--seeds", type=int, default=1, help="runs of each trial, whose mean counts (default 1)")
    parser.add_argument(
        "--workers", "--jobs", dest="jobs", type=int, default=0, help="runs at once (default: as many as cores)"
    )
    parser.add_argument("--on", default="local", help="where to train: `local`, `ray` or HOST:PORT (docs/scale.md)")
    parser.add_argument("--trust", action="store_true", help="allow envs in files, and send them to the cluster")
    parser.add_argument("--mixed", action="store_true", help="train on machines that round in another way, too")
    parser.add_argument(
        "--storage", type=Path, metavar="FOLDER", help="where study and runs are kept (default: runs/tune-...)"
    )
    parser.add_argument(
        "--measure", default="mean_return", help="what counts, a field of an evaluation (default mean_return)"
    )
    parser.add_argument("--no-prune", action="store_true", help="train every trial to its end")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    arguments, overrides = parser.parse_known_args(words)
    from hotloop.cli.console import print_table
    from hotloop.render.tables import as_rich
    from hotloop.tuning.search import tune

    found = tune(
        arguments.preset,
        search=arguments.search,
        trials=arguments.trials,
        overrides=[*overrides, *(["--trust"] if arguments.trust else [])],
        seeds=arguments.seeds,
        measure=arguments.measure,
        prune=not arguments.no_prune,
        jobs=arguments.jobs,
        on=arguments.on,
        trust=arguments.trust,
        mixed=arguments.mixed,
        storage=arguments.storage,
        say=None if arguments.quiet else say,
    )
    if arguments.json:
        print_json(found.as_data() | {"folder": str(found.plan.folder), "stopped": found.stopped})
    else:
        rows = found.table()
        print_table(as_rich(rows, left=rows[0]))
        print_line("\n".join(found.conclusions()))
    if found.stopped:
        say(f"stopped; what was trained is in {found.plan.folder}, and the same command continues it")
        return stop_code()
    return 0 if found.best else 1
