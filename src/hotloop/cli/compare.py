"""`hotloop compare ARM [overrides] ARM [overrides] ... --seeds N [-- --any.setting VALUE]`."""

from __future__ import annotations

import shlex
from typing import Any

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.terminal import print_line, say

_OPTIONS: dict[str, dict[str, Any]] = {
    "--seeds": {"type": int, "help": "runs to train of each arm: seeds 0 to SEEDS - 1"},
    "--out": {"help": "folder for runs and results (default: runs/compare-..., by arms and settings)"},
    "--threshold": {
        "type": float,
        "help": "score whose first reaching is timed (default: 0.9 of what the first arm learned)",
    },
    "--margin": {"type": float, "help": "difference that counts as none (default: 1/20 of what the first arm learned)"},
    "--measure": {"default": "mean_return", "help": "field of the evaluations (default mean_return)"},
    "--workers": {"type": int, "default": 0, "help": "runs at once (default: as many as there are cores)"},
    "--html": {"metavar": "FILE", "help": "write one page with verdicts, figures, tables and settings"},
    "--markdown": {"metavar": "FILE.md[#NAME]", "help": "put tables and figures into a Markdown page, between marks"},
}
_SWITCHES = ("--json", "--quiet", "--debug", "--until-sure")


def _parser() -> VerbParser:
    parser = VerbParser(
        "compare",
        "Say what a change did to learning and to speed. An arm is a preset, a TOML file, a folder of finished runs,\n"
        "or a command: your own script, with `{seed}` where its seed goes. Overrides follow a preset (or stand\n"
        "in the same quotes, with a label in front), those of all arms follow `--`. What is missing is trained;\n"
        "finished runs are reused, and the same command continues what was stopped. Every arm is judged against the\n"
        "first: docs/compare.md has the rule. Exit code 1: a run failed.",
        "hotloop compare cartpole-dqn cartpole-dqn --double false --seeds 8 --threshold 475\n"
        '  hotloop compare "plain=cartpole-dqn" "rainbow=cartpole-rainbow" --seeds 8 -- --total-env-steps 30k\n'
        "  hotloop compare runs/family/cartpole-dqn runs/family/cartpole-rainbow --html family.html\n"
        '  hotloop compare "old=old.py --seed {seed}" "new=new.py --seed {seed}" --seeds 20 --until-sure',
        usage="hotloop compare ARM [--any.setting VALUE ...] [ARM ...] --seeds N [options] [-- --setting VALUE ...]",
    )
    for name, about in _OPTIONS.items():
        parser.add_argument(name, **about)
    parser.add_argument("--until-sure", action="store_true", help="add seeds until it is decided, SEEDS at most")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    return parser


def run(words: list[str]) -> int:
    parser = _parser()
    cut = words.index("--") if "--" in words else len(words)
    if {"-h", "--help"} & set(words[:cut]):
        parser.parse_args(["--help"])  # answers at once, before anything heavy is imported
    from hotloop.cli.console import display_console, print_table
    from hotloop.comparison.arms import explained, split_words
    from hotloop.comparison.compare import compare
    from hotloop.comparison.report import conclusions, tables
    from hotloop.presets import preset_names
    from hotloop.render.tables import as_rich

    own, arms = split_words(words[:cut], _OPTIONS, _SWITCHES, preset_names())
    arguments = parser.parse_args(own)
    options = {name: getattr(arguments, name) for name in (*[name[2:] for name in _OPTIONS], "until_sure")}
    command = shlex.join(["hotloop", "compare", *[word for word in words if word not in _SWITCHES[:3]]])
    display = display_console(arguments.quiet)
    try:
        with explained(words[:cut], _OPTIONS, preset_names()):
            found = compare(*arms, overrides=words[cut + 1 :], command=command, console=display, **options)
    except KeyboardInterrupt as stop:
        say(str(stop))
        return 130
    if arguments.json:
        print_json(found.as_data())
    else:
        for rows in tables(found):
            print_table(as_rich(rows))
            print_line()
        print_line("\n".join(conclusions(found)))
    return 1 if found.failed else 0
