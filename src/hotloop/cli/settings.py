"""`hotloop settings dqn`, `hotloop settings PRESET`."""

from __future__ import annotations

import dataclasses
import json

from hotloop.cli.arguments import VerbParser, print_json
from hotloop.core.terminal import print_line
from hotloop.presets import preset_names, preset_text, preset_tree


def run(words: list[str]) -> int:
    parser = VerbParser(
        "settings",
        "Show every setting of an algorithm with its default, unit and meaning; or the text of a preset.\n"
        f"presets: {', '.join(preset_names())}",
        "hotloop settings dqn",
    )
    parser.add_argument("name", nargs="?", default="dqn", help="an algorithm (dqn, ppo) or a preset's name")
    arguments = parser.parse_args(words)
    from hotloop.algos.registry import ALGORITHMS

    if arguments.name in ALGORITHMS:
        _print_algorithm(arguments.name, arguments.json)
    elif arguments.json:
        print_json(preset_tree(arguments.name))
    else:
        print_line(preset_text(arguments.name), end="")
    return 0


def _print_algorithm(name: str, as_json: bool) -> None:
    from hotloop.algos.registry import ALGORITHMS
    from hotloop.core.describe import describe

    rows = describe(ALGORITHMS[name])
    if as_json:
        print_json([dataclasses.asdict(row) for row in rows])
        return
    for row in rows:
        default = list(row.default) if isinstance(row.default, tuple) else row.default
        print_line(f"--{row.path.replace('_', '-')}  [{json.dumps(default)}]\n    {row.meaning}")
