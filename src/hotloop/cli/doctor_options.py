"""The options of `hotloop doctor`."""

from __future__ import annotations

import argparse
from pathlib import Path

from hotloop.cli.arguments import VerbParser


def doctor_parser(with_target: bool = True) -> VerbParser:
    parser = VerbParser(
        "doctor",
        "Say why a training loop is slow, with evidence, and what to do about it.\n"
        "PRESET: one of ours, or a TOML file; settings follow as for `hotloop train`.\n"
        "SCRIPT.py: any training program, run as it is; the doctor's options stand before it, its own after\n"
        "(behind `--` where one is called like one of ours).\n"
        "Exit code 0: a report was made; 2: a mistake; 3: nothing to judge, since the script failed before its loop\n"
        "or never began one; 4: slower than --against or --budget allow.",
        "hotloop doctor --html report.html train.py --seed 1",
        usage="hotloop doctor [options] PRESET|SCRIPT.py [settings or the script's own arguments]",
        argument_default=argparse.SUPPRESS if not with_target else None,
    )
    if with_target:
        parser.add_argument("target", help="a preset, a TOML file, or a Python script")
        parser.add_argument("rest", nargs=argparse.REMAINDER, help="settings, or the script's own arguments")
    add = parser.add_argument
    seconds = "watch the loop for so long (default: 10 for presets, 12 for scripts)"
    slowdown = "with --against: exit code 4 where an env step takes R times as long (1.2)"
    add("--seconds", type=float, metavar="S", help=seconds)
    add("--env-steps", type=int, metavar="N", help="a script: stop after so many env steps")
    add("--after", type=int, metavar="N", default=0, help="a script: skip so many env steps before what is told")
    late = "a script: go on for so long at low cost, for what comes late (evaluation, checkpoints)"
    add("--watch-seconds", type=float, metavar="S", default=0.0, help=late)
    add("--html", type=Path, metavar="FILE", help="write the report as one self-contained page")
    add("--trace", type=Path, metavar="FILE", help="write a Chrome trace, which opens in Perfetto")
    add("--save", type=Path, metavar="FILE", help="write the report as JSON, for a later --against")
    add("--against", type=Path, metavar="OLD.json", help="say what became slower since that report")
    add("--max-slowdown", type=float, metavar="R", help=slowdown)
    add("--budget", type=float, metavar="US", help="exit code 4 where an env step takes more microseconds than this")
    add("--env", action="append", metavar="CLASS", help="a script's class (or function) that steps the env")
    add("--ops", action="store_true", help="a script: add the torch operators")
    add(
        "--python",
        metavar="PATH",
        help="the Python (or environment) that runs the script (default: VIRTUAL_ENV, Conda's)",
    )
    add("--in-place", action="store_true", help="a script: further runs in its own folder too, not in a copy of it")
    add(
        "-m", dest="module", action="store_true", help="the script is named as a module: -m pkg.train, as for python -m"
    )
    add("--quick", action="store_true", help="one run, phases and lines only: no experiments, no counting")
    tries = "a script: try changes on it while it runs, interleaved: fewer updates, no logging, fused optimizer ..."
    add("--experiments", action="store_true", help=tries)
    arm = 'a script: try further arguments in processes interleaved: "envs=--num-envs 32" (repeatable)'
    add("--arm", action="append", metavar="NAME=ARGS", help=arm)
    add("--full", action="store_true", help="a script: everything on the terminal, not one screen of it")
    add("--quiet", action="store_true", help="no progress on stderr")
    return parser


def option_names() -> set[str]:
    """Of the long ones: a script's own short options are its own."""
    return {name for action in doctor_parser()._actions for name in action.option_strings if name.startswith("--")}
