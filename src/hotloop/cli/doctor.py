"""`hotloop doctor PRESET|SCRIPT.py`."""

from __future__ import annotations

import argparse
from pathlib import Path

from hotloop.cli.arguments import VerbParser, print_json, settings_from_words
from hotloop.cli.console import answer_console
from hotloop.core.errors import SettingsError
from hotloop.core.terminal import say

BUDGET_EXCEEDED = 3


def run(words: list[str]) -> int:
    from hotloop.diagnosis.diagnose import MOST_SLOWDOWN, diagnose, is_script, require_above_zero, require_folders

    arguments = _parser().parse_args(words)
    script = is_script(arguments.target)
    if not script:  # a preset takes the doctor's options on either side of its name
        arguments, arguments.rest = _parser(with_target=False).parse_known_args(arguments.rest, arguments)
    require_above_zero(budget=arguments.budget, max_slowdown=arguments.max_slowdown)
    if arguments.max_slowdown is not None and arguments.against is None:
        raise SettingsError("`--max-slowdown` compares with an older report", "name it with `--against OLD.json`")
    require_folders(arguments.html, arguments.trace, arguments.save)
    found = diagnose(
        arguments.target if script else settings_from_words(arguments.target, arguments.rest),
        arguments.rest if script else (),
        seconds=arguments.seconds,
        env_steps=arguments.env_steps,
        env_classes=arguments.env or (),
        ops=arguments.ops,
        quick=arguments.quick,
        against=arguments.against,
        label=Path(arguments.target).stem,
        say=None if arguments.quiet else say,
    )
    for path in found.write(html=arguments.html, trace=arguments.trace, save=arguments.save):
        say(f"wrote {path}")
    if arguments.json:
        print_json(found.as_json())
    else:
        answer_console().print(found.as_text())
    reason = found.slower_than(arguments.budget, arguments.max_slowdown or MOST_SLOWDOWN)
    if reason:
        say(reason)
    return BUDGET_EXCEEDED if reason else 0


def _parser(with_target: bool = True) -> VerbParser:
    parser = VerbParser(
        "doctor",
        "Say why a training loop is slow, with evidence, and what to do about it.\n"
        "PRESET: one of ours, or a TOML file; settings follow as for `hotloop train`.\n"
        "SCRIPT.py: any training program, run as it is; the doctor's options stand before it, its own after.\n"
        "Exit code 0: a report was made; 2: a mistake; 3: slower than --against or --budget allow.",
        "hotloop doctor --html report.html train.py --seed 1",
        usage="hotloop doctor [options] PRESET|SCRIPT.py [settings or the script's own arguments]",
        argument_default=argparse.SUPPRESS if not with_target else None,
    )
    if with_target:
        parser.add_argument("target", help="a preset, a TOML file, or a Python script")
        parser.add_argument("rest", nargs=argparse.REMAINDER, help="settings, or the script's own arguments")
    add = parser.add_argument
    seconds = "watch the loop for so long (default: 10 for presets, 30 for scripts)"
    slowdown = "with --against: exit code 3 where an env step takes R times as long (1.2)"
    add("--seconds", type=float, metavar="S", help=seconds)
    add("--env-steps", type=int, metavar="N", help="a script: stop after so many env steps")
    add("--html", type=Path, metavar="FILE", help="write the report as one self-contained page")
    add("--trace", type=Path, metavar="FILE", help="write a Chrome trace, which opens in Perfetto")
    add("--save", type=Path, metavar="FILE", help="write the report as JSON, for a later --against")
    add("--against", type=Path, metavar="OLD.json", help="say what became slower since that report")
    add("--max-slowdown", type=float, metavar="R", help=slowdown)
    add("--budget", type=float, metavar="US", help="exit code 3 where an env step takes more microseconds than this")
    add("--env", action="append", metavar="CLASS", help="a script's class (or function) that steps the env")
    add("--ops", action="store_true", help="a script: add the torch operators")
    add("--quick", action="store_true", help="phases only: no experiments, no counting pass")
    add("--quiet", action="store_true", help="no progress on stderr")
    return parser
